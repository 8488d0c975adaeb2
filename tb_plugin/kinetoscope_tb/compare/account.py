"""What the time of a step consists of, to the nanosecond: the work of its device rows, what overlaps, and idle time.

    step = kernels − overlap + exposed communication + exposed copies + idle time

Kernels count as long as they run within the step, and where several run at once, all but one of them overlap.
Communication counts while no kernel computes, and copies and fills while no other row runs, as in
measures/time/exposure.py; of several that run then, the one that began first counts. Idle is the time in which no
device has a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..arrays.intervals import Intervals, Ints, length_within, merge, union
from ..measures.time.idle import Windows
from ..measures.time.idle_causes import gap_parts
from ..measures.time.step_subset import counted_steps
from ..trace import Trace
from ..trace.row_filters import device_ends

GAPS = {"cause": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
"""One row is a part of a gap with one cause (CAUSES in measures/time/idle_causes.py), in order of time."""


@dataclass(frozen=True)
class Account:
    """The time of one step.

    Args:
        step: Its name.
        length_ns: How long it lasts: the sum of `work_ns` and of the gaps, minus that of `overlaps_ns`.
        rows: The rows of device_events that run in it.
        work_ns: What each of them counts.
        overlaps_ns: How much of a kernel runs at the same time as one that began before it; else 0.
        gaps: Idle time: GAPS.
    """

    step: str
    length_ns: int
    rows: Ints
    work_ns: Ints
    overlaps_ns: Ints
    gaps: pl.DataFrame


def account_of_typical_step(trace: Trace) -> Account:
    """The account of the counted step whose length is the median; of an even number the lower one."""
    steps = trace.steps.with_row_index("nth")[counted_steps(trace)]
    in_order = steps.sort(pl.col("end_ns") - pl.col("start_ns"), "nth")
    return _account(trace, int(in_order["nth"][(in_order.height - 1) // 2]))


def _account(trace: Trace, nth: int) -> Account:
    step, device = trace.steps.row(nth, named=True), trace.device_events
    begin, end = step["start_ns"], step["end_ns"]
    starts = device["start_ns"].to_numpy().clip(begin, end)
    ends = device_ends(trace).clip(begin, end)
    rows = np.flatnonzero(ends > starts)
    work_ns, overlaps_ns = _work(device[rows], starts[rows], ends[rows])
    return Account(step["name"], end - begin, rows, work_ns, overlaps_ns, _gaps(trace, step["name"], begin, end))


def _work(device: pl.DataFrame, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """What each row counts, and how much of it overlaps."""
    communicates = device["is_communication"].to_numpy()
    computes = (device["kind"] == "kernel").to_numpy() & ~communicates
    work_ns, overlaps_ns, busy = ends - starts, np.zeros(starts.size, np.int64), union(starts[:0], ends[:0])
    overlaps_ns[computes] = work_ns[computes] - _exposed_times(starts[computes], ends[computes], busy)
    busy = union(starts[computes], ends[computes])
    for group in (communicates, ~computes & ~communicates):
        work_ns[group] = _exposed_times(starts[group], ends[group], busy)
        busy = merge([busy, union(starts[group], ends[group])])
    return work_ns, overlaps_ns


def _exposed_times(starts: Ints, ends: Ints, busy: Intervals) -> Ints:
    """How long each row is the first to run of those that run while nothing else is busy."""
    order = np.argsort(starts, kind="stable")
    end_before = np.maximum.accumulate(np.append(np.iinfo(np.int64).min, ends[order]))[:-1]
    first, last = np.maximum(starts[order], end_before), np.maximum(ends[order], end_before)
    times = np.empty(starts.size, np.int64)
    times[order] = last - first - length_within(busy, first, last)
    return times


def _gaps(trace: Trace, name: str, begin: int, end: int) -> pl.DataFrame:
    """Idle time of all devices together between two instants."""
    parts = gap_parts(trace, "worker", Windows([name], np.array([begin]), np.array([end])))
    return parts.select(pl.col("cause").cast(pl.String), "start_ns", "end_ns").sort("start_ns")
