"""The calls behind a row on each rank."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.reader import read
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.details.rank_calls import MOST_LISTED, RankCalls, compare_ranks, key_on, only_device
from kinetoscope_tb.timeline.details.row_facts import row_facts
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.real_traces import FOLDER, MISSING


def rank(number, total_ns, calls=2, *, waits=False):
    return RankCalls(f"worker{number}", f"rank {number}", {}, calls, total_ns, waits)


def test_the_rank_that_takes_longest_is_named_with_its_distance_from_the_median():
    answer = compare_ranks([rank(0, 1000), rank(1, 3000), rank(2, 1000)], 0)
    assert answer["text"] == "Rank 1 takes longest: 3 µs, 3 × the median of 3 ranks."
    assert [(one["text"], one["total_ns"], one["calls"]) for one in answer["ranks"]] == [
        ("rank 1", 3000, 2),
        ("rank 0", 1000, 2),
        ("rank 2", 1000, 2),
    ]


def test_time_in_communication_is_said_to_include_waiting():
    text = compare_ranks([rank(0, 1000), rank(1, 3000, waits=True), rank(2, 1000)], 0)["text"]
    assert text.endswith("Time in communication includes waiting for other ranks.")


def test_equal_ranks_absent_ranks_and_unread_ranks_are_said():
    alike = compare_ranks([rank(0, 1000), rank(1, 1010)], 0)["text"]
    assert alike == "2 ranks take about the same time: 1 µs."
    apart = compare_ranks([rank(0, 1000), rank(1, 3000)], 0)["text"]
    assert apart == "Rank 1 takes longest: 3 µs, 3 × that of rank 0."
    some = compare_ranks([rank(0, 1000), rank(1, 1010), rank(2, 0, calls=0)], 2)
    assert some["text"].endswith("Not on rank 2. 2 more ranks are not read: they are large.")
    assert compare_ranks([rank(0, 1000), rank(1, 0, calls=0)], 0)["text"] == "Only on rank 0. Not on rank 1."


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=40))
def test_the_list_is_short_descends_and_has_both_ends(times):
    having = [rank(i, time) for i, time in enumerate(times)]
    shown = [one["total_ns"] for one in compare_ranks(having, 0)["ranks"]]
    assert len(shown) == min(len(times), MOST_LISTED)
    assert shown == sorted(shown, reverse=True)
    assert (shown[0], shown[-1]) == (max(times), min(times))


def test_the_key_names_the_device_of_the_other_rank():
    here, there = (TraceBuilder().kernel("k", 0, 5, 1, device=device).build() for device in (0, 3))
    assert only_device(here) == 0
    assert key_on(there, {"name": "k", "device": 0}, 0) == {"name": "k", "device": 3}
    assert key_on(there, {"name": "k"}, 0) == {"name": "k"}
    assert key_on(TraceBuilder().op("a", 0, 5).build(), {"device": 0}, 0) == {"device": 0}


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
@pytest.mark.parametrize("view", ["kernels", "operators", "copies", "launches", "steps"])
def test_the_own_rank_has_the_numbers_of_the_drawer(view):
    trace = read(str(next((FOLDER / "runs" / "dlrm_8gpu_nccl").glob("worker1_*"))))
    drawn = timeline(trace)
    for row in VIEWS[view].run(trace).head(20).rows(named=True):
        if VIEWS[view].slices is None:
            continue
        events = VIEWS[view].events_of_row(trace, row)
        calls = RankCalls.of(trace, "1", {}, events)
        durations = row_facts(trace, drawn, events, ())["durations"]
        assert (calls.calls, calls.total_ns) == ((durations["count"], durations["total_ns"]) if durations else (0, 0))
