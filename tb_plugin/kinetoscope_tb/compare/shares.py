"""What can be compared of times that have nothing to do with each other: shares, and means per call.

If only one of two traces marks steps, amounts of one are of its steps and those of the other are of a whole recording
of any length. A step of one program and a step of another aren't the same work either. So neither their difference nor
their ratio means anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from ..measures.time.step_subset import has_steps
from ..pictures import charted_columns, parent_column
from ..table import DURATION, FRACTION, Column
from ..trace import Trace
from ..view import View
from .sides import Side
from .workload import Workload, difference_of_programs

_CALLS = "calls"


def stepless_side(base: Trace, new: Trace) -> str:
    """The only side that marks no steps, in words; empty if both sides do, or neither."""
    stepless = [name for name, trace in (("base", base), ("new", new)) if not has_steps(trace)]
    return f"the {stepless[0]} recording marks no steps" if len(stepless) == 1 else ""


def why_only_shares(base: Trace, new: Trace, works: tuple[Workload, Workload]) -> str:
    """Why shares and means per call replace the amounts of both; empty if amounts can be compared.

    Args:
        base: The trace to compare with.
        new: The trace that may have changed.
        works: The work of both.
    """
    if stepless := stepless_side(base, new):
        return f"{stepless}, and a whole recording can't be compared with a step; mark steps on both sides"
    return difference_of_programs(*works)


def is_amount(view: View, column: Column) -> bool:
    """Whether a value depends on how much was recorded."""
    if view.within == "rows":
        return column.adds_up
    if view.within == "windows":
        return column.adds_up or column.kind is DURATION
    return column.kind is DURATION and (column.adds_up or column.name == view.table.weight)


def weights(view: View) -> list[Column]:
    """The amounts that shares are computed from: the view's weight, and what its picture shows."""
    by_name = {column.name: column for column in view.table.columns}
    names = dict.fromkeys(filter(None, [view.table.weight, *charted_columns(view.table.picture)]))
    return [by_name[name] for name in names if by_name[name].adds_up and is_amount(view, by_name[name])]


def share_columns(view: View, weight: Column) -> list[Column]:
    """The columns that replace an amount: its share, and its mean per call if calls are counted."""
    bare = weight.name.removesuffix(weight.kind.suffix)
    share = _with_name(f"{bare}_share_frac", Column(FRACTION, f"Share of the sum over all rows. {weight.doc}"))
    if weight.kind is not DURATION or _CALLS not in {column.name for column in view.table.columns}:
        return [share]
    return [share, _with_name(f"mean_{weight.name}", Column(DURATION, f"Mean per call. {weight.doc}"))]


def with_shares(view: View, side: Side) -> Side:
    """The side with the `share_columns` of each weight."""
    parent = parent_column(view.table.picture)
    is_counted = pl.col(parent).is_null() if parent else pl.lit(value=True)  # children are part of their root
    parts: list[pl.Expr] = []
    for weight in weights(view):
        value = pl.col(weight.name)
        whole = value.filter(is_counted.and_(value.is_not_null())).sum()
        share, *mean = share_columns(view, weight)
        parts.append(pl.when(whole > 0).then(value / whole).alias(share.name))
        parts += [
            pl.when(pl.col(_CALLS) > 0).then(value / pl.col(_CALLS)).round().cast(pl.Int64).alias(c.name) for c in mean
        ]
    return replace(side, frame=side.frame.with_columns(parts))


def comparable_columns(view: View) -> Sequence[Column]:
    """The columns that can be compared: those that are no amounts, and the `share_columns`."""
    possible = view.comparable_columns
    own = [column for column in view.table.columns if column.name in possible and not is_amount(view, column)]
    return [*(column for weight in weights(view) for column in share_columns(view, weight)), *own]


def _with_name(name: str, column: Column) -> Column:
    column.name = name
    return column
