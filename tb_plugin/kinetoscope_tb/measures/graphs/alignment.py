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
    n, m = first.size, second.size
    places = np.full(n, -1, np.int64)
    if not n or not m:
        return places
    limit = min(n + m, most)
    reach = np.zeros((limit + 2, 2 * limit + 3), np.int32)  # furthest place in `first`, by differences and diagonal
    middle = limit + 1
    found = -1
    for d in range(limit + 1):
        for k in range(-d, d + 1, 2):
            if d == 0:
                x = 0
            elif k == -d or (k != d and reach[d - 1, middle + k - 1] < reach[d - 1, middle + k + 1]):
                x = reach[d - 1, middle + k + 1]
            else:
                x = reach[d - 1, middle + k - 1] + 1
            while x < n and x - k < m and first[x] == second[x - k]:
                x += 1
            reach[d, middle + k] = x
            if x >= n and x - k >= m:
                found = d
                break
        if found >= 0:
            break
    if found < 0:
        return places
    x, y = n, m
    for d in range(found, -1, -1):
        k = x - y
        if d == 0:
            before_x, start = 0, 0
        elif k == -d or (k != d and reach[d - 1, middle + k - 1] < reach[d - 1, middle + k + 1]):
            before_x = reach[d - 1, middle + k + 1]
            start = before_x
            k += 1
        else:
            before_x = reach[d - 1, middle + k - 1]
            start = before_x + 1
            k -= 1
        while x > start:
            x -= 1
            y -= 1
            places[x] = y
        x, y = before_x, before_x - k
    return places
