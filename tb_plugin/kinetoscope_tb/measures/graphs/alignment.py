"""Aligns two sequences of names: the longest common subsequence, by Myers' algorithm.

E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1, 1986. Its time is the length times the
number of differences, so it is linear for sequences that are nearly equal; with more than MOST_DIFFERENCES they aren't
the same work, and nothing is aligned.
"""

from __future__ import annotations

import numpy as np

from ...arrays.gather import NONE
from ...arrays.jit import Array, compiled

MOST_DIFFERENCES = 1_500


def aligned(first: Array, second: Array) -> Array:
    """For each place in the first sequence its place in the second, or NONE; it rises."""
    same = min(first.size, second.size)
    differs = np.flatnonzero(first[:same] != second[:same])
    head = int(differs[0]) if differs.size else same
    same -= head
    differs = np.flatnonzero(first[first.size - same :][::-1] != second[second.size - same :][::-1])
    tail = int(differs[0]) if differs.size else same
    places = np.full(first.size, NONE, np.int64)
    places[:head] = np.arange(head)
    places[first.size - tail :] = np.arange(second.size - tail, second.size)
    inner = _myers(first[head : first.size - tail], second[head : second.size - tail], MOST_DIFFERENCES)
    places[head : first.size - tail] = np.where(inner >= 0, inner + head, NONE)
    return places


@compiled
def _myers(first: Array, second: Array, most: int) -> Array:
    """For each place in the first sequence its place in the second, or NONE; none if more than `most` differ."""
    limit = min(first.size + second.size, most)
    reach, differences = _search(first, second, limit)
    places = np.full(first.size, -1, np.int64)
    x, y = first.size, second.size
    for d in range(differences, -1, -1):  # back from the end, along the path that reached it
        k = x - y
        start, before, back = 0, 0, k
        if d and _is_down(reach, d, k, limit):
            before = start = reach[d - 1, limit + k + 2]
            back = k + 1
        elif d:
            before, back = reach[d - 1, limit + k], k - 1
            start = before + 1
        while x > start:
            x -= 1
            y -= 1
            places[x] = y
        x, y = before, before - back
    return places


@compiled
def _search(first: Array, second: Array, limit: int) -> tuple[Array, int]:
    """(the furthest place in `first` by differences and diagonal, the differences of both sequences or -1)."""
    n, m, middle = first.size, second.size, limit + 1
    reach = np.zeros((limit + 2, 2 * limit + 3), np.int32)
    for d in range(limit + 1):
        for k in range(-d, d + 1, 2):
            x = 0
            if d and _is_down(reach, d, k, limit):
                x = reach[d - 1, middle + k + 1]
            elif d:
                x = reach[d - 1, middle + k - 1] + 1
            while x < n and x - k < m and first[x] == second[x - k]:
                x += 1
            reach[d, middle + k] = x
            if x >= n and x - k >= m:
                return reach, d
    return reach, -1


@compiled
def _is_down(reach: Array, d: int, k: int, limit: int) -> bool:
    """Whether the path to a diagonal skips an element of the second sequence, not of the first."""
    return k == -d or (k != d and reach[d - 1, limit + k] < reach[d - 1, limit + k + 2])
