"""Which operator, module and step of a trace allocated the blocks of a snapshot: both are of one planted training."""

from __future__ import annotations

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.views import VIEWS
from support.snapshot_twins import Twins, training
from support.snapshots import MIB


def alive(trace, by, **arguments):
    frame = VIEWS["snapshot_alive"].frame(trace, {"at": "end", "by": by, **arguments})
    return dict(frame.select("place", "alive_bytes").rows())


@pytest.mark.parametrize("records_memory", [False, True])
def test_blocks_belong_to_the_operator_and_module_that_was_open(records_memory):
    trace = training(records_memory=records_memory).joined()
    outside = {"[no operator]": 16 * MIB, "[outside of the trace]": 32 * MIB}
    assert alive(trace, "operator") == {"aten::zeros_like": 4 * MIB, **outside}
    no_module = {"[no module]": 4 * MIB}
    assert alive(trace, "module") == {**no_module, **outside}
    peak = VIEWS["snapshot_alive"].frame(trace, {"by": "operator", "time_ns": 590_000})
    assert set(peak["place"]) == {"aten::addmm", "aten::mm"}
    blocks = [VIEWS["snapshot_block"].frame(trace, {"block": n}).row(0, named=True) for n in range(8)]
    by_size = {}
    sizes = dict(VIEWS["snapshot_blocks"].frame(trace, {}).select("block", "size_bytes").rows())
    for row in blocks:
        by_size.setdefault(sizes[row["block"]] // MIB, set()).add((row["operator"], row["module"], row["step"]))
    assert by_size == {
        8: {("aten::addmm", "Linear_0", "0"), ("aten::addmm", "Linear_0", "1")},
        4: {("aten::mm", "Linear_0", "0"), ("aten::mm", "Linear_0", "1")},
        2: {("aten::zeros_like", None, "0"), ("aten::zeros_like", None, "1")},
        16: {(None, None, None)},
        32: {(None, None, None)},
    }


@pytest.mark.parametrize("step", ["0", "1"])
def test_what_was_alive_at_the_peak_of_a_step(step):
    trace = training().joined()
    at_peak = VIEWS["snapshot_alive"].frame(trace, {"by": "operator", "step": step})
    earlier = {"aten::zeros_like": 2 * MIB} if step == "1" else {}
    assert dict(at_peak.select("place", "alive_bytes").rows()) == {
        "aten::addmm": 8 * MIB,
        "aten::mm": 4 * MIB,
        **earlier,
    }


def test_a_step_that_begins_with_its_peak_has_what_was_alive_before():
    twins = Twins()
    block = twins.allocate(8 * MIB, 100_000)
    twins.trace.step(7, 200_000, 800_000).op("aten::mm", 300_000, 600_000)
    twins.free(block, 350_000)
    twins.allocate(2 * MIB, 400_000)
    trace = twins.joined()
    assert alive(trace, "operator", step="7") == {"[no operator]": 8 * MIB}


def test_a_step_without_events_of_memory_has_what_was_alive_in_it():
    twins = Twins()
    twins.trace.step(7, 200_000, 100_000).op("aten::mm", 210_000, 50_000)
    twins.allocate(8 * MIB, 100_000)
    twins.allocate(2 * MIB, 900_000)
    assert alive(twins.joined(), "operator", step="7") == {"[no operator]": 8 * MIB}


def test_a_step_outside_of_the_history_has_no_rows():
    twins = Twins()
    twins.trace.step(7, 200_000, 100_000).op("aten::mm", 210_000, 50_000)
    twins.allocate(8 * MIB, 900_000)
    assert alive(twins.joined(), "operator", step="7") == {}


def test_what_an_operator_allocated_over_the_history():
    operators = VIEWS["snapshot_operators"].frame(training().joined(), {})
    columns = ("name", "allocations", "allocated_bytes", "alive_at_peak_bytes", "alive_at_end_bytes")
    assert operators.select(columns).rows() == [
        ("[outside of the trace]", 1, 32 * MIB, 32 * MIB, 32 * MIB),
        ("[no operator]", 1, 16 * MIB, 16 * MIB, 16 * MIB),
        ("aten::addmm", 2, 16 * MIB, 0, 0),
        ("aten::mm", 2, 8 * MIB, 0, 0),
        ("aten::zeros_like", 2, 4 * MIB, 4 * MIB, 4 * MIB),
    ]


def test_what_a_step_allocated_by_operator():
    trace = training().joined()
    of_step = VIEWS["snapshot_operators"].frame(trace, {"step": "1"})
    assert dict(of_step.select("name", "allocated_bytes").rows()) == {
        "aten::addmm": 8 * MIB,
        "aten::mm": 4 * MIB,
        "aten::zeros_like": 2 * MIB,
    }
    of_both = VIEWS["snapshot_operators"].frame(trace, {"step": "1", "name": "aten::mm"})
    assert of_both["allocated_bytes"].to_list() == [4 * MIB]


def test_an_unknown_step_has_no_rows():
    assert alive(training().joined(), "line", step="9") == {}


def test_categories_are_those_of_the_traces_memory():
    trace = training(records_memory=True).joined()
    assert alive(trace, "category")["optimizer state"] == 4 * MIB
    assert alive(trace, "category")["[outside of the trace]"] == 32 * MIB
    assert alive(training().joined(), "category") == {
        "[not in the trace's memory]": 20 * MIB,
        "[outside of the trace]": 32 * MIB,
    }


@pytest.mark.parametrize("records_memory", [False, True])
def test_an_allocation_while_two_threads_run_operators_has_one_only_if_the_trace_recorded_its_address(records_memory):
    twins = Twins(records_memory=records_memory)
    twins.trace.op("aten::mm", 100_000, 200_000).op("aten::pin_memory", 150_000, 200_000, thread=2)
    twins.allocate(2 * MIB, 200_000)
    place = "aten::mm" if records_memory else "[operators of several threads]"
    assert alive(twins.joined(), "operator") == {place: 2 * MIB}


def test_an_allocation_as_an_operator_begins_has_none():
    twins = Twins()
    twins.trace.op("aten::mm", 100_000, 200_000).op("aten::add", 400_000, 200_000)
    twins.allocate(2 * MIB, 303_000)
    twins.allocate(4 * MIB, 398_000)
    assert alive(twins.joined(), "operator") == {"[as an operator began or ended]": 6 * MIB}


def test_near_the_end_of_an_inner_operator_the_outer_one_is_named():
    twins = Twins()
    twins.trace.op("aten::linear", 100_000, 200_000).op("aten::addmm", 120_000, 80_000)
    twins.allocate(2 * MIB, 199_000)
    assert alive(twins.joined(), "operator") == {"aten::linear": 2 * MIB}


def test_an_address_that_is_allocated_again_and_again_has_the_operator_of_each_time():
    twins = Twins(records_memory=True, behind_ns=8_600)
    names = [f"aten::op{n}" for n in range(20)]
    for n, name in enumerate(names):
        at = 100_000 + 25_000 * n
        twins.trace.op(name, at, 24_000).op("aten::worker", at, 24_000, thread=2)
        block = twins.allocate(2 * MIB, at + 4_000)
        twins.free(block, at + 14_000)
    calls = twins.joined().allocating_calls.calls
    assert calls["operator"].drop_nulls().to_list() == names


def test_health_counts_the_allocations_whose_operator_is_known_and_the_others():
    twins = training()
    twins.trace.op("aten::one", 5_000_000, 100_000).op("aten::two", 5_000_000, 100_000, thread=2)
    twins.allocate(MIB, 5_050_000)
    (note,) = [row for row in diagnose(twins.joined()) if row.rule == "snapshot_joined"]
    assert note.count == 8
    assert note.consequence == (
        "rank0.1.pt.trace.json says which operators made 6 of the 8 allocations in its time: 0 by their address, 6 as "
        "the only operator that was open. Not of these: 1 while operators of several threads were open, 1 outside of "
        "operators."
    )


def test_a_trace_of_another_time_says_nothing():
    twins = Twins()
    twins.trace.base_ns += 3_600_000_000_000
    twins.trace.op("aten::mm", 100_000, 200_000)
    twins.allocate(2 * MIB, 200_000)
    trace = twins.joined()
    assert alive(trace, "operator") == {"[outside of the trace]": 2 * MIB}
    assert "snapshot_of_another_time" in {row.rule for row in diagnose(trace)}


def test_without_a_trace_that_is_said():
    twins = training()
    snapshot = read_blocks([twins.allocator.dumped()], path="snapshot.pickle")
    assert alive(snapshot, "operator") == {"[no trace next to the snapshot]": 52 * MIB}
