"""The rows of each stream in execution order, with their launch times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather
from ..measures.time.idle import axes
from ..trace import Trace

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]


MOST_STREAMS = 256  # that are compared with each other; no known program uses as many


@dataclass(frozen=True)
class Stream:
    """One stream: its rows of device_events, in order.

    Attributes:
        device: Index of its device.
        number: Of the stream.
        rows: In the order of their start.
        start: When each began; likewise `end`.
        launched: When the launching call of each row began, or the row itself if no call is known; never earlier than
            that of the previous row, since a stream runs in launch order.
        ended: When each row and all before it had ended.
        last: The index in `rows` of the row whose end that is.
    """

    device: int
    number: int
    rows: Rows
    start: Ints
    end: Ints
    launched: Ints
    ended: Ints
    last: Ints

    def last_ended(self, launched_before: Ints, by: Ints) -> tuple[Rows, NDArray[np.bool_]]:
        """Return the row that ended last of those launched before an instant and ended by another one, `by`.

        The second array says whether all rows launched before had ended by then.
        """
        launched_count = np.searchsorted(self.launched, launched_before, "left")
        position = np.minimum(launched_count, np.searchsorted(self.ended, by, "right")) - 1
        rows = np.where(position >= 0, self.rows[self.last[np.maximum(position, 0)]], NONE)
        return rows.astype(np.int32), position == launched_count - 1


@dataclass(frozen=True)
class Streams:
    """All streams of a worker.

    Attributes:
        streams: Sorted by device and number.
        of: For each row of device_events the index of its stream in `streams`.
    """

    streams: list[Stream]
    of: Rows

    @property
    def busiest(self) -> list[tuple[int, Stream]]:
        """(index, stream) in order: all, or the MOST_STREAMS with the most rows.

        Comparing every call with every stream takes time proportional to the product.
        """
        if len(self.streams) <= MOST_STREAMS:
            return list(enumerate(self.streams))
        largest = sorted(range(len(self.streams)), key=lambda number: -self.streams[number].rows.size)[:MOST_STREAMS]
        return [(number, self.streams[number]) for number in sorted(largest)]

    @classmethod
    def of_trace(cls, trace: Trace) -> Streams:
        """Return the streams of a trace."""
        device = trace.device_events
        start = device["start_ns"].to_numpy()
        end = start + device["dur_ns"].to_numpy()
        call_start = gather(trace.launches["start_ns"].to_numpy(), device["launch"].to_numpy())
        launch_start = np.where(device["launch"].to_numpy() >= 0, call_start, start)
        streams: list[Stream] = []
        of = np.full(device.height, NONE, np.int32)
        for index, number, rows in axes(trace, "stream"):
            of[rows] = len(streams)
            end_so_far = np.maximum.accumulate(end[rows])
            last = np.maximum.accumulate(np.where(end[rows] == end_so_far, np.arange(rows.size), 0))
            since = np.maximum.accumulate(launch_start[rows])
            streams.append(Stream(index, number, rows, start[rows], end[rows], since, end_so_far, last))
        return cls(streams, of)
