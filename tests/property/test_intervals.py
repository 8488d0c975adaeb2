"""Cutting intervals, against sets of instants."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kinetoscope_tb.arrays.intervals import (
    capped_integrals,
    cut,
    exclusive_lengths,
    exclusive_sums,
    merge,
    union,
    union_of_rows,
    without,
)
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


@few
@given(st.lists(st.lists(intervals, max_size=5), max_size=4), st.lists(intervals, max_size=6), st.booleans())
def test_each_instant_of_a_window_counts_for_the_first_group_that_covers_it(groups, windows, are_disjoint):
    start, end = union(*columns(windows)) if are_disjoint else columns(windows)
    lengths = exclusive_lengths([columns(group) for group in groups], start, end)
    covered = [instants(group) for group in groups]
    expected = [[0] * start.size for _ in range(len(groups) + 1)]
    for window, (first, last) in enumerate(zip(start.tolist(), end.tolist(), strict=True)):
        for t in range(first, last):
            of = next((number for number, of_group in enumerate(covered) if t in of_group), len(groups))
            expected[of][window] += 1
    assert [part.tolist() for part in lengths] == expected
    of = np.arange(start.size, dtype=np.int32) % 2
    sums = exclusive_sums([columns(group) for group in groups], start, end, of, 2)
    assert sums.tolist() == [[sum(row[::2]), sum(row[1::2])] for row in expected]


@few
@given(st.lists(intervals, max_size=6), st.lists(intervals, max_size=6), st.booleans())
def test_what_intervals_cover_and_a_union_does_not(covered, others, are_disjoint):
    left = without(union(*columns(covered)) if are_disjoint else columns(covered), union(*columns(others)))
    pieces = [*zip(*(side.tolist() for side in left), strict=True)]
    assert instants(pieces) == instants(covered) - instants(others)
    assert all(start < end for start, end in pieces)
    assert not are_disjoint or sum(end - start for start, end in pieces) == len(instants(pieces))


@few
@given(
    st.lists(st.tuples(intervals, st.integers(0, 8)), max_size=8),
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.sampled_from([0.5, 1.0, 3.0]),
)
def test_the_integral_of_the_heights_of_open_intervals_up_to_a_cap(rows, at, cap):
    at = np.sort(np.array(at, np.int64))
    start, end = columns([pair for pair, _ in rows])
    height = np.array([eighths / 4 for _, eighths in rows])
    levels = [sum(h for s, e, h in zip(start, end, height, strict=True) if s <= t < e) for t in range(int(at[-1]))]
    expected = [sum(min(level, cap) for level in levels[at[0] : until]) for until in at]
    assert capped_integrals(start, end, height, cap, at).tolist() == expected
