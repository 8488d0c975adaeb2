"""Queue length: the work of each stream that was launched and hasn't begun yet.

While it stays above 0 the host is ahead and the device never waits for it. Rows count from the start of their launching
call until they begin to run. A call that launches a whole graph adds all of its rows at once. Drivers let about a
thousand rows queue: at that length the host waits for the device.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.downsample import corners, means_between
from ...arrays.intervals import Ints
from ...measures.recording.contents import has_linked_work
from ...measures.time.queues import queue_lengths
from ...pictures import Lines
from ...table import COUNT, ID, INSTANT, NUMBER, Column, Table
from ...trace import Trace
from ...view import RowTime, View

MOST_POINTS = 4_000  # per stream: four per slice of time, more than there are pixels


class QueueLength(Table):
    """How many launches wait in each stream's queue; if there are very many changes, those that a chart can show."""

    key = ("device", "stream", "at_ns")
    picture = Lines(("queued",), series=("device", "stream"), means=("mean_queued",))

    device = Column(ID, "Index of the device.")
    stream = Column(ID, "Number of the stream.")
    at_ns = Column(
        INSTANT, "When the length changes; and the start of the first step and the end of the last, or of the range."
    )
    queued = Column(COUNT, "Kernels, copies and fills of the stream that were launched and haven't begun.")
    mean_queued = Column(
        NUMBER, "Mean of the same until the next row: another number if changes in between are left out."
    )


def queue_length(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """Streams in order, then time: from the first step to the last, or the range, with the lengths at its ends."""
    frames = []
    for index, stream, at, length in queue_lengths(trace):
        if device not in (None, index):
            continue
        at, length = _between(at, length, *_range(trace, from_ns, to_ns))
        points = corners(at, length, MOST_POINTS)
        columns = (np.full(points.size, index), np.full(points.size, stream), at[points], length[points])
        means = means_between(at, length, points)
        frames.append(pl.DataFrame(dict(zip(QueueLength.schema(), (*columns, means), strict=True))))
    return QueueLength.of(pl.concat(frames) if frames else pl.DataFrame(schema=QueueLength.schema()))


def _range(trace: Trace, from_ns: int | None, to_ns: int | None) -> tuple[int, int]:
    """The time to show: by default all steps, of which the sentence above speaks."""
    begin, end = trace.steps["start_ns"][0], trace.steps["end_ns"][-1]
    return begin if from_ns is None else from_ns, end if to_ns is None else to_ns


def _between(at: Ints, length: Ints, begin: int, end: int) -> tuple[Ints, Ints]:
    """The curve from one instant to another, with the lengths at both; a queue is empty until its first launch."""
    first, last = np.searchsorted(at, begin, "right"), np.searchsorted(at, end)
    before = length[first - 1] if first else 0
    inside = slice(first, max(first, last))
    until = [end] if end > begin else []
    ends = np.searchsorted(at, end, "right")
    return (
        np.concatenate([[begin], at[inside], until]).astype(np.int64),
        np.concatenate([[before], length[inside], [length[ends - 1] if ends else 0] * len(until)]).astype(np.int64),
    )


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
