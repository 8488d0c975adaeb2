"""Alignment of sequences: the longest common subsequence, held against dynamic programming."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.graphs.alignment import MOST_DIFFERENCES, align_sequences

_CODES = st.lists(st.integers(0, 3), max_size=14)


def _longest(first: list[int], second: list[int]) -> int:
    lengths = np.zeros((len(first) + 1, len(second) + 1), int)
    for i, one in enumerate(first):
        for j, other in enumerate(second):
            lengths[i + 1, j + 1] = lengths[i, j] + 1 if one == other else max(lengths[i, j + 1], lengths[i + 1, j])
    return int(lengths[-1, -1])


@given(_CODES, _CODES)
def test_what_is_aligned_is_a_longest_common_subsequence(first: list[int], second: list[int]) -> None:
    places = align_sequences(np.array(first, np.int64), np.array(second, np.int64))
    pairs = [(i, j) for i, j in enumerate(places.tolist()) if j >= 0]
    assert all(first[i] == second[j] for i, j in pairs)
    assert all(a[1] < b[1] for a, b in pairwise(pairs))
    assert len(pairs) == _longest(first, second)


def test_sequences_without_much_in_common_are_not_aligned() -> None:
    first, second = np.arange(MOST_DIFFERENCES), np.arange(MOST_DIFFERENCES) + 10 * MOST_DIFFERENCES
    assert (align_sequences(first, second) == -1).all()
