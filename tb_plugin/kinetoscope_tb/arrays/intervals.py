"""Half-open intervals [start, end) on one axis, as pairs of int64 arrays.

A *union* is sorted and disjoint. Lengths are exact integers and never count overlapping durations twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .native import Function

_find_exclusive_lengths = Function("exclusive_lengths")
_find_capped_integrals = Function("capped_integrals")
_cut_at_spans = Function("cut_at_spans")
_length_before = Function("length_before")
_length_within = Function("length_within")
_subtract = Function("subtract")
_unite = Function("unite")
_unite_runs = Function("unite_runs")
_unite_two = Function("unite_two")

_MOST_RUNS = 64  # with more of them, sorting the rows is faster
_EACH = np.empty(0, np.int32)
"""In place of the sum that each window belongs to: each is one by itself."""

Ints: TypeAlias = NDArray[np.int64]
Intervals: TypeAlias = tuple[Ints, Ints]


def union(start: Ints, end: Ints) -> Intervals:
    """The instants that any of the intervals covers; touching intervals become one."""
    starts, ends = np.empty(start.size, np.int64), np.empty(start.size, np.int64)
    size = _unite(start, end, starts, ends)
    if size < 0:
        order = np.argsort(start, kind="stable")
        size = _unite(start[order], end[order], starts, ends)
    return _first((starts, ends), size)


def union_of_rows(start: Ints, dur: Ints, mask: NDArray[np.bool_] | None = None) -> Intervals:
    """The same of rows that last `dur` each, or of those chosen: fast where they come in a few runs sorted by start."""
    where = np.empty(0, bool) if mask is None else mask
    size = start.size if mask is None else int(np.count_nonzero(mask))
    if not size:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    starts, ends, first = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(_MOST_RUNS + 1, np.int64)
    runs = _unite_runs(start, dur, where, starts, ends, first)
    if runs < 0:
        start, dur = (start, dur) if mask is None else (start[mask], dur[mask])
        return union(start, start + dur)
    if runs == 1:
        return _first((starts, ends), int(first[1]))
    runs_of = [slice(*first[run : run + 2]) for run in range(runs)]
    return merge([(starts[part], ends[part]) for part in runs_of])


def merge(parts: Sequence[Intervals]) -> Intervals:
    """The union of several sets of intervals."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    if len(parts) == 1:
        return union(*parts[0])
    while len(parts) > 1:
        last = parts[len(parts) // 2 * 2 :]
        parts = [*map(_merge_two, parts[::2], parts[1::2]), *last]
    return parts[0]


def _merge_two(left: Intervals, right: Intervals) -> Intervals:
    size = left[0].size + right[0].size
    starts, ends = np.empty(size, np.int64), np.empty(size, np.int64)
    count = _unite_two(*left, *right, starts, ends)
    if count < 0:
        return union(np.concatenate([left[0], right[0]]), np.concatenate([left[1], right[1]]))
    return _first((starts, ends), count)


def _first(intervals: Intervals, size: int) -> Intervals:
    """Its first intervals, without the memory of the others."""
    start, end = intervals
    return intervals if size == start.size else (start[:size].copy(), end[:size].copy())


def length_before(intervals: Intervals, at: Ints) -> Ints:
    """How much of a union lies before each instant."""
    before, length = np.empty(intervals[0].size + 1, np.int64), np.empty(at.size, np.int64)
    _length_before(intervals, at, before, length)
    return length


def length_within(intervals: Intervals, start: Ints, end: Ints) -> Ints:
    """How much of a union lies in each window."""
    before, length = np.empty(intervals[0].size + 1, np.int64), np.empty(start.size, np.int64)
    _length_within(intervals, start, end, before, length)
    return length


def exclusive_lengths(groups: Sequence[Intervals], start: Ints, end: Ints) -> list[Ints]:
    """How long each group is the first active one, per window; the last entry is the time that no group covers.

    The entries of a window add up to its length exactly: entry k is the length of the union of the groups up to k minus
    the length of the union of the groups before k.
    """
    groups = _unions(groups)
    if _follow_each_other(start, end):
        return list(_exclusive_lengths(groups, start, end))
    at = distinct(np.concatenate([start, end]))  # they cut windows that overlap into ones that don't
    before = np.zeros((len(groups) + 1, at.size), np.int64)
    np.cumsum(_exclusive_lengths(groups, at[:-1], at[1:]), axis=1, out=before[:, 1:])
    return list(before[:, np.searchsorted(at, end)] - before[:, np.searchsorted(at, start)])


def exclusive_sums(
    groups: Sequence[Intervals], start: Ints, end: Ints, of: NDArray[np.int32], sums: int
) -> NDArray[np.int64]:
    """The sums of these lengths over windows that come in order and don't overlap: [group or the rest, sum].

    Args:
        groups: Sets of intervals.
        start: Of each window.
        end: Of each window.
        of: The number of the sum that each window belongs to.
        sums: How many there are.
    """
    if not _follow_each_other(start, end):
        return np.array([np.bincount(of, lengths, sums) for lengths in exclusive_lengths(groups, start, end)], np.int64)
    return _exclusive_lengths(_unions(groups), start, end, of, sums)


def _unions(groups: Sequence[Intervals]) -> list[Intervals]:
    return [group if _is_union(*group) else union(*group) for group in groups]


def _follow_each_other(start: Ints, end: Ints) -> bool:
    return bool((start[1:] >= end[:-1]).all() and (end >= start).all())


def _exclusive_lengths(
    groups: Sequence[Intervals], start: Ints, end: Ints, of: NDArray[np.int32] = _EACH, sums: int | None = None
) -> Ints:
    """Those of unions, and of windows that come in order and don't overlap: [group, window or sum]."""
    lengths = np.zeros((len(groups) + 1, start.size if sums is None else sums), np.int64)
    sides = (np.concatenate([np.empty(0, np.int64), *(group[side] for group in groups)]) for side in (0, 1))
    first = np.cumsum([0, *(group[0].size for group in groups)])
    _find_exclusive_lengths(*sides, first, start, end, of, np.empty(len(groups), np.int64), lengths.ravel())
    return lengths


def _is_union(start: Ints, end: Ints) -> bool:
    return bool((start < end).all() and (start[1:] > end[:-1]).all())


def capped_integral(start: Ints, end: Ints, height: NDArray[np.float64], cap: float, window: tuple[int, int]) -> float:
    """The integral over a window of min(sum of the heights of the open intervals, cap), in ns × height."""
    before, after = capped_integrals(start, end, height, cap, np.array(window, np.int64))
    return float(after - before)


def capped_integrals(start: Ints, end: Ints, height: NDArray[np.float64], cap: float, at: Ints) -> NDArray[np.float64]:
    """The same integral from the first of some sorted instants up to each of them."""
    start, end = np.clip(start, at[0], at[-1]), np.clip(end, at[0], at[-1])
    real = (end > start) & (height > 0)
    start, end, height = start[real], end[real], height[real]
    by_start, by_end = (np.argsort(side, kind="stable") for side in (start, end))
    integrals = np.empty(at.size)
    _find_capped_integrals(start, end, height, by_start, by_end, np.array([cap]), at, integrals)
    return integrals


def distinct(values: Ints) -> Ints:
    """The distinct values in order, by sorting: np.unique hashes them, which is many times slower for large keys."""
    in_order = np.sort(values)
    is_first = np.ones(in_order.size, bool)
    is_first[1:] = in_order[1:] != in_order[:-1]
    return in_order[is_first]


def cut(start: Ints, end: Ints, spans: Intervals) -> tuple[NDArray[np.int64], Ints, Ints, NDArray[np.int32]]:
    """Cut intervals where the spans of a union begin and end.

    Returns (interval, start, end, span) of each piece, in the order of the intervals and of time; span is -1 for a
    piece that lies in none. Empty intervals have no piece.
    """
    room = start.size + 2 * spans[0].size  # enough for intervals that don't overlap
    while True:
        piece, begins, ends = np.empty((3, room), np.int64)
        span = np.empty(room, np.int32)
        size = _cut_at_spans(start, end, *spans, piece, begins, ends, span)
        if size <= room:
            return piece[:size], begins[:size], ends[:size], span[:size]
        room = size


def without(intervals: Intervals, other: Intervals) -> Intervals:
    """What a union covers and another one doesn't."""
    room = intervals[0].size + other[0].size
    while True:
        starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
        size = _subtract(*intervals, *other, starts, ends)
        if size <= room:
            return _first((starts, ends), size)
        room = size
