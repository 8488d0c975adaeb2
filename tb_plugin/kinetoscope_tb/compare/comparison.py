"""The joined table: one row is a row of either side, with base, new and their difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ..errors import BadParameter
from ..pictures import StackedBars, charted_columns, parent_column
from ..table import BOOL, BYTES, COUNT, DURATION, FLOP, NUMERIC, Column, Table
from ..trace import Trace
from ..view import Subject, View
from .runs import side_of_run, without_steps
from .shares import comparable_columns, share_columns, weights, why_only_shares, with_shares
from .sides import Side, compute_side, identity, why_not_per_step
from .statistics import Spread, margin
from .table import SIDE, compared_table
from .tree_paths import labels, parents, shown_names
from .workload import Workload, difference_of_work

BEYOND = "beyond noise"  # the verdict on a difference that the steps of both sides don't explain; no other word for it
_NUMBER = "number"  # of a row, which says nothing about another run
_ROUNDED = (DURATION, BYTES, FLOP)


@dataclass(frozen=True)
class Basis:
    """The steps that the values of both sides refer to.

    Args:
        why_not: Why amounts aren't divided by the number of counted steps; empty if they are.
        base_steps: Number of counted steps of the base.
        new_steps: Number of counted steps of the new side.
        base_samples: Number of steps that the noise is estimated from; 0 if it isn't.
        new_samples: The same for the new side.
        is_base_missing: Whether the base lacks what the view needs.
        is_new_missing: Whether the new side lacks it.
        is_of_shares: Whether only one side marks steps, or the sides are of different programs, so that shares and
            means per call replace amounts.
        why_uncertain: Why no difference is evidence of a change: the sides are of different work; empty if they aren't.
    """

    why_not: str
    base_steps: int
    new_steps: int
    base_samples: int
    new_samples: int
    is_base_missing: bool
    is_new_missing: bool
    is_of_shares: bool
    why_uncertain: str

    @property
    def is_per_step(self) -> bool:
        """Whether amounts are divided by the number of counted steps."""
        return not self.why_not

    @property
    def words(self) -> str:
        """One or two sentences."""
        if self.is_of_shares:
            return f"Shares and means per call instead of times: {self.why_not}."
        if self.is_per_step:
            basis = f"Per step: {_steps(self.base_steps)} of the base and {_steps(self.new_steps)} of the new trace."
        else:
            basis = f"Not per step: {self.why_not}."
        if self.why_uncertain:
            return f"{basis} No difference is certain: {self.why_uncertain}."
        if min(self.base_samples, self.new_samples) < 2:
            why_unknown = ": estimating it takes two steps on both sides" if self.is_per_step else ""
            return f"{basis} Noise is unknown{why_unknown}."
        samples = f"{self.base_samples} and {self.new_samples} steps"
        return (
            f"{basis} Noise is the variation within these: {samples} (Welch's test at 99 % of times and of their "
            "logarithms, for steps that resemble their neighbors or drift). Another recording of the same code may "
            "differ by more: kinetoscope gate compares several a side."
        )


def _steps(count: int) -> str:
    return "one step" if count == 1 else f"{count} steps"


@dataclass(frozen=True)
class Comparison:
    """A view of two traces side by side.

    Args:
        view: The compared view.
        columns: The compared columns, the first of which orders the rows.
        table: The schema of the frame, created for this comparison.
        frame: The rows, largest change first.
        basis: The steps that the values refer to.
    """

    view: View
    columns: tuple[Column, ...]
    table: type[Table]
    frame: pl.DataFrame
    basis: Basis


def compare(
    view: View,
    base: Trace,
    new: Trace,
    *,
    arguments: Mapping[str, Any] | None = None,
    columns: Sequence[str] = (),
) -> Comparison:
    """Compare a view of `new` with the same view of `base`.

    Args:
        view: The view to compare.
        base: The trace to compare with.
        new: The trace that may have changed.
        arguments: Of the view, for both sides.
        columns: Names of columns to compare; by default the weight and the first count, or all numbers without a
            weight, or all texts without numbers. If neither trace has the weight, such as device time without a
            device, the first charted column that one of them has is used instead. If only one side marks steps, or
            the sides are of different programs, shares and means per call replace amounts.

    Raises:
        BadParameter: The view can't be compared, or has no such column to compare.
    """
    works = Workload.of(base), Workload.of(new)
    why_shares = why_only_shares(base, new, works)
    selection = _select_shares(view, columns, why_shares) if why_shares else _select_columns(view, columns)
    why_not = why_shares or why_not_per_step(view, base, new)
    per_step = not why_not
    sides = [compute_side(view, trace, arguments or {}, selection, per_step=per_step) for trace in (base, new)]
    if why_shares:
        sides = [with_shares(view, side) for side in sides]
    instead = [] if columns else _instead(view, selection, sides)
    if instead:
        others = [column.name for column in selection[len(instead) :] if column.name not in instead]
        return compare(view, base, new, arguments=arguments, columns=[*instead, *others])
    if view.within == "steps":
        sides = _pair_steps(sides)
    elif "step" in view.table.key:
        sides = [_of_all_steps(side) for side in sides]
    why_uncertain = difference_of_work(*works)
    return _comparison(view, selection, sides, why_not, is_of_shares=bool(why_shares), why_uncertain=why_uncertain)


def compare_runs(
    view: View,
    base: Subject,
    new: Subject,
    *,
    arguments: Mapping[str, Any] | None = None,
    columns: Sequence[str] = (),
) -> Comparison:
    """Compare a view of the run `new`, or of one span of all its ranks, with the same view of the run `base`.

    Args:
        view: The view to compare.
        base: The run to compare with.
        new: The run that may have changed.
        arguments: Of the view, for both sides.
        columns: Names of columns to compare; by default as in `compare`.

    Raises:
        BadParameter: The view can't be compared, or has no such column to compare.
    """
    if _NUMBER in view.table.key:
        raise BadParameter(f"The view {view.id!r} can't be compared: its rows don't occur in other runs.")
    of_ranks = without_steps(view)
    selection = _select_columns(of_ranks, columns)
    sides = [side_of_run(view, of_ranks, ranks, arguments or {}, selection) for ranks in (base, new)]
    return _comparison(of_ranks, selection, sides, "" if sides[0].samples else "this view covers whole runs")


def _comparison(
    view: View,
    selection: Sequence[Column],
    sides: Sequence[Side],
    why_not: str,
    *,
    is_of_shares: bool = False,
    why_uncertain: str = "",
) -> Comparison:
    """The sides, joined; values are per step unless there is a reason why not."""
    per_step = not why_not
    rows = _join(view, sides, selection)
    table = compared_table(view, selection, is_per_step=per_step)
    judged_sides = [replace(side, spread=None) for side in sides] if why_uncertain else sides
    parts = [_part(column, rows, judged_sides, is_per_step=per_step) for column in selection]
    frame = _sort(view, rows.with_columns(*(series for part in parts for series in part)), selection)
    if parent := parent_column(view.table.picture):
        above = parents(frame, [(side.frame, view.table) for side in sides])
        frame = frame.with_columns(above.alias(parent))
    (old, latest), has_numbers = sides, any(column.kind in NUMERIC for column in selection)
    basis = Basis(
        why_not,
        base_steps=old.steps,
        new_steps=latest.steps,
        base_samples=old.samples,
        new_samples=latest.samples,
        is_base_missing=old.is_missing,
        is_new_missing=latest.is_missing,
        is_of_shares=is_of_shares and has_numbers,
        why_uncertain=why_uncertain,
    )
    return Comparison(view, tuple(selection), table, table.of(frame.select(table.schema().names())), basis)


def _select_columns(view: View, names: Sequence[str]) -> list[Column]:
    if not view.comparable_columns:
        raise BadParameter(f"The view {view.id!r} can't be compared: its rows don't occur in other traces.")
    possible = view.comparable_columns
    for name in names:
        if name not in possible:
            raise BadParameter(f"{name!r} of {view.id!r} can't be compared; choose among {', '.join(possible)}.")
    by_name = {c.name: c for c in view.table.columns}
    numbers = [n for n in possible if by_name[n].kind in NUMERIC]
    counts = [n for n in numbers if by_name[n].kind is COUNT][:1]
    weight = [view.table.weight] if view.table.weight in numbers else []
    picture = view.table.picture
    parts = [n for n in picture.parts[1:] if n in numbers] if isinstance(picture, StackedBars) else []
    usual = [*weight, *counts] if weight else [*parts, *numbers] or possible
    return [by_name[name] for name in dict.fromkeys(names or usual) if name]


def _select_shares(view: View, names: Sequence[str], why: str) -> list[Column]:
    """The columns to compare if amounts can't be, and why they can't."""
    by_name = {column.name: column for column in comparable_columns(view)}
    _select_columns(view, [name for name in names if name not in by_name])  # refuses what can never be compared
    if view.within == "steps" or not by_name:
        raise BadParameter(f"The view {view.id!r} can't be compared: {why}.")
    for name in names:
        if name not in by_name:
            raise BadParameter(f"{name!r} of {view.id!r} can't be compared: {why}. Compare {', '.join(by_name)}.")
    numbers = [column for column in by_name.values() if column.kind in NUMERIC]
    usual = [column for weight in weights(view)[:1] for column in share_columns(view, weight)]
    return [by_name[name] for name in names] or usual or numbers or list(by_name.values())


def _instead(view: View, selection: Sequence[Column], sides: Sequence[Side]) -> list[str]:
    """The columns to compare instead of a weight without values on both sides; none if none are needed, or exist."""
    first = selection[0].name
    if any(side.frame[first].is_not_null().any() or side.frame.is_empty() for side in sides):
        return []
    if first == view.table.weight:
        others = [name for name in charted_columns(view.table.picture) if name != first]
        return [name for name in others if name in view.comparable_columns][:1]
    shares = [[column.name for column in share_columns(view, weight)] for weight in weights(view)]
    return next(iter(shares[1:]), []) if shares and shares[0][0] == first else []


def _of_all_steps(side: Side) -> Side:
    """A side without the rows of single steps, if it has rows of all: another recording has other steps."""
    is_all = pl.col("step") == "all"
    return replace(side, frame=side.frame.filter(is_all)) if "all" in side.frame["step"] else side


def _pair_steps(sides: Sequence[Side]) -> list[Side]:
    """Sides whose rows are steps, paired by their order: two traces seldom have the same step numbers."""
    names = [side.frame["step"].to_list() for side in sides]
    most = max(map(len, names))
    numbers = [[*steps, *[None] * (most - len(steps))] for steps in names]
    together = [b if b == n or n is None else n if b is None else f"{b} | {n}" for b, n in zip(*numbers, strict=True)]
    return [
        Side(
            side.frame.with_columns(step=pl.Series(together[: side.frame.height], dtype=pl.String)),
            None if side.spread is None else side.spread.with_columns(step=pl.Series(together[: side.spread.height])),
            side.steps,
            side.samples,
            side.averaged,
            side.is_missing,
        )
        for side in sides
    ]


def _join(view: View, sides: Sequence[Side], columns: Sequence[Column]) -> pl.DataFrame:
    """Key, `only_in`, and each column's values and spread per side."""
    ids, keys = identity(view), shown_names(view.table)
    frames = []
    for name, side in zip(("base", "new"), sides, strict=True):
        frame = side.frame.select(
            *dict.fromkeys([*ids, *keys]), *(_comparable_value(c).alias(f"{name}_{c.name}") for c in columns)
        ).with_columns(pl.lit(value=True).alias(f"is in {name}"))
        if side.spread is not None:
            spread = side.spread.rename({c: f"{name} {c}" for c in side.spread.columns if c not in ids})
            frame = frame.join(spread, on=ids, how="left", nulls_equal=True)
        frames.append(frame)
    base, new = frames
    rows = base.join(new, on=ids, how="full", nulls_equal=True, suffix=" of new")
    both = [pl.coalesce(name, f"{name} of new").alias(name) for name in dict.fromkeys([*ids, *keys])]
    in_base, in_new = pl.col("is in base").is_not_null(), pl.col("is in new").is_not_null()
    only = pl.when(~in_new).then(pl.lit("base")).when(~in_base).then(pl.lit("new")).alias(SIDE)
    return rows.with_columns(*both, only)


