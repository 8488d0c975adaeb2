"""Half-open intervals [start, end) on one axis, as pairs of int64 arrays.

A *union* is sorted and disjoint. Lengths are exact integers: nothing here adds durations that may overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Intervals: TypeAlias = tuple[Ints, Ints]


def union(start: Ints, end: Ints) -> Intervals:
    """The instants that any of the intervals covers; touching intervals become one."""
    real = end > start
    start, end = start[real], end[real]
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.ones(start.size, bool)
    first[1:] = start[1:] > reach[:-1]
    last = np.ones(start.size, bool)
    last[:-1] = first[1:]
    return start[first], reach[last]


def merge(parts: Sequence[Intervals]) -> Intervals:
    """The union of several sets of intervals."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    return union(np.concatenate([s for s, _ in parts]), np.concatenate([e for _, e in parts]))


def length_before(united: Intervals, at: Ints) -> Ints:
    """How much of a union lies before each instant."""
    start, end = united
    if not start.size:
        return np.zeros(at.size, np.int64)
    whole = np.concatenate([np.zeros(1, np.int64), np.cumsum(end - start)])
    begun = np.searchsorted(start, at, "right")
    unfinished = np.where(begun > 0, np.maximum(end[np.maximum(begun, 1) - 1] - at, 0), 0)
    return whole[begun] - unfinished


def length_within(united: Intervals, start: Ints, end: Ints) -> Ints:
    """How much of a union lies in each window."""
    return length_before(united, end) - length_before(united, start)


def exclusive_lengths(groups: Sequence[Intervals], start: Ints, end: Ints) -> list[Ints]:
    """How long each group is the first that is active, per window; the last entry is what no group covers.

    The entries of a window add up to its length exactly: entry k is the length of the union of the groups up to k, less
    that of the groups before k.
    """
    lengths: list[Ints] = []
    united = merge([])
    before = np.zeros(start.size, np.int64)
    for group in groups:
        united = merge([united, group])
        covered = length_within(united, start, end)
        lengths.append(covered - before)
        before = covered
    return [*lengths, (end - start) - before]


def capped_integral(start: Ints, end: Ints, height: NDArray[np.float64], cap: float, window: tuple[int, int]) -> float:
    """The integral over a window of min(sum of the heights of the intervals that are open, cap), in ns × height."""
    start, end = np.clip(start, *window), np.clip(end, *window)
    real = (end > start) & (height > 0)
    start, end, height = start[real], end[real], height[real]
    if not start.size:
        return 0.0
    at = np.concatenate([start, end])
    order = np.argsort(at, kind="stable")
    level = np.cumsum(np.concatenate([height, -height])[order])
    lasting = np.diff(at[order])
    return float(np.sum(np.clip(level[:-1], 0.0, cap) * lasting))
