"""What functions of the program take in each step: why a rank is late, compared with its other steps or other ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import polars as pl

from ..advice.model import Culprit
from ..arrays.intervals import Ints, length_within
from ..measures.python.program_calls import annotated_ranges, function_calls
from ..measures.time.host_activity import host_activities
from ..measures.time.step_subset import counted_steps
from ..names.python_frames import function_name, without_address
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

    @property
    def words(self) -> str:
        """Its name as it is shown."""
        return function_name(self.name)

    def typical_ns(self, steps: Sequence[str]) -> float:
        """Its median over some steps."""
        return median(self.ns.get(step, 0) for step in steps)


def step_work(trace: Trace) -> tuple[StepWork, ...]:
    """The functions, then the annotated ranges, that take some time in any counted step; inner ones first."""
    functions = _of(trace, function_calls(trace), lambda name: Culprit(function=name))
    return (*functions, *_of(trace, annotated_ranges(trace), lambda name: Culprit(range=name)))


def _of(trace: Trace, calls: pl.DataFrame, culprit: Callable[[str], Culprit]) -> Iterator[StepWork]:
    """Those of some calls."""
    steps, numbers = trace.steps, counted_steps(trace)
    rows = calls.with_columns(ns=pl.Series(_without_waiting(trace, calls), dtype=pl.Int64))
    sums = rows.group_by("name", "step").agg(pl.col("ns").sum())
    sums = sums.sort("step")
    lengths = (steps["host_end_ns"] - steps["host_start_ns"]).to_numpy()[numbers]
    least_ns = LEAST_FRAC * float(np.mean(lengths)) if numbers else 0.0
    names = steps["name"].to_list()
    by_name = sums.group_by("name").agg("step", "ns", sum_ns=pl.col("ns").sum(), most_ns=pl.col("ns").max())
    by_name = by_name.filter(pl.col("most_ns") >= max(1.0, least_ns)).sort("sum_ns", "name")
    for name, of_steps, times in by_name.select("name", "step", "ns").rows():
        words = without_address(str(name))
        yield StepWork(words, culprit(words), {names[step]: ns for step, ns in zip(of_steps, times, strict=True)})


def _without_waiting(trace: Trace, rows: pl.DataFrame) -> Ints:
    """How long each row takes without the host's waits for devices."""
    start, dur = (rows[name].to_numpy() for name in ("start_ns", "dur_ns"))
    return np.asarray(dur - length_within(host_activities(trace)["synchronizing"], start, start + dur))
