"""Queue length: how much of each stream's work was launched and hadn't begun yet.

While it stays above 0 the host is ahead and the device never waits for it. Calls count from when they begin, rows until
they begin; the one that runs is no longer in the queue. A call that launches a whole graph adds all of its rows at
once. Drivers let about a thousand rows queue: at such a length the host waits for the device.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.downsample import corners
from ...measures.time.queues import queue_lengths
from ...pictures import Lines
from ...table import COUNT, ID, INSTANT, Column, Table
from ...trace import Trace
from ...view import Part, RowTime, View

MOST_POINTS = 4_000  # of a stream: more than there are pixels, four per slice of time


class QueueLength(Table):
    """One row is one change of a stream's queue; where there are very many, those that a picture can show."""

    key = ("device", "stream", "at_ns")
    picture = Lines(("queued",), series=("device", "stream"))

    device = Column(ID, "Index of the device.")
    stream = Column(ID, "Number of the stream.")
    at_ns = Column(INSTANT, "From when on.")
    queued = Column(COUNT, "Kernels, copies and fills of the stream that were launched and haven't begun.")


def queue_length(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """Streams in order, then time; with from_ns or to_ns the part of it, from the length that it begins with."""
    found = []
    for index, stream, at, queued in queue_lengths(trace):
        if device not in (None, index):
            continue
        at, queued = _within(at, queued, from_ns, to_ns)
        kept = corners(at, queued, MOST_POINTS)
        columns = (np.full(kept.size, index), np.full(kept.size, stream), at[kept], queued[kept])
        found.append(pl.DataFrame(dict(zip(QueueLength.schema(), columns, strict=True))))
    return QueueLength.of(pl.concat(found) if found else pl.DataFrame(schema=QueueLength.schema()))


def _within(
    at: np.ndarray, queued: np.ndarray, from_ns: int | None, to_ns: int | None
) -> tuple[np.ndarray, np.ndarray]:
    last = at.size if to_ns is None else int(np.searchsorted(at, to_ns))
    if from_ns is None:
        return at[:last], queued[:last]
    first = int(np.searchsorted(at, from_ns, "right"))
    level = queued[first - 1] if first else 0
    return np.insert(at[first:last], 0, from_ns), np.insert(queued[first:last], 0, level)


VIEW = View(
    queue_length,
    table=QueueLength,
    title="Queue length",
    group="Device",
    within="moments",
    needs="device_events",
    hint="No device row is tied to the call that launched it. Record ProfilerActivity.CPU and the device's together.",
    place=Part("idle"),
    time=RowTime("at_ns"),
)
