"""Threads of an exported trace, chosen so that no two slices of a thread overlap in part.

Chrome's JSON has no lanes: a viewer stacks the slices of a thread by their times. Perfetto drops a slice that begins in
another and outlasts it (`slice_drop_overlapping_complete_event` among its statistics, up to v56), so such a slice goes
to a further thread.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.native import Array, Function

_place_slices = Function("place_slices")
_count_begun = Function("begun_before_each")

MOST = 16  # threads that are tried in turn; beyond them each lane has its own


class Threads:
    """Assigns the slices of a track to threads; slices come in the order start, longest first, in any portions."""

    def __init__(self) -> None:
        self._ends = np.empty((MOST, 64), np.int64)  # of the slices that are open on each thread, outermost first
        self._open = np.zeros(MOST, np.int64)

    def of(self, start: NDArray[np.int64], end: NDArray[np.int64], lane: NDArray[np.int64]) -> NDArray[np.int32]:
        """The thread of each of the next slices: 0 for all that nest; `lane` is the row it is drawn in."""
        thread = np.empty(start.size, np.int32)
        at_slice = 0
        while at_slice < start.size:
            at_slice = _place_slices(start, end, lane, at_slice, self._ends, self._open, thread)
            if at_slice < start.size:  # one thread is as deep as there is room
                self._ends = np.concatenate([self._ends, np.empty_like(self._ends)], axis=1)
        return thread


def begun_before(start: Array, lo: Array, hi: Array, at: int) -> Array:
    """Return for each row, sorted starts from `lo` up to `hi`, the index of the first at that time or later."""
    counts = np.empty(lo.size, np.int64)
    _count_begun(start, lo, hi, at, counts)
    return counts


def portion(start: Array, lo: Array, hi: Array, most: int) -> Array:
    """Return where the next portion of each row ends: the slices that begin before one moment, about `most`.

    There are more only if more begin at the same moment; the portion is never empty unless all rows are.
    """
    has_any = lo < hi
    if int((hi - lo)[has_any].sum()) <= most:
        return hi
    first = int(start[lo[has_any]].min()) + 1  # what begins at the first moment is in it
    last = int(start[hi[has_any] - 1].max()) + 1
    counts = np.empty(lo.size, np.int64)
    while first < last:
        middle = first + (last - first + 1) // 2
        if _count_begun(start, lo, hi, middle, counts) <= most:
            first = middle
        else:
            last = middle - 1
    return begun_before(start, lo, hi, first)
