"""The view of the counted steps of one trace, and the variation between the steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..measures.time.step_subset import counted_steps, has_steps, rows_of_steps, windows_of_steps
from ..pictures import parent_column
from ..table import NUMERIC, Column
from ..trace import Trace
from ..view import View
from .tree_paths import PATH, with_path

MOST_SAMPLES = 16  # steps that the noise is estimated from, evenly spaced


@dataclass(frozen=True)
class Side:
    """One trace's part of a comparison.

    Args:
        frame: The view of the counted steps, amounts divided by their number if values are per step.
        spread: Per row the variance (`var …`) and number (`n …`) of the values of the sampled steps, per column;
            None without separate steps.
        steps: Number of counted steps.
        samples: Number of steps that the spread is estimated from.
        averaged: Number of steps that each value is the mean of.
        is_missing: Whether the trace lacks what the view needs.
    """

    frame: pl.DataFrame
    spread: pl.DataFrame | None
    steps: int
    samples: int
    averaged: int
    is_missing: bool


def identity(view: View) -> list[str]:
    """The columns on which two frames of the view are joined."""
    return [PATH] if parent_column(view.table.picture) else list(view.table.key)


def side(view: View, trace: Trace, arguments: Mapping[str, Any], columns: Sequence[Column], *, per_step: bool) -> Side:
    """One side; `per_step` only if both traces mark steps and the view can be restricted to some of them."""
    trace, arguments = view.part_of(trace, arguments)
    counted = counted_steps(trace)
    numeric = [column for column in columns if column.kind in NUMERIC]
    if view.within == "steps":
        frame = _frame(view, trace, arguments)
        rows = frame[counted] if frame.height == trace.steps.height else frame
        return Side(rows, _spread_of_rows(rows, numeric), len(counted), rows.height, 1, view.is_missing(trace))
    if not per_step:
        return Side(_frame(view, trace, arguments), None, len(counted), 0, 0, view.is_missing(trace))
    whole = _part(view, trace, counted)
    amounts = [column.name for column in numeric if column.adds_up]
    frame = _frame(view, whole, arguments).with_columns(pl.col(amounts) / len(counted))
    places = np.linspace(0, len(counted) - 1, min(len(counted), MOST_SAMPLES)).round().astype(int).tolist()
    some = _part(view, whole, places)  # all sampled steps first, so that each single one is selected from few rows
    samples = [_frame(view, _part(view, some, [place]), arguments) for place in range(len(places))]
    spread = _spread(samples, identity(view), numeric)
    return Side(frame, spread, len(counted), len(samples), len(counted), view.is_missing(trace))


def why_not_per_step(view: View, base: Trace, new: Trace) -> str:
    """Why values aren't per step; empty if they can be."""
    if view.within == "steps":
        return "each row is a step"
    if view.within not in ("rows", "windows"):
        return "this view covers whole recordings"
    stepless = [name for name, trace in (("base", base), ("new", new)) if not has_steps(trace)]
    reasons = {1: f"the {''.join(stepless)} recording marks no steps", 2: "neither recording marks steps"}
    return reasons.get(len(stepless), "")


def _part(view: View, trace: Trace, steps: Sequence[int]) -> Trace:
    return rows_of_steps(trace, steps) if view.within == "rows" else windows_of_steps(trace, steps)


def _frame(view: View, trace: Trace, arguments: Mapping[str, Any]) -> pl.DataFrame:
    frame = view.frame(trace, arguments)
    return with_path(frame, view.table) if parent_column(view.table.picture) else frame


def _spread(samples: Sequence[pl.DataFrame], ids: list[str], columns: Sequence[Column]) -> pl.DataFrame:
    """Variance and number of the values of each row over the sampled steps.

    In a step without the row, an amount is 0 and anything else has no value.
    """
    names = [column.name for column in columns]
    rows = pl.concat([sample.select(*ids, *names) for sample in samples])
    values = [(pl.col(c.name).cast(pl.Float64), c) for c in columns]
    return rows.group_by(ids).agg(
        *(_variance(value, column, len(samples)).alias(f"var {column.name}") for value, column in values),
        *(_number(value, column, len(samples)).alias(f"n {column.name}") for value, column in values),
    )


def _variance(value: pl.Expr, column: Column, steps: int) -> pl.Expr:
    """Sample variance; for amounts, with a zero for each step without the row."""
    if not column.adds_up:
        return value.var()
    there = value.count()
    squares = pl.when(there > 1).then(value.var() * (there - 1)).otherwise(0.0)
    zeros = steps - there
    return (squares + value.mean() ** 2 * there * zeros / steps) / (steps - 1) if steps > 1 else pl.lit(None)


def _number(value: pl.Expr, column: Column, steps: int) -> pl.Expr:
    there = value.count()
    return (pl.when(there > 0).then(steps).otherwise(0) if column.adds_up else there).cast(pl.Float64)


def _spread_of_rows(frame: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    """If each row is a step: the variation between the rows, the same for each row."""
    return frame.select(
        *frame.columns[:1],
        *(pl.col(c.name).cast(pl.Float64).var().alias(f"var {c.name}") for c in columns),
        *(pl.col(c.name).count().cast(pl.Float64).alias(f"n {c.name}") for c in columns),
    )
