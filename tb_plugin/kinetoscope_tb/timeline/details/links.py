"""How slices are linked: what launched what, what ran inside what, forward and backward.

The links are those of the trace (`trace/assemble.py`, `measures/calls/backward.py`), so the details of single slices
add up to the numbers of the other views. All rows here are rows of the trace's frames.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays import nesting
from ...arrays.gather import NONE, gather
from ...measures.calls.backward import forward_ops
from ...trace import Trace
from ...trace.results import once_per_recording

Rows = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Links:
    """Links between forward and backward operators, of a trace.

    Args:
        forward: For each host event the operator of the forward pass that it is the backward of, or NONE.
        backward: Backward host events, sorted by their forward operator; if several with the same one nest, the
            outermost.
        forward_of: The forward operator of each of those, sorted.
    """

    forward: Rows
    backward: Rows
    forward_of: Rows

    def backward_of(self, first: int, last: int) -> Rows:
        """The backward of the host events from `first` up to, not including, `last`, in order of time."""
        bounds = np.searchsorted(self.forward_of, [first, last])
        return np.sort(self.backward[bounds[0] : bounds[1]])


@once_per_recording
def links_of(trace: Trace) -> Links:
    """The links of a trace."""
    forward = forward_ops(trace)[: trace.host_events.height]
    is_inner = gather(forward, trace.host_events["parent"].to_numpy()) == forward
    rows = np.flatnonzero((forward >= 0) & ~is_inner).astype(np.int32)
    rows = rows[np.argsort(forward[rows], kind="stable")]
    return Links(forward, rows, forward[rows])


def inside(frame: pl.DataFrame, row: int) -> tuple[int, int]:
    """A row of a nested frame and all rows that it contains, directly or not: from the first up to the second number.

    They follow each other: a row that begins in this one and outlasts it ends what is inside (`arrays/nesting.py`).
    """
    start, dur = frame["start_ns"].to_numpy(), frame["dur_ns"].to_numpy()
    _, last = begun_between(frame, frame["thread"][row], int(start[row]), int(start[row] + dur[row]))
    first = row + 1
    outlasts = np.flatnonzero(start[first:last] + dur[first:last] > start[row] + dur[row])
    return row, first + int(outlasts[0]) if outlasts.size else max(first, last)


def begun_between(frame: pl.DataFrame, thread: int, from_ns: int, to_ns: int) -> tuple[int, int]:
    """The rows of a frame, sorted by thread, that began on a thread in [from_ns, to_ns)."""
    threads, start = frame["thread"].to_numpy(), frame["start_ns"].to_numpy()
    low, high = np.searchsorted(threads, [thread, thread + 1])
    first, last = low + np.searchsorted(start[low:high], [from_ns, to_ns])
    return int(first), int(last)


def open_at(frame: pl.DataFrame, thread: int, at: int) -> int:
    """The innermost row of a nested frame that was open on a thread at a time, or NONE."""
    start, dur, parent = (frame[name].to_numpy() for name in ("start_ns", "dur_ns", "parent"))
    low, high = np.searchsorted(frame["thread"].to_numpy(), [thread, thread + 1])
    count = int(np.searchsorted(start[low:high], at, "right"))
    row = int(low) + count - 1 if count else NONE
    while row >= 0 and start[row] + dur[row] <= at:
        row = int(parent[row])
    return row


def outward(frame: pl.DataFrame, row: int) -> list[int]:
    """A row of a nested frame and those around it, the innermost first; nothing for NONE."""
    return list(nesting.outward(frame["parent"].to_numpy(), row))


def launched_work(trace: Trace, frame: str, row: int) -> NDArray[np.int64] | None:
    """The device rows launched inside a host row, by start; None for a row that isn't on the host.

    For a range these are the launches of the calls in it or in ranges inside it, and of its operators. For a Python
    call, of the calls and operators that began on its thread while it was open.
    """
    calls, rows = trace.launches, getattr(trace, frame)
    device_launch, device_op = trace.device_events["launch"].to_numpy(), trace.recorded_op.to_numpy()
    if frame == "host_events":
        low, high = inside(rows, row)
        host = gather(calls["host"].to_numpy(), device_launch)
        return np.flatnonzero(_within(host, low, high) | _within(device_op, low, high))
    if frame == "launches":
        end = int(rows["start_ns"][row] + rows["dur_ns"][row])
        low, high = begun_between(rows, rows["thread"][row], int(rows["start_ns"][row]), end)
        return np.flatnonzero(_within(device_launch, row, max(row + 1, high)))
    if frame == "python_calls":
        begin, thread = int(rows["start_ns"][row]), rows["thread"][row]
        end = begin + int(rows["dur_ns"][row])
        by_call = _within(device_launch, *begun_between(calls, thread, begin, end))
        return np.flatnonzero(by_call | _within(device_op, *begun_between(trace.host_events, thread, begin, end)))
    return None


def _within(rows: Rows, first: int, last: int) -> NDArray[np.bool_]:
    return (rows >= first) & (rows < last)
