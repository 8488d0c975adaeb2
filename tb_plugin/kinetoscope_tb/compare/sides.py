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
from .statistics import Spread
from .tree_paths import PATH, with_path

MOST_SAMPLES = 16  # steps that the noise is estimated from, evenly spaced
NTH = "nth of the sampled steps"  # no table has a column of this name
_ROW = "row of the spread"


@dataclass(frozen=True)
class Side:
    """One trace's part of a comparison.

    Args:
        frame: The view of the counted steps, amounts divided by their number if values are per step.
        spread: Per row and column the fields of a `Spread` over the sampled steps: `var …`, `n …`, `error …`, `drift …`
            and `log …`; None without separate steps.
        steps: Number of counted steps.
        samples: Number of steps that the spread is estimated from.
        averaged: Number of sampled steps that each value is the mean of: one where each row is a step.
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


def compute_side(
    view: View, trace: Trace, arguments: Mapping[str, Any], columns: Sequence[Column], *, per_step: bool
) -> Side:
    """One side; `per_step` only if both traces mark steps and the view can be restricted to some of them."""
    trace, arguments = view.part_of(trace, arguments)
    steps = counted_steps(trace)
    numeric = [column for column in columns if column.kind in NUMERIC]
    if view.within == "steps":
        frame = _frame(view, trace, arguments)
        rows = frame[steps] if frame.height == trace.steps.height else frame
        return Side(rows, _spread_between(rows, numeric), len(steps), rows.height, 1, view.is_missing(trace))
    if not per_step:
        return Side(_frame(view, trace, arguments), None, len(steps), 0, 0, view.is_missing(trace))
    whole = _part(view, trace, steps)
    frame = _per_step(_frame(view, whole, arguments), numeric, len(steps))
    indices = np.linspace(0, len(steps) - 1, min(len(steps), MOST_SAMPLES)).round().astype(int).tolist()
    sample_steps = _part(
        view, whole, indices
    )  # all sampled steps first, so that each single one is selected from few rows
    samples = [_frame(view, _part(view, sample_steps, [index]), arguments) for index in range(len(indices))]
    rows = pl.concat([sample.with_columns(pl.lit(index).alias(NTH)) for index, sample in enumerate(samples)])
    spread = spread_of_rows(rows, identity(view), numeric, len(samples))
    return Side(frame, spread, len(steps), len(samples), len(samples), view.is_missing(trace))


def values_of_steps(view: View, trace: Trace, columns: Sequence[Column]) -> pl.DataFrame:
    """The view of the counted steps, amounts divided by their number."""
    steps = counted_steps(trace)
    if view.within not in ("rows", "windows"):
        return _frame(view, trace, {})
    return _per_step(_frame(view, _part(view, trace, steps), {}), columns, len(steps))


def _per_step(frame: pl.DataFrame, columns: Sequence[Column], steps: int) -> pl.DataFrame:
    return frame.with_columns(pl.col(column.name) / steps for column in columns if column.adds_up)


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


def spread_of_rows(rows: pl.DataFrame, ids: list[str], columns: Sequence[Column], samples: int) -> pl.DataFrame:
    """How the values of each row vary over the sampled steps.

    In a step without the row, an amount is 0 and anything else has no value.

    Args:
        rows: The rows of all sampled steps, with their step in `NTH`.
        ids: The columns that identify a row in every step.
        columns: Whose values to take.
        samples: Number of sampled steps.
    """
    keys = rows.select(ids).unique(maintain_order=True).with_row_index(_ROW)
    indexed_rows = rows.join(keys, on=ids, nulls_equal=True, how="left", maintain_order="left")
    row, step = indexed_rows[_ROW].to_numpy(), indexed_rows[NTH].to_numpy()
    parts = []
    for column in columns:
        values = np.full((keys.height, samples), np.nan)
        values[row, step] = indexed_rows[column.name].cast(pl.Float64).fill_null(np.nan).to_numpy()
        if column.adds_up:
            values[np.isnan(values) & np.isfinite(values).any(axis=1)[:, None]] = 0.0
        parts += _columns(Spread.of(values), column.name)
    return keys.drop(_ROW).with_columns(parts)


def _columns(spread: Spread, name: str) -> list[pl.Series]:
    """A spread as columns of the frame of a side."""
    parts = {
        "var": spread.variance,
        "n": spread.samples,
        "error": spread.error,
        "drift": spread.drift,
        "log mean": spread.log_mean,
        "log var": spread.log_variance,
        "log error": spread.log_error,
        "log drift": spread.log_drift,
    }
    return [pl.Series(f"{part} {name}", values, pl.Float64).fill_nan(None) for part, values in parts.items()]


def _spread_between(frame: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    """If each row is a step: the variation between the rows, the same for each row."""
    values = frame.select(pl.col(column.name).cast(pl.Float64) for column in columns).to_numpy().T
    spread = Spread.of(values.reshape(len(columns), frame.height))
    of_columns = [
        series.gather([index] * frame.height)
        for index, column in enumerate(columns)
        for series in _columns(spread, column.name)
    ]
    return frame.select(frame.columns[:1]).with_columns(of_columns)
