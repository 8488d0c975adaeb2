"""Cutting intervals, against sets of instants."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kinetoscope_tb.arrays.intervals import cut, union, without
from support.strategies import intervals

few = settings(max_examples=200, deadline=None)


def columns(pairs):
    """The starts and the ends of pairs."""
    return tuple(np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))


def instants(pairs):
    return {t for a, b in pairs for t in range(a, b)}


@few
@given(st.lists(intervals, max_size=8), st.lists(intervals, max_size=8))
def test_cut_pieces_follow_each_other_and_lie_in_one_span_or_in_none(ranges, spans):
    united = union(*columns(spans))
    piece, begins, ends, span = cut(*columns(ranges), united)
    for i, (first, last) in enumerate(ranges):
        own = piece == i
        covered = [t for a, b in zip(begins[own].tolist(), ends[own].tolist(), strict=True) for t in range(a, b)]
        assert covered == list(range(first, last))
    for a, b, of in zip(begins.tolist(), ends.tolist(), span.tolist(), strict=True):
        around = [n for t in range(a, b) for n, (s, e) in enumerate(zip(*united, strict=True)) if s <= t < e]
        assert around == ([of] * (b - a) if of >= 0 else [])


@few
@given(st.lists(intervals, max_size=8), st.lists(intervals, max_size=8))
def test_what_one_union_covers_without_another(ranges, others):
    left = without(union(*columns(ranges)), union(*columns(others)))
    assert instants(zip(*(side.tolist() for side in left), strict=True)) == instants(ranges) - instants(others)
