"""Waits of the host: for copies, for work that isn't recorded, and while the profiler itself works."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.names import text
from support.machine import MS, US, Machine


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def copying(name, call="cudaMemcpyAsync", pause=500 * US):
    """Copies after each kernel; the call returns when the copy is over, and the host prepares what it launches next."""
    machine = Machine()

    def copy():
        machine.calls += 1
        start = machine.free + US
        machine.builder.launch(machine.now, start + 20 * US - machine.now, machine.calls, name=call)
        machine.builder.device("gpu_memcpy", name, start, 18 * US, machine.calls, bytes=1 << 16)
        machine.now, machine.free = start + 20 * US, start + 18 * US

    def step(_):
        for _ in range(5):
            machine.kernel(2 * MS)
            machine.op("aten::copy_", copy)
            machine.work(pause)

    return machine.steps(step)


def test_a_call_that_returns_after_its_own_copy_to_the_host_is_a_wait():
    claim = rows(copying("Memcpy DtoH (Device -> Pageable)"))["synchronizing"]
    assert "`aten::copy_` (.cpu(), .to() or copy_(); 5 times per step)" in claim.evidence
    assert claim.saving_ns == pytest.approx(2.5 * MS, rel=0.1)


def test_who_waits_for_a_copy_to_the_device_is_told_to_pin_memory():
    claim = rows(copying("Memcpy HtoD (Pageable -> Device)", call="hipMemcpyWithStream"))["synchronizing"]
    assert "`aten::copy_` (a copy to the device; 5 times per step)" in claim.evidence
    assert "pin_memory=True" in claim.action


def late(*, profiler):
    """The host is late for 3 ms in `prepare`, and for 2 more, in which it waits for the profiler if `profiler`."""
    machine = Machine()

    def step(_):
        machine.kernel(4 * MS)
        machine.wait()
        machine.function("train.py(7): prepare", lambda: machine.work(3 * MS))
        start = machine.now
        machine.function("train.py(8): pack", lambda: machine.work(2 * MS))
        if profiler:
            machine.builder.event("overhead", "Activity Buffer Request", start, 2 * MS, pid=-1, tid=0)

    return rows(machine.steps(step))["host_bound"]


def test_what_the_profiler_does_meanwhile_is_said_and_not_counted_on():
    assert "most of it in `prepare (train.py:7)`" in late(profiler=False).title
    claim = late(profiler=True)
    assert " 2 ms of that time is the profiler's own work, which the saving doesn't count. " in claim.evidence
    assert claim.saving_ns == pytest.approx(3 * MS, rel=0.05)
    assert late(profiler=False).saving_ns == pytest.approx(5 * MS, rel=0.05)


def test_what_is_saved_besides_the_time_that_is_given_is_said():
    """Without `prepare`, half of which is hidden, small kernels are launched while the large one runs."""
    machine = Machine()

    def step(_):
        machine.kernel(3 * MS)
        machine.function("train.py(7): prepare", lambda: machine.work(6 * MS))
        for _ in range(100):
            machine.kernel(2 * US, host=15 * US)
        machine.wait()

    claim = rows(machine.steps(step))["host_bound"]
    assert claim.saving_ns > 1.1 * claim.size_ns
    besides, whole = text.time(claim.saving_ns - claim.size_ns), text.time(claim.saving_ns)
    said = f" {besides} of the {whole} saved comes from other work, which could then start earlier."
    assert claim.evidence.endswith(said)


def slow_launch(*, in_operator):
    machine = Machine()

    def launch():
        machine.calls += 1
        machine.builder.launch(machine.now, 5 * MS, machine.calls)
        machine.builder.kernel("late", machine.now + 5 * MS - US, MS, machine.calls)
        machine.now += 5 * MS
        machine.free = machine.now + MS

    def step(_):
        machine.kernel(4 * MS)
        machine.wait()
        machine.op("aten::add_", launch) if in_operator else launch()

    return rows(machine.steps(step))["slow_launch"]


def test_a_single_slow_launch_is_said_once():
    machine = Machine()
    machine.builder.step(1, 0, 12 * MS).op("aten::add_", 100 * US, 6 * MS).launch(200 * US, 5 * MS, 1)
    machine.builder.kernel("late", 5 * MS, 7 * MS, 1)
    evidence = rows(machine.builder.build())["slow_launch"].evidence
    assert evidence == "4.8 ms of 12 ms in 1 call per step, in `aten::add_`."


def test_the_operator_that_holds_the_profilers_own_work_is_named():
    machine = Machine()

    def step(_):
        machine.kernel(4 * MS)
        machine.wait()
        start = machine.now
        machine.op("aten::arange", lambda: machine.work(3 * MS))
        machine.work(3 * MS)
        machine.builder.event("overhead", "Activity Buffer Request", start + MS, MS, pid=-1, tid=0)

    evidence = rows(machine.steps(step))["host_bound"].evidence
    assert " 1 ms of that time is the profiler's own work, most of that in `aten::arange`, which the saving" in evidence


def test_a_slow_launch_is_named_by_its_operator():
    assert "; the longest, in `aten::add_`, leaves the GPU idle for" in slow_launch(in_operator=True).evidence
    assert "; the longest leaves the GPU idle for" in slow_launch(in_operator=False).evidence


def test_warming_up_is_advised_only_where_first_launches_are_the_slow_ones():
    assert slow_launch(in_operator=True).action.startswith("Look at what the calls wait for")
    machine = Machine()
    machine.builder.step(1, 0, 12 * MS).launch(200 * US, 5 * MS, 1).kernel("late", 5 * MS, 7 * MS, 1)
    assert rows(machine.builder.build())["slow_launch"].action.startswith("Warm up before recording")


def test_a_gap_that_began_in_no_wait_is_no_evidence_of_one():
    machine = Machine()

    def step(_):
        machine.kernel(6 * MS)
        machine.wait()
        for name in ("first", "second", "third"):
            machine.work(600 * US)
            machine.kernel(300 * US, name)
        machine.work(3 * MS)
        machine.kernel(2 * MS, "late")

    trace = machine.steps(step)
    claims = rows(trace)
    assert "`late`" in claims["host_bound"].evidence
    assert "`late`" not in claims["synchronizing"].evidence