def _comparable_value(column: Column) -> pl.Expr:
    """The column, with bools as text: the name of a bool column can't begin with `base_`."""
    value = pl.col(column.name)
    if column.kind is not BOOL:
        return value
    return pl.when(value).then(pl.lit("yes")).when(~value).then(pl.lit("no"))


def _part(column: Column, rows: pl.DataFrame, sides: Sequence[Side], *, is_per_step: bool) -> list[pl.Series]:
    """The columns of the comparison for one column of the view."""
    base, new = (rows[f"{name}_{column.name}"] for name in ("base", "new"))
    if column.kind not in NUMERIC:
        is_different = base.ne_missing(new)
        words = pl.select(pl.when(is_different).then(pl.lit("changed")).otherwise(pl.lit("same"))).to_series()
        return [words.alias(f"{column.name}_verdict")]
    if is_per_step and column.adds_up and column.kind in _ROUNDED:
        base, new = (values.round().cast(pl.Int64) for values in (base, new))
    delta = _with_zero(column, new, rows, sides[1]) - _with_zero(column, base, rows, sides[0])
    noise = _noise(column, rows, sides, delta)
    parts = pl.DataFrame({"base": base, "new": new, "delta": delta, "noise": noise})
    ratio = pl.when(pl.col("base") != 0).then(pl.col("new") / pl.col("base"))
    return parts.select(
        pl.col("base").alias(f"base_{column.name}"),
        pl.col("new").alias(f"new_{column.name}"),
        pl.col("delta").alias(f"delta_{column.name}"),
        ratio.alias(f"{column.name}_ratio"),
        _as_kind(pl.col("noise"), column).alias(f"noise_{column.name}"),
        verdict().alias(f"{column.name}_verdict"),
    ).get_columns()


