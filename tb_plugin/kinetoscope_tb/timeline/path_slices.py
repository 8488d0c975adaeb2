"""The critical path as the timeline draws it: its stretches in a range of time, each with the slice that it runs in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..dependencies import CLASSES, REASONS, Graph, critical_path
from ..trace import NONE, Trace
from ..trace.lookup import take
from .briefs import briefs
from .model import Timeline

Ints = NDArray[np.int64]
WAITS = ("launch latency", "between rows", "unexplained wait")
"""Parts of a path in which nothing runs: they lie between slices."""


@dataclass(frozen=True)
class PathSlices:
    """The stretches of the critical paths of all steps, in order of time.

    Attributes:
        start: Of each stretch; likewise its end, its class (a place in CLASSES), and why it could not begin earlier.
        number: The slice that it lies in: of a call, a range or a row; NONE in a wait, and where nothing was recorded.
        axis: The thread or stream that it is on: a number.
    """

    start: Ints
    end: Ints
    part: NDArray[np.int8]
    reason: NDArray[np.int8]
    number: NDArray[np.int32]
    axis: Ints

    @classmethod
    def of(cls, trace: Trace, timeline: Timeline) -> PathSlices:
        """Return the paths of a trace."""
        path = critical_path(trace, Graph.of(trace))
        columns = {name: path[name].to_numpy() for name in ("host_event", "launch", "device_event")}
        part = path["class"].to_numpy()
        number = np.full(path.height, NONE, np.int32)
        for frame, column in (("host_events", "host_event"), ("launches", "launch"), ("device_events", "device_event")):
            found = timeline.slices_of(frame, columns[column])
            number = np.where(found >= 0, found, number)
        is_wait = np.isin(part, [CLASSES.index(name) for name in WAITS])
        start, end = path["start_ns"].to_numpy(), path["end_ns"].to_numpy()
        number = np.where(is_wait, NONE, number).astype(np.int32)
        stream = trace.device_events.select(pl.struct("device", "stream").rank("dense")).to_series().to_numpy()
        thread, row = path["thread"].to_numpy(), path["device_event"].to_numpy()
        axis = np.where(thread >= 0, thread, -1 - take(stream.astype(np.int64), row, missing=0))
        return cls(start, end, part, path["kind"].to_numpy(), number, axis.astype(np.int64))

    def within(self, timeline: Timeline, from_ns: int, to_ns: int, buckets: int) -> list[dict[str, Any]]:
        """The stretches that reach into a range, in order of time.

        Each says when it starts and ends, its part, its reason and the slice that it lies in, in brief. Short ones that
        follow each other on one thread or stream, and begin in the same of so many equal parts of the range, are told
        as one: as the longest of them, with their `count`.
        """
        inside = np.flatnonzero((self.end > from_ns) & (self.start < to_ns))
        if not inside.size:
            return []
        start, end = self.start[inside], self.end[inside]
        bucket = np.maximum(start - from_ns, 0) * buckets // max(1, to_ns - from_ns)
        is_short = (end - start) * buckets < to_ns - from_ns
        same = is_short[1:] & is_short[:-1] & (bucket[1:] == bucket[:-1]) & (np.diff(self.axis[inside]) == 0)
        first = np.flatnonzero(np.append(True, ~same))
        group = np.repeat(np.arange(first.size), np.diff(np.append(first, inside.size)))
        longest = np.lexsort((start - end, group))[first]
        chosen = inside[longest]
        known = iter(briefs(timeline, self.number[chosen]))
        last = np.append(first[1:], inside.size) - 1
        counts = last - first + 1
        columns = (start[first], end[last], self.part[chosen], self.reason[chosen], self.number[chosen], counts)
        return [
            {
                "from_ns": begin,
                "to_ns": stop,
                "part": CLASSES[part],
                "reason": REASONS[reason],
                "slice": next(known) if number >= 0 else None,
                "count": count,
            }
            for begin, stop, part, reason, number, count in zip(*(c.tolist() for c in columns), strict=True)
        ]
