"""Launches without GPU events: the profiler's buffers were lost, or the work ran after the end.

Between the last event that was launched before such a launch and the first that was launched after it, a device may
have been busy with what is missing. Copies, fills and what is launched while a graph is captured need no events; where
most of the steps is such a capture, numbers of devices say nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...arrays.intervals import Ints
from ...measures.recording.lost_launches import (
    MOSTLY_CAPTURED,
    capture_spans,
    lost_launches,
    silent_steps,
    work_launches,
)
from ...measures.recording.options import how_to_record_less
from ...measures.recording.server import RECORD_REPLAYS
from ...names import text
from ...trace import Diagnostic
from ...trace.model import Fault, NumberKind
from . import limits
from .times import Times

_UNDERMINED: frozenset[NumberKind] = frozenset({"idle", "launches", "steps", "totals"})
_OF_CAPTURES: frozenset[NumberKind] = frozenset({"idle", "launches", "totals"})
_NOTICEABLE = 0.1  # of the steps: captures are noted
_LATER = "Let the device finish before the profiler stops, and record one step more than is needed."


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """What was launched, but has no row."""
    yield from _of_captures(times)
    yield from _of_silent_steps(times)
    launches_work, missing = work_launches(times.trace), lost_launches(times.trace)
    if not missing.any():
        return
    has_row = np.zeros(times.call_start.size, bool)
    has_row[times.launch[times.is_linked]] = True
    last = times.call_start[has_row].max()
    blind = _blind_times(times, np.flatnonzero(launches_work), has_row)
    at_end = times.call_start[missing] > last
    parts = ((missing & (times.call_start < last), ~at_end), (missing & (times.call_start >= last), at_end))
    for (calls, rows), describe in zip(parts, (_of_lost, _of_end), strict=True):
        if calls.any():
            affected_ns = times.idle_within_steps(blind[0][rows], blind[1][rows])
            yield describe(times, calls, int(launches_work.sum()), affected_ns)


def _of_captures(times: Times) -> Iterator[Diagnostic]:
    """That graphs are captured for a noticeable share of the steps; numbers say nothing where it is most of them."""
    spans = capture_spans(times.trace)
    captured_ns = times.within_steps(*spans)
    share = times.share(captured_ns)
    if share < _NOTICEABLE:
        return
    fact = f"Graphs are captured for {text.percent(share)} of the steps, and nothing that is captured runs then"
    is_most = share >= MOSTLY_CAPTURED
    yield Diagnostic(
        "graphs_captured",
        spans[0].size,
        f"{fact}: kernels, idle time and utilization here say nothing of the replays. {RECORD_REPLAYS}",
        level="warning" if is_most else "note",
        fault=Fault(fact, _OF_CAPTURES, RECORD_REPLAYS, captured_ns) if is_most else None,
    )


def _of_silent_steps(times: Times) -> Iterator[Diagnostic]:
    """Steps whose launches are lost with their work."""
    steps, silent = times.trace.steps, silent_steps(times.trace)
    if not silent.any():
        return
    start, end = (steps[side].to_numpy()[silent] for side in ("start_ns", "end_ns"))
    affected_ns = times.idle_within_steps(start, end)
    fact = f"In {int(silent.sum())} of {silent.size} steps operators launch nothing that launch work in the others"
    yield Diagnostic(
        "launches_lost",
        int(silent.sum()),
        f"{fact}: the profiler's buffers overflowed. For {text.percent(times.share(affected_ns))} of the steps the "
        f"device may have been busy with what is missing. {_record_less(times)}",
        level="loss",
        fault=Fault(fact, _UNDERMINED, _record_less(times), affected_ns),
    )


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
        f"their durations, and for {part} of the steps the device may have been busy with them. "
        f"{_record_less(times)}",
        int(times.trace.launches["offset"].to_numpy()[calls].min()),
        level="loss",
        fault=Fault(f"{of} have no GPU event", _UNDERMINED, _record_less(times), affected_ns),
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


def _record_less(times: Times) -> str:
    return f"{text.capitalize(how_to_record_less(times.trace))}, so that the profiler's buffers hold them."