def _with_zero(column: Column, values: pl.Series, rows: pl.DataFrame, side: Side) -> pl.Series:
    """Values with 0 for amounts of missing rows, unless the trace doesn't have the amount at all."""
    is_recorded = not side.is_missing and (side.frame.is_empty() or side.frame[column.name].count() > 0)
    if not (column.adds_up and is_recorded):
        return values
    absent = rows[SIDE] == ("new" if values.name.startswith("base_") else "base")
    return pl.select(pl.when(absent.fill_null(value=False)).then(0).otherwise(values).alias(values.name)).to_series()


def _noise(column: Column, rows: pl.DataFrame, sides: Sequence[Side], delta: pl.Series) -> pl.Series:
    """The margin within which a difference is noise; null if unknown."""
    if any(side.spread is None for side in sides):
        return pl.Series("noise", [None] * rows.height, dtype=pl.Float64)
    spreads = []
    for name, side in zip(("base", "new"), sides, strict=True):
        # An amount that occurs in no step is 0 in each of them.
        zero, none = (0.0, side.samples) if column.adds_up else (np.nan, 0)
        absent = {"var": zero, "n": none, "error": zero, "drift": zero}
        absent |= dict.fromkeys(("log mean", "log var", "log error", "log drift"), np.nan)
        variance, number, error, drift, *of_logarithms = (
            rows[f"{name} {part} {column.name}"].cast(pl.Float64).fill_null(value).to_numpy()
            for part, value in absent.items()
        )
        steps = side.averaged * number / max(1, side.samples)
        spreads.append(Spread(variance, number, error, drift, steps, *of_logarithms))
    change = delta.cast(pl.Float64).fill_null(np.nan).to_numpy()
    return pl.Series("noise", margin(spreads[0], spreads[1], change)).fill_nan(None)


