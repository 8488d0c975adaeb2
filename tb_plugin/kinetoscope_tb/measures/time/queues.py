"""Queues of streams: launched work that hasn't begun yet.

A stream's queue grows by one when the call that launches a row begins, and shrinks by one when the row begins on the
device; a call that launches many rows (a graph) adds them all at once. Rows with an unknown call, and rows that begin
before their call (because of clock errors), don't count.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays.gather import NONE, gather
from ...arrays.intervals import Ints
from ...arrays.native import Array, Function
from ...trace.model import Trace
from .idle import Windows, axes

_queue_lengths = Function("queue_lengths")


def queue_lengths(trace: Trace) -> list[tuple[int, int, Ints, Ints]]:
    """Return (device, stream, instants, queue length from each instant on) per stream that has launches."""
    rows = trace.device_events
    start = rows["start_ns"].to_numpy()
    launch_ns = gather(trace.launches["start_ns"].to_numpy(), rows["launch"].to_numpy())
    is_queued = (launch_ns != NONE) & (launch_ns < start)
    curves = []
    for device, stream, group in axes(trace, "stream"):
        group = group[is_queued[group]]
        if group.size:
            curves.append((device, stream, *_length_curve(np.sort(launch_ns[group]), start[group])))
    return curves


class QueueUse(NamedTuple):
    """How a stream's queue was filled.

    Attributes:
        device: Index of the device.
        stream: Number of the stream.
        empty_ns: Time in which nothing was queued.
        most: The largest number of queued rows.
    """

    device: int
    stream: int
    empty_ns: int
    most: int


def queue_uses(trace: Trace, windows: Windows) -> list[QueueUse]:
    """How the queue of each stream that has launches was filled, from the first window's start to the last one's end.

    Host late (idle_causes.py) is at most the time in which the queue of any stream of the device was empty.
    """
    begin, end = int(windows.start[0]), int(windows.end[-1])
    uses = []
    for device, stream, at, length in queue_lengths(trace):
        lengths_ns = np.diff(np.clip(at, begin, end), append=end)
        is_filled = (length > 0) & (lengths_ns > 0)
        uses.append(
            QueueUse(
                device, stream, end - begin - int(lengths_ns[is_filled].sum()), int(length[is_filled].max(initial=0))
            )
        )
    return uses


def _length_curve(joins: Array, leaves: Array) -> tuple[Array, Array]:
    """Return the instants at which the number of queued rows changes, and the new numbers; both inputs are sorted."""
    at, length = np.empty(joins.size + leaves.size, np.int64), np.empty(joins.size + leaves.size, np.int64)
    size = _queue_lengths(joins, leaves, at, length)
    return at[:size].copy(), length[:size].copy()
