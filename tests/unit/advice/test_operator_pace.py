"""Operators of the host that take far longer than any processor needs."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, US, Machine

FLOATS = ["float", "float"]


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def call(machine, name, shapes, dur, types=FLOATS):
    machine.op(name, lambda: machine.work(dur), **{"Input Dims": shapes, "Input type": types})


def matmul(machine, dur, size=512, types=FLOATS):
    """A matmul of 268 MFLOP, or of another size."""
    call(machine, "aten::mm", [[size, size], [size, size]], dur, types)


def small_matmul(machine, dur, rows=10, types=FLOATS):
    """A matmul of 2.6 MFLOP, for which a single slow core takes 5.2 ms, and 1.4 ms for its 0.5 MB."""
    call(machine, "aten::mm", [[rows, 512], [512, 256]], dur, types)


def test_a_matmul_that_takes_longer_than_on_any_core_may_wait_for_cores():
    machine = Machine(None)

    def step(_):
        matmul(machine, 3 * MS)
        small_matmul(machine, 33 * MS)

    row = next(iter(rows(machine.steps(step, 6)).values()))
    assert (row.rule, row.confidence, row.culprit.operator) == ("slow_operators", "low", "aten::mm")
    assert row.title == (
        "Operators take far longer than any processor needs, for 91.7 % of every step: their threads may wait for cores."
    )
    assert "1 call per step of 33 ms each. A single slow core takes 6.73 ms at most for such a call" in row.evidence
    assert (
        "here it computes 0.0794 GFLOP/s. The fastest matmul of this recording computes 89.5 GFLOP/s." in row.evidence
    )
    assert "These calls take equally long, as they would if they computed with numbers near zero" in row.evidence
    assert "torch.set_num_threads" in row.action
    assert row.saving_ns == pytest.approx(33 * MS - 6.73 * MS, rel=0.01)
    assert row.saving_range[1] == 36 * MS  # with fewer threads all other operators may be faster, too


def uneven(machine, count=6):
    """Equal calls that take from 0.05 to 40 ms."""

    def step(number):
        for part in range(4):
            small_matmul(machine, 50 * US if part == number % 4 else (20 + 5 * part) * MS)

    return machine.steps(step, count)


def test_equal_calls_of_which_some_are_fast_wait_for_cores():
    row = rows(uneven(Machine(None)))["slow_operators"]
    assert row.title.endswith("their threads probably wait for cores.")
    assert row.confidence == "medium"
    assert row.evidence.endswith("The fastest of the equal calls takes 50 µs.")


def test_what_waits_for_cores_is_told_once():
    assert list(rows(uneven(Machine(None)))) == ["slow_operators", "nothing_to_fix"]


def test_elementwise_operators_that_wait_are_slow_too():
    machine = Machine(None)

    def step(_):
        for name in ("aten::clamp_min", "aten::threshold_backward", "aten::add"):
            call(machine, name, [[400, 256], [400, 256]], 7 * MS)

    assert "slow_operators" in rows(machine.steps(step, 6))


@pytest.mark.parametrize(
    ("dur", "size", "types"),
    [
        (6 * MS, 10, FLOATS),  # as slow as a slow core
        (33 * MS, 10, ["c10::BFloat16", "c10::BFloat16"]),  # no library may compute it
        (90 * US, 1, FLOATS),  # that is what a call costs
    ],
)
def test_what_a_slow_core_takes_as_long_for_waits_for_none(dur, size, types):
    machine = Machine(None)
    trace = machine.steps(lambda _: (matmul(machine, 3 * MS), small_matmul(machine, dur, size, types)), 6)
    assert "slow_operators" not in rows(trace)


def test_first_calls_may_make_code_for_their_inputs():
    machine = Machine(None)

    def step(number):
        matmul(machine, 20 * MS)
        small_matmul(machine, 33 * MS, rows=10 + number)  # other inputs in each step

    assert "slow_operators" not in rows(machine.steps(step, 6))


def test_operators_that_are_slow_in_few_steps_are_none():
    machine = Machine(None)
    trace = machine.steps(lambda number: (matmul(machine, 20 * MS), small_matmul(machine, (number < 2) * 33 * MS)), 6)
    assert "slow_operators" not in rows(trace)


def test_free_cores_say_that_something_else_holds_operators_up():
    cpu = {"window_ns": 10**9, "process_ns": 2 * 10**9, "cores": 8}
    machine = Machine(None, kinetoscope={"cpu": cpu})
    uneven(machine)
    for name, series, value in (("process cpu", "cores", 2.0), ("cpu", "used", 0.3)):
        machine.builder.event("", name, 0, None, ph="C", **{series: value})
    row = rows(machine.builder.build())["slow_operators"]
    assert row.title.endswith("something holds them up.")
    assert (row.confidence, row.evidence.endswith("The process used 2 of the 8 cores that it may use.")) == (
        "low",
        True,
    )
