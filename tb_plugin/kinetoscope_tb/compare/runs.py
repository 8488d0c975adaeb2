"""Views of whole runs, compared: each rank with the rank of the same name in the other run.

Step numbers differ between runs, so that rows of ranks and steps are compared as the mean of each rank's complete
steps, with the steps' variation as noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from ..docstrings import docstring
from ..table import COUNT, ID, INSTANT, NUMBER, NUMERIC, Column, Table
from ..view import Subject, View
from .sides import NTH, Side, spread_of_rows

_STEP = "step"
_COMPLETE = "is_complete"


def without_steps(view: View) -> View:
    """The view of a run, with a row per rank where it has one per rank and step: such rows occur in other runs too."""
    table = view.table
    is_mean = _STEP in table.key
    left_out = (_STEP, _COMPLETE) if is_mean else ()
    of_rank = [c for c in table.columns if c.name not in left_out and not (is_mean and c.kind is INSTANT)]
    columns = {c.name: Column(NUMBER if is_mean and c.kind is COUNT else c.kind, c.doc, adds_up=False) for c in of_rank}
    key = tuple(name for name in table.key if name != _STEP)
    shape = {"key": key, "weight": table.weight if table.weight in columns else None}
    of_ranks = type(table.__name__, (Table,), {"__doc__": docstring(table), **columns, **shape})
    return replace(view, table=of_ranks, scope="recording", slices=None, time=None, reference=None)


def side_of_run(
    view: View, of_ranks: View, run: Subject, arguments: Mapping[str, Any], columns: Sequence[Column]
) -> Side:
    """One run's part of a comparison.

    Args:
        view: The view.
        of_ranks: The same `without_steps`.
        run: The run.
        arguments: Of the view.
        columns: The compared columns.
    """
    frame = view.frame(run, arguments)
    is_missing = view.is_missing(run)
    names = of_ranks.table.schema().names()
    if _STEP not in view.table.key:
        return Side(frame.select(names), None, 0, 0, 0, is_missing)
    if _COMPLETE in frame.columns and frame[_COMPLETE].any():
        frame = frame.filter(_COMPLETE)
    keys = list(of_ranks.table.key)
    numeric = [c.name for c in of_ranks.table.columns if c.kind in NUMERIC and c.kind is not ID and c.name not in keys]
    others = [name for name in names if name not in (*keys, *numeric)]
    ranks = frame.group_by(keys, maintain_order=True).agg(pl.col(numeric).mean(), pl.col(others).first())
    rows = ranks.select(names).cast({c.name: c.kind.dtype for c in of_ranks.table.columns if c.name in numeric})
    nth = pl.int_range(pl.len()).over(keys).alias(NTH)
    in_order = frame.with_columns(nth)
    steps = int(in_order[NTH].max() or 0) + 1  # type: ignore[arg-type]
    spread = spread_of_rows(in_order, keys, [c for c in columns if c.kind in NUMERIC], steps)
    return Side(rows, spread, steps, steps, steps, is_missing)
