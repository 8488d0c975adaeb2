"""The boundaries of threads, and who began a communication, against sorting and searching."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.critical_path import boundaries, thread_edges

few = settings(max_examples=200, deadline=None)
ranges = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 8)), max_size=12)


def columns(rows):
    """Thread, start and duration of ranges, sorted by thread and start, the outer ones first."""
    rows = sorted((thread, start, -dur) for thread, start, dur in rows)
    thread, start, dur = (np.array([row[part] for row in rows], np.int64) for part in range(3))
    return thread.astype(np.int32), start, -dur


def points(events, calls):
    """Of the boundaries of host events and calls: times, innermost ranges; where ranges begin and end."""
    time = np.empty(2 * (len(events) + len(calls)), np.int64)
    return [column.tolist() for column in boundaries._points((columns(events), columns(calls)), time)]


def points_by_sorting(events, calls):
    """The same, where the compiled function finds that sorting the ends of ranges is faster."""
    merge, asked = boundaries._merge_boundaries, []

    def merged(host_events, runtime_calls, ends, *room):
        asked.append(ends.size)
        return merge(host_events, runtime_calls, ends, *room) if len(asked) > 1 else NONE

    with patch.object(boundaries, "_merge_boundaries", merged):
        return points(events, calls)


@few
@given(ranges, ranges)
def test_ranges_end_in_the_same_order_however_they_overlap(events, calls):
    assert points(events, calls) == points_by_sorting(events, calls)


@few
@given(ranges)
def test_the_innermost_range_is_the_open_one_that_began_last(rows):
    time, inner, begins, ends = points(rows, [])
    _, start, dur = (column.tolist() for column in columns(rows))
    for at in range(len(time)):
        open_ranges = [row for row in range(len(rows)) if begins[row] <= at < ends[row]]
        assert inner[at] == max(open_ranges, key=begins.__getitem__, default=NONE)
    assert [time[at] for at in begins] == start
    assert [time[at] for at in ends] == [begin + took for begin, took in zip(start, dur, strict=True)]
    assert sorted(begins + ends) == list(range(len(time)))


def test_ranges_of_which_each_outlasts_all_before_it_are_sorted():
    rows = [(0, start, 10_000 + start) for start in range(100)]
    assert points(rows, [])[3] == list(range(100, 200))


@pytest.mark.parametrize("own", [0, 1])
@few
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 2)), max_size=10), st.lists(st.integers(0, 20), max_size=5)
)
def test_the_last_thread_elsewhere_by_searching_back(own, begun, when):
    begun = sorted(begun, key=lambda row: row[0])
    at, thread = (np.array([row[part] for row in begun], np.int64) for part in range(2))
    when = np.array(sorted(when), np.int64)
    before = [[t for a, t in begun if a <= instant and t != own] for instant in when]
    threads = thread_edges._last_elsewhere(at, thread, when, np.full(when.size, own))
    assert threads.tolist() == [threads_before[-1] if threads_before else NONE for threads_before in before]


@few
@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.sets(st.integers(0, 4)), st.data())
def test_boundaries_know_their_threads_by_where_each_begins(counts, chosen, data):
    of = [thread for thread, count in enumerate(counts) for _ in range(count)]
    first = np.append(0, np.cumsum(counts)).astype(np.int64)
    known = boundaries.HostBoundaries(np.zeros(len(of), np.int64), np.zeros(len(of), np.int32), first)
    assert known.threads().tolist() == known.thread_of(np.arange(len(of))).tolist() == of
    assert known.first_of_threads.tolist() == [of.index(thread) for thread in sorted(set(of))]
    low = data.draw(st.integers(0, len(of)))
    high = data.draw(st.integers(low, len(of)))
    is_chosen = np.array([thread in chosen for thread in range(len(counts))])
    assert known.are_of(is_chosen, slice(low, high)).tolist() == [thread in chosen for thread in of[low:high]]
