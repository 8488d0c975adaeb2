"""Aligns two sequences of names: the longest common subsequence, by Myers' algorithm.

E. W. Myers, "An O(ND) Difference Algorithm and Its Variations", Algorithmica 1, 1986. Its time is the length times the
number of differences, so it is linear for sequences that are nearly equal; with more than MOST_DIFFERENCES they aren't
the same work, and nothing is aligned.
"""

from __future__ import annotations

import numpy as np

from ...arrays.gather import NONE
from ...arrays.native import Array, Function

MOST_DIFFERENCES = 1_500

_common_subsequence = Function("common_subsequence")


def align_sequences(first: Array, second: Array) -> Array:
    """For each position in the first sequence its position in the second, or NONE; it rises."""
    same = min(first.size, second.size)
    differs = np.flatnonzero(first[:same] != second[:same])
    head = int(differs[0]) if differs.size else same
    same -= head
    differs = np.flatnonzero(first[first.size - same :][::-1] != second[second.size - same :][::-1])
    tail = int(differs[0]) if differs.size else same
    positions = np.full(first.size, NONE, np.int64)
    positions[:head] = np.arange(head)
    positions[first.size - tail :] = np.arange(second.size - tail, second.size)
    inner = _myers(first[head : first.size - tail], second[head : second.size - tail])
    positions[head : first.size - tail] = np.where(inner >= 0, inner + head, NONE)
    return positions


def _myers(first: Array, second: Array) -> Array:
    """For each position in the first sequence its position in the second, or NONE; none if they differ too much."""
    limit = min(first.size + second.size, MOST_DIFFERENCES)
    positions = np.full(first.size, NONE, np.int64)
    _common_subsequence(first, second, limit, np.zeros((limit + 2) * (2 * limit + 3), np.int32), positions)
    return positions
