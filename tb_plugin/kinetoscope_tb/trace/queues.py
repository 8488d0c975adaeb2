"""Queues of streams: how much was launched and hadn't begun yet.

A stream's queue grows by one when the call that launches a row begins, and shrinks by one when the row begins on the
device; a call that launches many rows (a graph) adds them all at once. Rows whose call isn't known never queued, as far
as is known; rows that begin before their call (clocks of host and device differ by a little) waited for no time.
"""

from __future__ import annotations

import numpy as np

from ..intervals import Ints
from .idle import axes
from .lookup import take
from .model import NONE, Trace


def queue_lengths(trace: Trace) -> list[tuple[int, int, Ints, Ints]]:
    """Return (device, stream, instants, length from each instant on) per stream that has launches; no two are alike."""
    rows = trace.device_events
    start = rows["start_ns"].to_numpy()
    launched = take(trace.launches["start_ns"].to_numpy(), rows["launch"].to_numpy())
    queued = (launched != NONE) & (launched < start)
    curves = []
    for device, stream, group in axes(trace, "stream"):
        group = group[queued[group]]
        if group.size:
            curves.append((device, stream, *_counted(launched[group], start[group])))
    return curves


def _counted(joins: Ints, leaves: Ints) -> tuple[Ints, Ints]:
    """When the number that joined and haven't left changes, and what it is from then on."""
    joins, leaves = np.sort(joins, kind="stable"), np.sort(leaves, kind="stable")  # nearly sorted: this is fast
    at = np.sort(np.concatenate([joins, leaves]), kind="stable")
    at = at[np.diff(at, append=at[-1:] + 1) != 0]
    length = np.searchsorted(joins, at, "right") - np.searchsorted(leaves, at, "right")
    real = np.diff(length, prepend=0) != 0
    return at[real], length[real].astype(np.int64)
