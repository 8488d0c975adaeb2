"""What functions of the program take in each step: why a rank is late, compared with its other steps or other ranks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import polars as pl

from ..advice.model import Culprit
from ..arrays.gather import map_categories
from ..arrays.intervals import Ints, length_within
from ..measures.calls.recursion import without_recursion
from ..measures.time.breakdown import loading_ranges
from ..measures.time.host_activity import host_activities, working_threads
from ..measures.time.step_subset import counted_steps
from ..names.kernels import step_number
from ..names.python_frames import is_nameless, is_of_library, without_address
from ..trace import Trace

LEAST_FRAC = 0.02  # of the average step


@dataclass(frozen=True)
class StepWork:
    """What takes some time of the host in a step.

    Args:
        name: A function of the program, or a range that the program annotates.
        culprit: The same.
        ns: Its time without waits for devices in each step in which it runs, by the name of the step.
    """

    name: str
    culprit: Culprit
    ns: Mapping[str, int]

    def typical_ns(self, steps: Sequence[str]) -> float:
        """Its median over some steps."""
        return median(self.ns.get(step, 0) for step in steps)


def step_work(trace: Trace) -> tuple[StepWork, ...]:
    """The functions, then the annotated ranges, that take some time in any counted step; inner ones first."""
    is_own = (trace.host_events["kind"] == "annotation") & ~pl.Series(loading_ranges(trace), dtype=pl.Boolean)
    return (*_of(trace, trace.python_calls), *_of(trace, trace.host_events.filter(is_own)))


def _of(trace: Trace, calls: pl.DataFrame) -> Iterator[StepWork]:
    """Those of some calls; one that takes part in several steps is none, such as the loop of the training."""
    steps, numbers = trace.steps, counted_steps(trace)
    begin, end = (steps[f"host_{side}_ns"].to_numpy() for side in ("start", "end"))
    is_function = calls is trace.python_calls
    is_left_out = _is_no_function if is_function else _is_step
    rows = calls.select("name", "thread", "start_ns", "dur_ns")
    is_meant = working_threads(trace)[rows["thread"].to_numpy()] & ~map_categories(rows["name"], is_left_out)
    rows = without_recursion(rows.filter(pl.Series(is_meant, dtype=pl.Boolean)))
    step = np.searchsorted(begin, rows["start_ns"].to_numpy(), "right") - 1
    rows = rows.with_columns(step=pl.Series(step)).filter(pl.col("step").is_in(numbers))
    until_end = pl.Series(end[rows["step"].to_numpy()], dtype=pl.Int64) - rows["start_ns"]
    rows = rows.filter(rows["dur_ns"] <= until_end)
    rows = rows.with_columns(ns=pl.Series(_without_waiting(trace, rows), dtype=pl.Int64))
    sums = rows.group_by("name", "step").agg(pl.col("ns").sum())
    sums = sums.sort("step")
    least_ns = LEAST_FRAC * float(np.mean((end - begin)[numbers])) if numbers else 0.0
    names = steps["name"].to_list()
    by_name = sums.group_by("name").agg("step", "ns", sum_ns=pl.col("ns").sum(), most_ns=pl.col("ns").max())
    by_name = by_name.filter(pl.col("most_ns") >= max(1.0, least_ns)).sort("sum_ns", "name")
    for name, of_steps, times in by_name.select("name", "step", "ns").rows():
        words = without_address(str(name))
        culprit = Culprit(function=words) if is_function else Culprit(range=words)
        yield StepWork(words, culprit, {names[step]: ns for step, ns in zip(of_steps, times, strict=True)})


def _without_waiting(trace: Trace, rows: pl.DataFrame) -> Ints:
    """How long each row takes without the host's waits for devices."""
    start, dur = (rows[name].to_numpy() for name in ("start_ns", "dur_ns"))
    return np.asarray(dur - length_within(host_activities(trace)["synchronizing"], start, start + dur))


def _is_no_function(frame: str) -> bool:
    return is_of_library(frame) or is_nameless(frame)


def _is_step(name: str) -> bool:
    return step_number(name) is not None
