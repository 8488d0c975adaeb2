"""Ranges that other tools write as a beginning and an end."""

import json

import pytest

from kinetoscope_tb.reader import read_blocks
from support.build import same


def of(*rows):
    """A trace of (phase, name, microseconds, thread)."""
    events = [{"ph": ph, "cat": "cpu_op", "name": name, "pid": 1, "tid": tid, "ts": ts} for ph, name, ts, tid in rows]
    return read_blocks([json.dumps({"traceEvents": events}).encode()], path="t.json")


def test_an_end_closes_the_latest_beginning_of_its_thread():
    trace = of(("B", "a", 0, 1), ("B", "b", 2, 1), ("B", "c", 3, 2), ("E", "", 5, 1), ("E", "", 6, 2), ("E", "", 9, 1))
    same(
        trace.host_events.select("name", "start_ns", "dur_ns", "parent"),
        """
        name  start_ns  dur_ns  parent
        a     0         9000    -1
        b     2000      3000    0
        c     3000      3000    -1
        """,
    )
    assert trace.diagnostics == ()


def test_the_order_of_time_counts_not_that_of_the_file():
    trace = of(("E", "", 9, 1), ("E", "", 5, 1), ("B", "b", 2, 1), ("B", "a", 0, 1))
    assert trace.host_events.select("name", "dur_ns").rows() == [("a", 9000), ("b", 3000)]


def test_ranges_that_touch_are_told_apart_by_their_place_in_the_file():
    trace = of(("B", "a", 0, 1), ("E", "", 5, 1), ("B", "b", 5, 1), ("E", "", 8, 1), ("B", "c", 8, 1), ("E", "", 8, 1))
    assert trace.host_events.select("name", "dur_ns").rows() == [("a", 5000), ("b", 3000), ("c", 0)]


@pytest.mark.parametrize("rows", [[("B", "a", 1, 1)], [("E", "", 1, 1)], [("E", "", 1, 1), ("B", "a", 2, 1)]])
def test_what_has_no_counterpart_is_counted(rows):
    trace = of(("B", "x", 0, 2), ("E", "", 4, 2), *rows)
    assert [(f.rule, f.count, f.level) for f in trace.diagnostics] == [("unpaired", len(rows), "loss")]
    assert trace.host_events.filter(name="a")["dur_ns"].to_list() == [0] * ("a" in {name for _, name, _, _ in rows})


def test_complete_events_without_a_duration_take_no_end():
    trace = of(("B", "a", 0, 1), ("X", "b", 2, 1), ("E", "", 5, 1))
    assert trace.host_events.select("name", "dur_ns").rows() == [("a", 5000), ("b", 0)]


def test_a_range_of_memory_keeps_its_end_to_itself():
    trace = of(("B", "a", 0, 1), ("B", "[memory]", 2, 1), ("E", "", 2, 1), ("E", "", 9, 1))
    assert (trace.host_events["dur_ns"].to_list(), trace.memory.height, trace.diagnostics) == ([9000], 1, ())
