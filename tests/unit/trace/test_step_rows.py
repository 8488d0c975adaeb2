"""A trace of some steps alone: which rows belong to them, and that what points to a row still finds it."""

import polars as pl
import pytest

from kinetoscope_tb.measures.time.step_subset import counted_steps, has_steps, rows_of_steps, windows_of_steps
from kinetoscope_tb.trace import model
from support.build import TraceBuilder


def two_steps():
    """In each step an operator in an operator that launches a kernel; an operator and a kernel of no step after."""
    trace = TraceBuilder().window(0, 1000)
    for step in (0, 1):
        at = step * 100
        trace.step(step, at, 100).op("outer", at + 10, 50).op("inner", at + 20, 30)
        trace.launch(at + 25, 5, step + 1).kernel(f"k{step}", at + 80, 40, step + 1)
        trace.memory(64, at + 22).python("module", at + 5, 90)
    return trace.op("late", 300, 10).launch(302, 2, 9).kernel("late", 305, 5, 9).python("main", 0, 400).build()


def names(frame):
    return frame["name"].cast(pl.String).to_list()


def test_the_rows_of_a_step_are_those_it_holds_and_launches():
    one = rows_of_steps(two_steps(), [1])
    assert names(one.host_events) == ["ProfilerStep#1", "outer", "inner"]
    assert names(one.device_events) == ["k1"]
    assert one.launches["start_ns"].to_list() == [125]
    assert one.memory["start_ns"].to_list() == [122]
    assert names(one.python_calls) == ["module"]
    assert one.steps["name"].to_list() == ["1"]


def test_what_points_to_a_row_points_to_it_still():
    one = rows_of_steps(two_steps(), [1])
    assert one.host_events["parent"].to_list() == [-1, 0, 1]
    assert one.device_events.select("launch", "op", "step").rows() == [(0, 2, 0)]
    assert one.launches.select("host", "op", "step").rows() == [(2, 2, 0)]
    assert one.memory["op"].to_list() == [2]
    assert one.python_calls.select("parent", "depth").rows() == [(-1, 0)]


def test_the_windows_of_a_step_hold_whatever_is_active_in_them():
    windows = windows_of_steps(two_steps(), [1])  # from 120, when the first step's kernel ends, to 220
    assert names(windows.host_events) == ["ProfilerStep#1", "outer", "inner"]
    assert names(windows.device_events) == ["k1"]
    first = windows_of_steps(two_steps(), [0])  # to 120: into the second step's operators
    assert names(first.host_events) == ["ProfilerStep#0", "outer", "inner", "ProfilerStep#1", "outer"]
    assert first.host_events["step"].to_list() == [0, 0, 0, -1, -1]


def test_device_work_of_unknown_launch_belongs_to_the_step_in_whose_window_it_began():
    trace = TraceBuilder().step(0, 0, 100).step(1, 100, 100).kernel("a", 10, 5).kernel("b", 150, 5).build()
    assert names(rows_of_steps(trace, [1]).device_events) == ["b"]


def test_what_was_launched_between_the_steps_belongs_to_none():
    trace = TraceBuilder().step(0, 0, 100).launch(120, 5, 1).kernel("a", 160, 5, 1).step(1, 150, 100).build()
    assert rows_of_steps(trace, [0, 1]).device_events.is_empty()


@pytest.mark.parametrize("part", [rows_of_steps, windows_of_steps])
def test_without_marked_steps_the_trace_is_one_step(part):
    trace = TraceBuilder().op("a", 0, 10).build()
    assert not has_steps(trace)
    assert part(trace, counted_steps(trace)) is trace


def test_counted_are_the_complete_steps_or_all():
    whole = TraceBuilder().step(0, 0, 100).step(1, 100, 100).window(0, 1000).build()
    cut = TraceBuilder().step(0, 0, 100).step(1, 100, 100).window(0, 150).build()
    assert (counted_steps(whole), counted_steps(cut)) == ([0, 1], [0])


def test_every_column_that_points_to_a_row_is_known():
    pointing = {"thread", "parent", "step", "host", "op", "launch", "host_event", "device_event"}
    for name, columns in {**model.COLLECTED, "collectives": model.COLLECTIVES}.items():
        assert set(model.POINTERS.get(name, {})) == pointing & set(columns), name