def verdict() -> pl.Expr:
    """What a `delta` means, by its `noise`."""
    size = pl.col("delta").abs()
    return (
        pl.when(pl.col("delta") == 0)
        .then(pl.lit("same"))
        .when(size.is_null() | pl.col("noise").is_null())
        .then(pl.lit("unknown"))
        .when(size <= pl.col("noise"))
        .then(pl.lit("not certain"))
        .otherwise(pl.lit(BEYOND))
    )


def _as_kind(values: pl.Expr, column: Column) -> pl.Expr:
    return values.round().cast(pl.Int64) if column.kind in _ROUNDED else values.cast(pl.Float64)


def _sort(view: View, frame: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    """The largest change of the first column first; unknown changes last."""
    first = columns[0]
    key = [
        name
        for name in (labels(view.table) if parent_column(view.table.picture) else view.table.key)
        if name in frame.columns
    ]
    if first.kind not in NUMERIC:
        return frame.sort(pl.col(f"{first.name}_verdict") == "same", maintain_order=True)
    size = pl.col(f"delta_{first.name}").abs()
    larger = pl.max_horizontal(pl.col(f"base_{first.name}"), pl.col(f"new_{first.name}"))
    by = [size, larger, *map(pl.col, key)]
    return frame.sort(by, descending=[True, True, *(False for _ in key)], nulls_last=True, maintain_order=True)
