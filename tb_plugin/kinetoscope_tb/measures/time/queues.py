"""Queues of streams: launched work that hasn't begun yet.

A stream's queue grows by one when the call that launches a row begins, and shrinks by one when the row begins on the
device; a call that launches many rows (a graph) adds them all at once. Rows with an unknown call, and rows that begin
before their call (because of clock errors), don't count.
"""

from __future__ import annotations

import numpy as np

from ...arrays.gather import NONE, gather
from ...arrays.intervals import Ints
from ...arrays.native import Array, Function
from ...trace.model import Trace
from .idle import axes

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


def _length_curve(joins: Array, leaves: Array) -> tuple[Array, Array]:
    """Return the instants at which the number of queued rows changes, and the new numbers; both inputs are sorted."""
    at, length = np.empty(joins.size + leaves.size, np.int64), np.empty(joins.size + leaves.size, np.int64)
    size = _queue_lengths(joins, leaves, at, length)
    return at[:size].copy(), length[:size].copy()
