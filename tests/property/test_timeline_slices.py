"""What is said of a slice, for any trace: what a slow look at all of the trace says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.calls.module_calls import ModuleCalls
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.details.details import details
from kinetoscope_tb.timeline.details.links import launched_work, open_at
from support.build import TraceBuilder
from support.examples import examples
from support.read_once import read_once
from support.real_traces import FOLDER, of_each_program
from support.strategies import builders

TRACES = of_each_program("runs", "single")


def around(frame, row):
    """A row and all that it lies in."""
    while row >= 0:
        yield row
        row = frame["parent"][row]


def slowly_launched(trace, frame, row):
    """The device rows that were launched inside a row of the host, one after the other."""
    found, one = [], getattr(trace, frame).row(row, named=True)
    for place, work in enumerate(trace.device_events.iter_rows(named=True)):
        call = trace.launches.row(work["launch"], named=True) if work["launch"] >= 0 else None
        op = trace.host_events.row(work["op"], named=True) if work["op"] >= 0 else None
        if frame == "host_events":
            hosts = [work["op"], *([call["host"]] if call else [])]
            is_inside = any(row in around(trace.host_events, host) for host in hosts)
        elif frame == "launches":
            is_inside = work["launch"] == row or (call and work["launch"] > row and begins_in(call, one))
        else:
            is_inside = any(begins_in(other, one) for other in (call, op) if other)
        if is_inside:
            found.append(place)
    return found


def begins_in(other, one):
    end = one["start_ns"] + one["dur_ns"]
    return other["thread"] == one["thread"] and one["start_ns"] <= other["start_ns"] < end


@examples(100)
@given(builders(), st.integers(0, 3), st.integers(0, 90))
def test_what_holds_of_the_slices_of_any_trace(builder, thread, at):
    trace = builder.build()
    assert_what_was_launched_inside_a_slice_is_what_the_links_of_all_work_say(trace)
    assert_the_innermost_open_row_is_the_last_to_begin_of_those_that_are_open(trace, thread, at)
    assert_the_time_of_a_slice_itself_is_each_instant_at_which_nothing_inside_runs(trace)


def assert_what_was_launched_inside_a_slice_is_what_the_links_of_all_work_say(trace):
    for frame in ("host_events", "launches", "python_calls"):
        for row in range(getattr(trace, frame).height):
            assert launched_work(trace, frame, row).tolist() == slowly_launched(trace, frame, row)


def assert_the_time_of_a_slice_itself_is_each_instant_at_which_nothing_inside_runs(trace):
    made = timeline(trace)
    start, end = made.start_ns.tolist(), (made.start_ns + made.dur_ns).tolist()
    parents = made.parent.tolist()
    for number in range(made.size):
        inner = [i for i in range(made.size) if parents[i] == number]
        instants = range(start[number], end[number])
        alone = sum(not any(start[i] <= at < end[i] for i in inner) for at in instants)
        facts = details(trace, made, number)
        assert facts["self_ns"] == alone
        same = sorted(made.dur_ns[made.label == made.label[number]].tolist())
        statistics = facts["same_name"]
        assert (statistics["count"], statistics["total_ns"], statistics["p50_ns"]) == (
            len(same),
            sum(same),
            same[(len(same) - 1) // 2],
        )
        assert statistics["p95_ns"] == same[-(-95 * len(same) // 100) - 1]
        for name, dur in (("fastest", same[0]), ("median", statistics["p50_ns"]), ("slowest", same[-1])):
            assert (made.dur_ns[statistics[name]], made.label[statistics[name]]) == (dur, made.label[number])


def assert_the_innermost_open_row_is_the_last_to_begin_of_those_that_are_open(trace, thread, at):
    host = trace.host_events
    rows = zip(*(host[name].to_list() for name in ("thread", "start_ns", "dur_ns")), strict=True)
    begun = [i for i, (where, start, dur) in enumerate(rows) if where == thread and start <= at < start + dur]
    assert open_at(host, thread, at) == max(begun, default=-1)


CALLS = st.lists(
    st.tuples(
        st.sampled_from(["module", "op", "back", "hook", "python"]),
        st.integers(0, 5).flatmap(lambda size: st.tuples(st.integers(0, (1 << 5 - size) - 1), st.just(size))),
        st.integers(1, 2),
        st.integers(1, 3),
    ),
    max_size=12,
)


def with_modules(calls):
    """Modules, hooks, operators with autograd's numbers, each with a launch at its begin; of two one lies in the other."""
    trace = TraceBuilder()
    for number, (kind, (nth, size), thread, which) in enumerate(calls):
        at, dur = nth << size, 1 << size
        if kind == "module":
            trace.module(f"Linear_{which}", at, dur, number=which, thread=thread)
        elif kind == "hook":
            trace.annotation(f"[pl][module]torch.nn.Conv: net.{which}", at, dur, thread=thread)
        elif kind == "python":
            trace.python(f"f.py({which}): f", at, dur, thread=thread)
        else:
            back = 1 if kind == "back" else 0
            numbers = {"Sequence number": which, "Fwd thread id": back}
            trace.op(f"aten::{kind}{which}", at + 32 * back, dur, thread=thread, **numbers)
        trace.launch(at + 32 * (kind == "back"), 1, number + 1, thread=thread)
        trace.kernel("k", 100 + number, 1, number + 1)
    return trace.build()


@examples(100)
@given(CALLS)
def test_work_belongs_to_the_module_that_the_table_of_modules_counts_it_for(calls):
    trace = with_modules(calls)
    made, modules = timeline(trace), ModuleCalls.of(trace)
    nodes = modules.of_rows(modules.forest.rows_at_launch(trace))[0].tolist()
    for row, node in enumerate(nodes):
        number = int(made.slices_of("device_events", np.array([row]))[0])
        module = details(trace, made, number)["launched_by"]["module"]
        name = module and module["name"].removeprefix("nn.Module: ").removeprefix("[pl][module]torch.nn.")
        assert name == (modules.names[node].label.removeprefix("torch.nn.") if node >= 0 else None)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_slices_of_real_traces_can_be_asked_and_lead_to_each_other(path):
    trace = read_once(path)
    made = timeline(trace)
    for number in range(0, made.size, max(1, made.size // 60)):
        facts = details(trace, made, number)
        assert 0 <= facts["self_ns"] <= facts["dur_ns"]
        launched = facts["launched"]["slices"] if facts["launched"] else []
        for work in launched[:: max(1, len(launched) // 10)]:
            by = details(trace, made, work["slice"])["launched_by"]
            frame, _ = made.source_of(number)
            if frame == "launches":
                assert by["call"]["start_ns"] >= facts["start_ns"]
            elif frame == "host_events":
                _, op = made.source_of(by["op"]["slice"]) if by["op"] else (None, -1)
                call = by["call"] and made.source_of(by["call"]["slice"])[1]
                hosts = [op, *([trace.launches["host"][call]] if by["call"] else [])]
                _, row = made.source_of(number)
                assert any(row in around(trace.host_events, host) for host in hosts)
