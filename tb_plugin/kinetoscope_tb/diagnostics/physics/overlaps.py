"""Kernels of one stream that overlap, where each should begin after the one before has ended.

Small overlaps of many kernels are programmatic dependent launch (NVIDIA, compute capability 9.0 and later): a kernel
starts its prologue while the one before still runs (CUDA C++ Programming Guide, "Programmatic Dependent Launch"). Even
so they end in order: a kernel that outlasts a later one of its stream can't be, and its times are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...arrays.intervals import Ints, union
from ...names.text import percent, time
from ...trace import Diagnostic
from ...trace.model import Fault
from . import limits
from .times import Times

_AGAIN = "Record again with a newer driver and profiler library."


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """What overlaps within a stream."""
    start, end = times.start, times.end
    early, is_covering = np.zeros(start.size, bool), np.zeros(start.size, bool)
    follows, reach = end.copy(), start.copy()
    total, busy = 0, 0
    for rows in times.queues:
        follows[rows[:-1]] = start[rows[1:]]
        is_covering[rows] = times.is_kernel[rows] & _outlasts_later(end[rows])
        plain = rows[times.is_kernel[rows] & ~is_covering[rows]]
        reach[plain[1:]] = np.maximum.accumulate(end[plain])[:-1]
        early[plain[1:]] = start[plain[1:]] < reach[plain[1:]]
        first, last = union(start[plain], end[plain])
        total += int((end[plain] - start[plain]).sum())
        busy += int((last - first).sum())
    if is_covering.any():
        yield _of_covering(times, is_covering, follows)
    if total > (1 + limits.LEAST_EXCESS) * busy:
        overlaps = times.within_steps(start[early], np.minimum(reach, end)[early])
        yield _of_excess(int(early.sum()), int(times.is_kernel.sum()), total / busy - 1, overlaps)


def _outlasts_later(end: Ints) -> NDArray[np.bool_]:
    """Which rows of a stream, in the order of their start, last longer than one that begins later."""
    earliest = np.minimum.accumulate(end[::-1])[::-1]
    outlasts = np.zeros(end.size, bool)
    outlasts[:-1] = end[:-1] - earliest[1:] > limits.OVERLAP_NS
    return outlasts


def _of_covering(times: Times, is_covering: NDArray[np.bool_], follows: Ints) -> Diagnostic:
    count, longest = int(is_covering.sum()), int((times.end - times.start)[is_covering].max())
    name = times.trace.device_events["name"].cast(str)[int(is_covering.argmax())]
    plural = "s" * (count != 1)
    verb = "cover" if count != 1 else "covers"
    intervals = follows[is_covering], times.end[is_covering]
    return Diagnostic(
        "kernel_covers_others",
        count,
        f"{count} kernel{plural} last until later kernels of their stream have begun and ended: the longest for "
        f"{time(longest)}, the first is `{name}`. That can't be: their durations are wrong, and with them busy "
        f"time, utilization and the critical path. {_AGAIN}",
        times.first_offset(is_covering),
        fault=Fault(
            f"{count} kernel{plural} of up to {time(longest)} {verb} later ones of the same stream",
            frozenset({"idle", "kernel_times", "steps"}),
            _AGAIN,
            times.within_steps(*intervals) + times.within_tails(*intervals),
        ),
    )


def _of_excess(early: int, kernels: int, excess: float, overlapped_ns: int) -> Diagnostic:
    is_usual = early > limits.USUAL_OVERLAPS * kernels and excess <= limits.MOST_EXCESS
    why = " (programmatic dependent launch)" if is_usual else ""
    are_scaled = excess > limits.MOST_EXCESS  # all durations are wrong, or all starts
    fault = Fault(
        f"{early} of {kernels} kernels overlap, by {percent(excess)} of their time",
        frozenset({"idle", "kernel_times"}),
        _AGAIN,
        None if are_scaled else overlapped_ns,
    )
    return Diagnostic(
        "kernels_overlap",
        early,
        f"{early} of {kernels} kernels begin before the kernel before them on their stream has ended{why}. So the "
        f"times of kernels add up to {percent(excess)} more than the time in which any kernel of their stream runs. "
        "Sums by kernel and by operator keep each kernel's own time; utilization, the breakdown of steps and shares of "
        "the step count each instant once.",
        level="note" if is_usual else "warning",
        fault=None if is_usual else fault,
    )
