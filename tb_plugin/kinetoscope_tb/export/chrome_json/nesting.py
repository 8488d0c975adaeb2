"""Threads of an exported trace, chosen so that no two slices of a thread overlap in part.

Chrome's JSON has no lanes: a viewer stacks the slices of a thread by their times. Perfetto drops a slice that begins in
another and outlasts it (`slice_drop_overlapping_complete_event` among its statistics, up to v56), so such a slice goes
to a further thread.

Compiled functions here avoid whole-array expressions: Numba takes seconds to compile the errors that those might raise.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.jit import Array, compiled

MOST = 16  # threads that are tried in turn; beyond them each lane has its own


class Threads:
    """Assigns the slices of a track to threads; slices come in the order start, longest first, in any portions."""

    def __init__(self) -> None:
        self._ends = np.empty((MOST, 64), np.int64)  # of the slices that are open on each thread, outermost first
        self._open = np.zeros(MOST, np.int64)

    def of(self, start: NDArray[np.int64], end: NDArray[np.int64], lane: NDArray[np.int64]) -> NDArray[np.int32]:
        """The thread of each of the next slices: 0 for all that nest; `lane` is the row it is drawn in."""
        thread = np.empty(start.size, np.int32)
        done = 0
        while done < start.size:
            done = _place(start, end, lane, done, self._ends, self._open, thread)
            if done < start.size:  # one thread is as deep as there is room
                self._ends = np.concatenate([self._ends, np.empty_like(self._ends)], axis=1)
        return thread


@compiled
def _place(start: Array, end: Array, lane: Array, first: int, ends: Array, is_open: Array, thread: Array) -> int:
    """Fill in the threads from `first` on; return the first slice for which there was no room."""
    for i in range(first, start.size):
        chosen = -1
        for k in range(MOST):
            while is_open[k] and ends[k, is_open[k] - 1] <= start[i]:
                is_open[k] -= 1
            if is_open[k] == 0 or ends[k, is_open[k] - 1] >= end[i]:
                chosen = k
                break
        if chosen < 0:
            thread[i] = MOST + lane[i]
            continue
        if is_open[chosen] == ends.shape[1]:
            return i
        ends[chosen, is_open[chosen]] = end[i]
        is_open[chosen] += 1
        thread[i] = chosen
    return start.size


@compiled
def begun_before(start: Array, lo: Array, hi: Array, at: int) -> Array:
    """Return for each row, sorted starts from `lo` up to `hi`, the index of the first at that time or later."""
    counts = np.empty(lo.size, np.int64)
    for row in range(lo.size):
        a, b = lo[row], hi[row]
        while a < b:
            middle = (a + b) // 2
            if start[middle] < at:
                a = middle + 1
            else:
                b = middle
        counts[row] = a
    return counts


@compiled
def portion(start: Array, lo: Array, hi: Array, most: int) -> Array:
    """Return where the next portion of each row ends: the slices that begin before one moment, about `most`.

    There are more only if more begin at the same moment; the portion is never empty unless all rows are.
    """
    first, last, left = np.iinfo(np.int64).max, np.iinfo(np.int64).min, 0
    for row in range(lo.size):
        if lo[row] < hi[row]:
            first, last = min(first, start[lo[row]]), max(last, start[hi[row] - 1])
            left += hi[row] - lo[row]
    if left <= most:
        return hi
    first += 1  # what begins at the first moment is in it
    last += 1
    while first < last:
        middle = first + (last - first + 1) // 2
        counts = begun_before(start, lo, hi, middle)
        count = 0
        for row in range(lo.size):
            count += counts[row] - lo[row]
        if count <= most:
            first = middle
        else:
            last = middle - 1
    return begun_before(start, lo, hi, first)
