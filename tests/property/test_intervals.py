"""Cutting intervals, against sets of instants."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kinetoscope_tb.arrays.intervals import cut, merge, union, union_of_rows, without
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


@few
@given(st.lists(st.tuples(intervals, st.booleans()), max_size=8))
def test_the_union_of_rows_in_any_order(rows):
    start, end = columns([pair for pair, _ in rows])
    chosen = np.array([is_chosen for _, is_chosen in rows], bool)
    every, some = union_of_rows(start, end - start), union_of_rows(start, end - start, chosen)
    for united, expected in ((every, union(start, end)), (some, union(start[chosen], end[chosen]))):
        assert [side.tolist() for side in united] == [side.tolist() for side in expected]


@few
@given(st.lists(st.lists(intervals, max_size=4), max_size=5))
def test_what_any_of_several_sets_covers(parts):
    united = merge([columns(part) for part in parts])
    assert instants(zip(*(side.tolist() for side in united), strict=True)) == instants(itertools.chain(*parts))
    assert (united[0][1:] > united[1][:-1]).all()


def test_the_union_of_rows_in_many_runs():
    start = np.arange(1000, 0, -1) * 3
    assert [side.tolist() for side in union_of_rows(start, np.ones(1000, np.int64))] == [
        sorted(start.tolist()),
        sorted((start + 1).tolist()),
    ]
