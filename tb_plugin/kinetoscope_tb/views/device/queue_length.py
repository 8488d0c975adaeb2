"""Queue length: the work of each stream that was launched and hasn't begun yet.

While it stays above 0 the host is ahead and the device never waits for it. Rows count from the start of their launching
call until they begin to run. A call that launches a whole graph adds all of its rows at once. Drivers let about a
thousand rows queue: at that length the host waits for the device.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.downsample import corners
from ...measures.recording.contents import has_linked_work
from ...measures.time.queues import queue_lengths
from ...pictures import Lines
from ...table import COUNT, ID, INSTANT, Column, Table
from ...trace import Trace
from ...view import RowTime, View

MOST_POINTS = 4_000  # per stream: four per slice of time, more than there are pixels


class QueueLength(Table):
    """How many launches wait in each stream's queue; if there are very many changes, those that a chart can show."""

    key = ("device", "stream", "at_ns")
    picture = Lines(("queued",), series=("device", "stream"))

    device = Column(ID, "Index of the device.")
    stream = Column(ID, "Number of the stream.")
    at_ns = Column(INSTANT, "When the length changes.")
    queued = Column(COUNT, "Kernels, copies and fills of the stream that were launched and haven't begun.")


def queue_length(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """Streams in order, then time; with from_ns or to_ns, only that range, including the length at its start."""
    frames = []
    for index, stream, at, length in queue_lengths(trace):
        if device not in (None, index):
            continue
        at, length = _within(at, length, from_ns, to_ns)
        points = corners(at, length, MOST_POINTS)
        columns = (np.full(points.size, index), np.full(points.size, stream), at[points], length[points])
        frames.append(pl.DataFrame(dict(zip(QueueLength.schema(), columns, strict=True))))
    return QueueLength.of(pl.concat(frames) if frames else pl.DataFrame(schema=QueueLength.schema()))


def _within(
    at: np.ndarray, length: np.ndarray, from_ns: int | None, to_ns: int | None
) -> tuple[np.ndarray, np.ndarray]:
    last = at.size if to_ns is None else int(np.searchsorted(at, to_ns))
    if from_ns is None:
        return at[:last], length[:last]
    first = int(np.searchsorted(at, from_ns, "right"))
    level = length[first - 1] if first else 0
    return np.insert(at[first:last], 0, from_ns), np.insert(length[first:last], 0, level)


VIEW = View(
    queue_length,
    table=QueueLength,
    title="Queue length",
    entry="Idle",
    within="moments",
    needs=has_linked_work,
    hint="No GPU event is linked to its launch. Record ProfilerActivity.CPU together with the device's activity.",
    time=RowTime("at_ns"),
)
