"""The instants at which a host thread begins or ends something: between two of them it does one thing.

Boundaries are sorted by thread and time. Where ranges and calls meet at an instant, ends come before starts; a range
without a duration ends after it began. Partial overlaps do no harm: the innermost range is the open one that began
last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.native import Array, Arrays, Function
from ..measures.calls.call_tree import merge_order
from ..trace import Trace

_merge_boundaries = Function("merge_boundaries")

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class HostBoundaries:
    """The boundaries of all threads, and what each thread does after them.

    A *range* here is a row of host_events, or the number of all host events plus a row of launches.

    Attributes:
        time: Of each boundary.
        inner: The innermost range open after each boundary, or NONE.
        first: For each thread its first boundary, and the number of boundaries at the end.
    """

    time: Ints
    inner: Rows
    first: Ints

    @property
    def first_of_threads(self) -> Ints:
        """The first boundary of each thread that has any."""
        return self.first[:-1][np.diff(self.first) > 0]

    def thread_of(self, boundary: NDArray[np.integer]) -> Rows:
        """The thread of each of some boundaries."""
        return (np.searchsorted(self.first, boundary, "right") - 1).astype(np.int32)

    def threads(self) -> Rows:
        """The thread of each boundary."""
        return np.repeat(np.arange(self.first.size - 1, dtype=np.int32), np.diff(self.first))

    def are_of(self, is_chosen: NDArray[np.bool_], nodes: slice) -> NDArray[np.bool_]:
        """For each of some consecutive boundaries whether it is of one of some threads."""
        are_chosen = np.zeros(nodes.stop - nodes.start, bool)
        for thread in np.flatnonzero(is_chosen).tolist():
            first, after = np.clip(self.first[thread : thread + 2] - nodes.start, 0, are_chosen.size).tolist()
            are_chosen[first:after] = True
        return are_chosen

    def last_before(self, thread: NDArray[Any], at: Ints) -> Rows:
        """The last boundary of a thread that is no later than an instant, or NONE."""
        points = np.full(at.size, NONE, np.int32)
        for number in np.unique(thread[thread >= 0]):
            first, last = self.first[number], self.first[number + 1]
            these = np.flatnonzero(thread == number)
            position = np.searchsorted(self.time[first:last], at[these], "right") - 1
            points[these] = np.where(position >= 0, first + position, NONE)
        return points


@dataclass(frozen=True)
class RangeBoundaries:
    """Which boundaries are those of ranges.

    Attributes:
        start: The boundary where each range begins.
        end: The boundary where it ends.
    """

    start: Rows
    end: Rows


def count_boundaries(trace: Trace) -> int:
    """How many boundaries a trace has: the begin and the end of each range."""
    return 2 * (trace.host_events.height + trace.launches.height)


def host_boundaries(trace: Trace, time: Ints | None = None) -> tuple[HostBoundaries, RangeBoundaries]:
    """The boundaries of a trace, and which of them its ranges begin and end at; `time`: an array for their times."""
    columns = _columns(trace.host_events), _columns(trace.launches)
    threads = np.arange(trace.threads.height + 1, dtype=np.int32)
    ranges_before = [np.searchsorted(thread, threads) for thread, _, _ in columns]
    first = 2 * (ranges_before[0] + ranges_before[1])
    time, inner, begins, stops = _points(columns, np.empty(first[-1], np.int64) if time is None else time)
    return HostBoundaries(time, inner, first), RangeBoundaries(begins, stops)


def _columns(frame: Any) -> tuple[Array, Array, Array]:
    """Thread, start and duration."""
    thread, start, dur = (frame[name].to_numpy() for name in ("thread", "start_ns", "dur_ns"))
    return thread, start, dur


def _points(columns: tuple[Arrays, Arrays], time: Ints) -> tuple[Ints, Rows, Rows, Rows]:
    """Time and innermost range of each boundary; the boundaries at which each range begins and ends."""
    ranges = time.size // 2
    inner = np.empty(time.size, np.int32)
    begins, stops, is_open, above = (np.empty(ranges, np.int32) for _ in range(4))
    room = is_open, above, time, inner, begins, stops
    if _merge_boundaries(*columns, np.empty(0, np.int32), *room) == NONE:
        _merge_boundaries(*columns, _ends(columns), *room)
    return time, inner, begins, stops


def _ends(columns: tuple[Arrays, Arrays]) -> Rows:
    """The ranges by thread and end, those that take time before empty ones and inner ones before outer ones."""
    thread, start, dur = (np.concatenate(pair) for pair in zip(*columns, strict=True))
    end, hosts = start + dur, columns[0][0].size
    hosts_and_calls = (side[part] for part in (slice(hosts), slice(hosts, None)) for side in (thread, start, end))
    inner_first = merge_order(*hosts_and_calls)[::-1]
    ends = inner_first[np.argsort(end[inner_first] * 2 + (dur[inner_first] == 0), kind="stable")]
    return ends[np.argsort(thread[ends], kind="stable")]
