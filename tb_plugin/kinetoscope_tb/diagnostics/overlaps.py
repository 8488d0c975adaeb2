"""Kernels of one stream that overlap, where each should begin after the one before has ended.

Small overlaps of many kernels are programmatic dependent launch (NVIDIA, compute capability 9.0 and later): a kernel
starts its prologue while the one before still runs (CUDA C++ Programming Guide, "Programmatic Dependent Launch"). A
kernel that covers many later ones of its stream can't be: its times are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..arrays.intervals import Ints, union
from ..measures.time.idle import axes
from ..trace import Diagnostic, Trace

_LEAST_EXCESS = 0.01  # of the time in which any kernel runs: less changes no share
_COVERED = 8  # later kernels that begin and end within one of their stream
_MANY = 0.1  # of the kernels overlap: then it is how they were launched, not single wrong times


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """What overlaps within a stream."""
    device = trace.device_events
    start = device["start_ns"].to_numpy()
    end = start + device["dur_ns"].to_numpy()
    is_kernel = (device["kind"] == "kernel").to_numpy()
    early, covering = np.zeros(start.size, bool), np.zeros(start.size, bool)
    total, busy = 0, 0
    for _, _, rows in axes(trace, "stream"):
        own = rows[is_kernel[rows]]
        covering[own] = _covers_many(start[own], end[own])
        plain = own[~covering[own]]
        early[plain[1:]] = start[plain[1:]] < np.maximum.accumulate(end[plain])[:-1]
        first, last = union(start[plain], end[plain])
        total += int((end[plain] - start[plain]).sum())
        busy += int((last - first).sum())
    if covering.any():
        yield _of_covering(trace, covering, end - start)
    if total > (1 + _LEAST_EXCESS) * busy:
        yield _of_excess(int(early.sum()), int(is_kernel.sum()), total / busy - 1)


def _covers_many(start: Ints, end: Ints) -> NDArray[np.bool_]:
    """Which kernels of a stream, in the order of their start, last until many later ones have ended."""
    begun = np.searchsorted(start, end, "left") - np.arange(start.size) - 1
    candidates = np.flatnonzero(begun >= _COVERED)
    covers = np.zeros(start.size, bool)
    for i in candidates:
        inside = end[i + 1 : i + 1 + begun[i]] <= end[i]
        covers[i] = inside.sum() >= _COVERED
    return covers


def _of_covering(trace: Trace, covering: NDArray[np.bool_], dur: Ints) -> Diagnostic:
    first, longest = int(covering.argmax()), int(np.where(covering, dur, 0).max())
    name = trace.device_events["name"].cast(str)[first]
    return Diagnostic(
        "kernel_covers_others",
        int(covering.sum()),
        f"Kernels last while {_COVERED} and more later kernels of their stream begin and end: the longest for "
        f"{longest / 1e6:.1f} ms, the first is `{name}`. That can't be: their durations are wrong, and with them busy "
        "time, utilization and the critical path. Record again with a newer driver and profiler library.",
        int(trace.device_events["offset"][first]),
    )


def _of_excess(early: int, kernels: int, excess: float) -> Diagnostic:
    is_usual = early > _MANY * kernels
    why = " (programmatic dependent launch)" if is_usual else ""
    return Diagnostic(
        "kernels_overlap",
        early,
        f"{early} of {kernels} kernels begin before the kernel before them on their stream has ended{why}. So the "
        f"times of kernels add up to {100 * excess:.1f} % more than the time in which any of them runs. Sums by kernel "
        "and by operator keep each kernel's own time; utilization, the breakdown of steps and shares of the step count "
        "each instant once.",
        level="note" if is_usual else "warning",
    )
