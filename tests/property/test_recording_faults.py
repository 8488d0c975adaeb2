"""What holds of the checks of physics for every trace."""

import random

from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.diagnostics import physics
from kinetoscope_tb.diagnostics.diagnose import diagnose
from support.build import TraceBuilder
from support.examples import examples
from support.machine import US, Machine
from support.strategies import builders


def summary(trace):
    return [(d.rule, d.count, d.fault and (d.fault.clause, d.fault.affected_ns)) for d in physics.diagnose(trace)]


@examples(80)
@given(builders(), st.sampled_from([1, 1_000, 1_000_000]))
def test_no_check_raises_and_no_fault_affects_more_than_there_is(builder, scale):
    for event in builder.events:
        event["ts"] = float(event["ts"]) * scale
        event["dur"] = float(event.get("dur", 0)) * scale
    trace = builder.build()
    length = int((trace.steps["end_ns"] - trace.steps[["host_start_ns"]].to_series()).sum())
    for diagnostic in physics.diagnose(trace):
        assert diagnostic.count > 0
        if fault := diagnostic.fault:
            assert fault.undermines
            assert fault.clause
            assert fault.clause[0].isupper() or fault.clause[0].isdigit()
            assert not fault.clause.endswith(".")
            assert fault.remedy.endswith(".")
            assert diagnostic.rule == "copies_too_fast" or 0 <= (fault.affected_ns or 0) <= max(length, 0)


@examples(40)
@given(builders(), st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(builder, shuffler):
    before = summary(builder.build())
    shuffler.shuffle(builder.events)
    assert summary(builder.build()) == before


@examples(40)
@given(builders())
def test_a_faultless_recording_is_judged_as_if_nothing_was_checked(builder):
    trace = builder.build()
    diagnostics = diagnose(trace)
    facts = Facts(trace)
    if not any(d.fault for d in diagnostics):
        assert advice(facts, diagnostics) == advice(facts)
    else:
        rules = {a.rule for a in advice(facts)} | {"recording_faults", "nothing_to_fix"}
        assert {a.rule for a in advice(facts, diagnostics)} <= rules


@examples(25)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=6, unique=True), st.integers(0, 2**16))
def test_more_lost_kernels_are_never_less_doubtful(losses, seed):
    machine = Machine()
    chooser = random.Random(seed)
    machine.steps(lambda _: [*((machine.kernel(20 * US), machine.work(30 * US)) for _ in range(40)), machine.wait()], 1)
    kernels = [e for e in machine.builder.events if e["cat"] == "kernel"]
    chooser.shuffle(kernels)
    doubtful = []
    for count in sorted(losses):
        gone = {id(e) for e in kernels[: count - 1]}
        lost = TraceBuilder(machine.builder.base_ns, **machine.builder.top)
        lost.events = [e for e in machine.builder.events if id(e) not in gone]
        durations = [d.fault.affected_ns for d in physics.diagnose(lost.build()) if d.rule.startswith("kernels_")]
        doubtful.append(sum(durations))
    assert doubtful == sorted(doubtful)
