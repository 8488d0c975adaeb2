"""Launches without GPU events: the profiler's buffers were lost, or the work ran after the end.

Between the last event that was launched before such a launch and the first that was launched after it, a device may
have been busy with what is missing. Copies, fills and what is launched while a graph is captured need no events.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import map_categories
from ...arrays.intervals import Ints
from ...names import text
from ...names.calls import launches_graph, launches_kernel
from ...trace import Diagnostic, Trace
from ...trace.model import Fault, NumberKind
from . import limits
from .times import Times

_UNDERMINED: frozenset[NumberKind] = frozenset({"idle", "launches", "steps", "totals"})
_FEWER = "Record fewer steps at a time, so that the profiler's buffers hold them."
_LATER = "Let the device finish before the profiler stops, and record one step more than is needed."


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """What was launched, but has no row."""
    has_row = np.zeros(times.call_start.size, bool)
    has_row[times.launch[times.is_linked]] = True
    launches_work = _launches_work(times.trace)
    missing = launches_work & ~has_row
    if not missing.any() or not has_row.any():
        return
    last = times.call_start[has_row].max()
    blind = _blind_times(times, np.flatnonzero(launches_work), has_row)
    at_end = times.call_start[missing] > last
    parts = ((missing & (times.call_start < last), ~at_end), (missing & (times.call_start >= last), at_end))
    for (calls, rows), describe in zip(parts, (_of_lost, _of_end), strict=True):
        if calls.any():
            affected_ns = times.idle_within_steps(blind[0][rows], blind[1][rows])
            yield describe(times, calls, int(launches_work.sum()), affected_ns)


def kernel_launches(trace: Trace) -> NDArray[np.bool_]:
    """Which calls launch one kernel. Copies and fills may have no row of their own."""
    return map_categories(trace.launches["name"], launches_kernel)


def _launches_work(trace: Trace) -> NDArray[np.bool_]:
    """Which calls must have rows: launches of kernels and graphs, but for those that are captured."""
    launches: NDArray[np.bool_] = kernel_launches(trace) | map_categories(trace.launches["name"], launches_graph)
    return launches & ~_in_capture(trace)


def _blind_times(times: Times, calls: NDArray[np.int64], has_row: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """From when to when each launch without rows may have run something, in the order of `launches`."""
    order = np.argsort(times.call_start[calls], kind="stable")
    ends = np.full(times.call_start.size, np.iinfo(np.int64).min)
    starts = np.full(times.call_start.size, max(times.trace.window[1], int(times.steps[1].max(initial=0))))
    events = np.flatnonzero(times.is_linked)
    np.maximum.at(ends, times.launch[events], times.end[events])
    np.minimum.at(starts, times.launch[events], times.start[events])
    begin, finish = np.empty(calls.size, np.int64), np.empty(calls.size, np.int64)
    begin[order] = np.maximum(np.maximum.accumulate(ends[calls[order]]), times.call_start[calls[order]])
    finish[order] = np.minimum.accumulate(starts[calls[order]][::-1])[::-1]
    is_lost = ~has_row[calls]
    return begin[is_lost], finish[is_lost]


def _of_lost(times: Times, calls: NDArray[np.bool_], n_launches: int, affected_ns: int) -> Diagnostic:
    count = int(calls.sum())
    part = text.percent(times.share(affected_ns))
    of = f"{count} of {n_launches} launches ({text.percent(count / n_launches)})"
    return Diagnostic(
        "kernels_lost",
        count,
        f"{of} have no GPU event, though later ones do: the profiler's buffers overflowed. Device times are too low by "
        f"their durations, and for {part} of the steps the device may have been busy with them. {_FEWER}",
        int(times.trace.launches["offset"].to_numpy()[calls].min()),
        level="loss",
        fault=Fault(f"{of} have no GPU event", _UNDERMINED, _FEWER, affected_ns),
    )


def _of_end(times: Times, calls: NDArray[np.bool_], n_launches: int, affected_ns: int) -> Diagnostic:
    count = int(calls.sum())
    share = times.share(affected_ns)
    of = f"the last {count} of {n_launches} launches"
    return Diagnostic(
        "kernels_after_end",
        count,
        f"No GPU events belong to {of}: they ran after the recording ended, or were lost. For {text.percent(share)} of "
        f"the steps the device may have been busy with them. {_LATER}",
        level="warning" if share > limits.NOTICEABLE else "note",
        fault=Fault(f"No GPU events belong to {of}", _UNDERMINED, _LATER, affected_ns),
    )


def _in_capture(trace: Trace) -> NDArray[np.bool_]:
    """Which calls were made during graph capture, when they launch nothing."""
    launches = trace.launches
    start = launches["start_ns"].to_numpy()
    begins = np.sort(start[map_categories(launches["name"], lambda name: "StreamBeginCapture" in name)])
    ends = np.sort(start[map_categories(launches["name"], lambda name: "StreamEndCapture" in name)])
    is_inside: NDArray[np.bool_] = np.searchsorted(begins, start, "right") > np.searchsorted(ends, start, "left")
    return is_inside
