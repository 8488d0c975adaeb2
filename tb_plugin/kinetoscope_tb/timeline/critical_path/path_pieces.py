"""The critical path as the timeline draws it: its pieces in a range of time, each with the slice that it runs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...critical_path.classes import CLASSES
from ...critical_path.edges import REASONS
from ...critical_path.explanation import critical_paths
from ...critical_path.names import EventRows
from ...distributed.path.paths import PARTS
from ...trace import Trace
from ..core.model import Timeline
from ..details.slice_summary import slice_summaries

Ints = NDArray[np.int64]
WAITS = ("launch latency", "between GPU events", "unexplained wait")
"""Parts of a path in which nothing runs: they are between slices."""


def _slices(timeline: Timeline, events: EventRows) -> NDArray[np.int32]:
    """The slice of each segment: of its GPU event, else of its call, else of its host event; NONE without any."""
    number = timeline.slices_of("host_events", events.event)
    for frame, rows in (("launches", events.call), ("device_events", events.row)):
        numbers = timeline.slices_of(frame, rows)
        number = np.where(numbers >= 0, numbers, number)
    return number


@dataclass(frozen=True)
class PathPieces:
    """Pieces of critical paths, in the order of the paths.

    Attributes:
        start, end: Of each piece.
        part: What it consists of: an index into PARTS.
        reason: Why it could not begin earlier: an index into REASONS.
        number: The slice that it is in: of a call, a range or a row; NONE in a wait, and where nothing was recorded.
        axis: The thread or stream that it is on: a number.
        segment: The segment of a path across ranks that it belongs to; 0 for paths within one.
    """

    start: Ints
    end: Ints
    part: NDArray[np.int8]
    reason: NDArray[np.int8]
    number: NDArray[np.int32]
    axis: Ints
    segment: Ints

    @classmethod
    def of(cls, trace: Trace, timeline: Timeline) -> PathPieces:
        """Return the paths of all steps of a trace."""
        path = critical_paths(trace)
        return cls.of_path(trace, timeline, path, np.zeros(path.height, np.int64))

    @classmethod
    def of_path(cls, trace: Trace, timeline: Timeline, path: pl.DataFrame, segment: Ints) -> PathPieces:
        """Return the rows of PATH, or of its columns with a `class` of PARTS, each with its segment."""
        part = path["class"].to_numpy()
        number = _slices(timeline, EventRows.of_path(path))
        is_wait = np.isin(part, [CLASSES.index(name) for name in WAITS])
        start, end = path["start_ns"].to_numpy(), path["end_ns"].to_numpy()
        number = np.where(is_wait, NONE, number).astype(np.int32)
        stream = trace.device_events.select(pl.struct("device", "stream").rank("dense")).to_series().to_numpy()
        thread, row = path["thread"].to_numpy(), path["device_event"].to_numpy()
        axis = np.where(thread >= 0, thread, -1 - gather(stream.astype(np.int64), row, missing=0))
        return cls(start, end, part, path["kind"].to_numpy(), number, axis.astype(np.int64), segment)

    def within(self, timeline: Timeline, from_ns: int, to_ns: int, buckets: int) -> list[dict[str, Any]]:
        """The pieces that reach into a range, in their order.

        Each has its start and end, part, reason, and a summary of its slice. Short pieces that follow each other on one
        thread or stream, and begin in the same of `buckets` equal parts of the range, are grouped: the longest of them
        stands for all, with their `count`.
        """
        return [piece for piece, _, _ in self.groups(timeline, from_ns, to_ns, buckets)]

    def groups(
        self, timeline: Timeline, from_ns: int, to_ns: int, buckets: int
    ) -> list[tuple[dict[str, Any], int, int]]:
        """The answers of `within`, each with its first and its last segment.

        A group is of one segment, or of consecutive ones.
        """
        inside = np.flatnonzero((self.end > from_ns) & (self.start < to_ns))
        if not inside.size:
            return []
        start, end = self.start[inside], self.end[inside]
        wide = max(1, (to_ns - from_ns) // buckets)
        bucket = np.maximum(start - from_ns, 0) // wide
        is_short = end - start < wide
        same = is_short[1:] & is_short[:-1] & (bucket[1:] == bucket[:-1]) & (np.diff(self.axis[inside]) == 0)
        same &= np.diff(self.segment[inside]) <= 1
        first = np.flatnonzero(np.append(True, ~same))
        group = np.repeat(np.arange(first.size), np.diff(np.append(first, inside.size)))
        longest = inside[np.lexsort((start - end, group))[first]]
        summaries = iter(slice_summaries(timeline, self.number[longest]))
        last = np.append(first[1:], inside.size) - 1
        columns = (start[first], end[last], self.part[longest], self.reason[longest], self.number[longest])
        segments = self.segment[inside[first]], self.segment[inside[last]]
        rows = zip(*(c.tolist() for c in (*columns, last - first + 1, *segments)), strict=True)
        return [
            (
                {
                    "from_ns": begin,
                    "to_ns": stop,
                    "part": PARTS[part],
                    "reason": REASONS[reason],
                    "slice": next(summaries) if number >= 0 else None,
                    "count": count,
                },
                of,
                to,
            )
            for begin, stop, part, reason, number, count, of, to in rows
        ]
