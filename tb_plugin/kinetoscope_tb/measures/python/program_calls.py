"""Calls of the functions of a program, and the ranges that it annotates, that lie in one counted step each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from ...arrays.gather import map_categories
from ...names.kernels import step_number
from ...names.python_frames import is_of_program
from ...trace.model import Trace
from ..calls.recursion import without_recursion
from ..time.breakdown import loading_ranges
from ..time.host_activity import working_threads
from ..time.step_subset import counted_steps


def function_calls(trace: Trace) -> pl.DataFrame:
    """`name`, `thread`, `start_ns`, `dur_ns` and `step`, a row of `trace.steps`, of each call of a function.

    Only of the threads that make up a step, without calls in one of the same name. A call that takes part in several
    steps is none, such as the loop of the training.
    """
    return _in_steps(trace, trace.python_calls, is_of_program)


def annotated_ranges(trace: Trace) -> pl.DataFrame:
    """The same of the ranges that the program annotates, but for steps and the loading of data."""
    is_own = (trace.host_events["kind"] == "annotation") & ~pl.Series(loading_ranges(trace), dtype=pl.Boolean)
    return _in_steps(trace, trace.host_events.filter(is_own), _is_no_step)


def _in_steps(trace: Trace, calls: pl.DataFrame, is_meant: Callable[[str], bool]) -> pl.DataFrame:
    begin, end = (trace.steps[f"host_{side}_ns"].to_numpy() for side in ("start", "end"))
    rows = calls.select("name", "thread", "start_ns", "dur_ns").drop_nulls("name")
    are_meant = working_threads(trace)[rows["thread"].to_numpy()] & map_categories(rows["name"], is_meant)
    rows = without_recursion(rows.filter(pl.Series(are_meant, dtype=pl.Boolean)))
    step = np.searchsorted(begin, rows["start_ns"].to_numpy(), "right") - 1
    rows = rows.with_columns(step=pl.Series(step)).filter(pl.col("step").is_in(counted_steps(trace)))
    until_end = pl.Series(end[rows["step"].to_numpy()], dtype=pl.Int64) - rows["start_ns"]
    return rows.filter(rows["dur_ns"] <= until_end)


def _is_no_step(name: str) -> bool:
    return step_number(name) is None
