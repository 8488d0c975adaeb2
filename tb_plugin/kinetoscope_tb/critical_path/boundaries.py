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
from ..arrays.native import Array, Function
from ..measures.calls.call_tree import merge_order
from ..trace import Trace

_merge_boundaries = Function("merge_boundaries")
_order_ends = Function("order_ends")

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


def host_boundaries(trace: Trace) -> tuple[HostBoundaries, RangeBoundaries]:
    """The boundaries of a trace, and which of them its ranges begin and end at."""
    columns = [_columns(trace.host_events), _columns(trace.launches)]
    order = merge_order(*columns[0], *columns[1])
    thread, start, end = (np.concatenate(pair) for pair in zip(*columns, strict=True))
    ends = _ends(order, thread, start, end)
    time, inner, begins, stops = _points(order, ends, thread, start, end)
    counts = 2 * np.bincount(thread, minlength=trace.threads.height)
    first = np.append(0, np.cumsum(counts)).astype(np.int64)
    return HostBoundaries(time, inner, first), RangeBoundaries(begins, stops)


def _columns(frame: Any) -> tuple[Rows, Ints, Ints]:
    start = frame["start_ns"].to_numpy()
    return frame["thread"].to_numpy(), start, start + frame["dur_ns"].to_numpy()


def _ends(order: Array, thread: Array, start: Array, end: Array) -> Array:
    """The ranges by thread and end, inner ones first; `order` has them by thread and start, outer ones first."""
    ends = np.empty(order.size, np.int32)
    if _order_ends(order, thread, start, end, np.empty_like(ends), ends) < 0:
        inner_first = order[::-1]
        is_empty = end[inner_first] == start[inner_first]
        ends = inner_first[np.argsort(end[inner_first] * 2 + is_empty, kind="stable")]
        ends = ends[np.argsort(thread[ends], kind="stable")]
    return ends


def _points(order: Array, ends: Array, thread: Array, start: Array, end: Array) -> tuple[Array, Array, Array, Array]:
    """Merge the starts of ranges (`order`: by thread, start) with the ends (`ends`: by thread, end, inner first)."""
    n = order.size
    time = np.empty(2 * n, np.int64)
    inner = np.empty(2 * n, np.int32)
    begins, stops, above = (np.empty(n, np.int32) for _ in range(3))
    _merge_boundaries(order, ends, thread, start, end, np.zeros(n, np.bool_), above, time, inner, begins, stops)
    return time, inner, begins, stops
