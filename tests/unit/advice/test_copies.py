"""Copies: their direction, who makes them, small ones, and those within a device's memory."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, US, Machine


def first(trace):
    return advice(Facts(trace))[0]


def steps(body, count=6):
    machine = Machine()

    def step(_):
        for _ in range(10):
            machine.kernel(MS)
        body(machine)

    return machine.steps(step, count)


@pytest.mark.parametrize(
    ("names", "direction"),
    [
        (["Memcpy HtoD (Pinned -> Device)"], "from the host to the device"),
        (["Memcpy DtoH (Device -> Pinned)"], "from the device to the host"),
        (["Memcpy HtoD (Pinned -> Device)", "Memcpy DtoH (Device -> Pinned)"], "between host and device"),
    ],
)
def test_copies_have_a_direction_and_an_operator(names, direction):
    claim = first(steps(lambda machine: [machine.copy(2 * MS, name) for name in names]))
    assert claim.rule == "copies"
    assert claim.title.startswith(f"Exposed copies {direction} take")
    assert "`aten::copy_` makes most of them" in claim.evidence


@pytest.mark.parametrize(
    ("times", "options", "words"),
    [
        (1, {}, None),
        (4, {}, "What is the same each time belongs on the device once (`register_buffer`)."),
        (
            1,
            {"name": "Memcpy HtoD (Pinned -> Device)", "stream": 13},
            "The copies have a stream of their own, but wait",
        ),
        (1, {"name": "Memcpy HtoD (Pinned -> Device)"}, "Copy one batch ahead on a stream of its own"),
    ],
)
def test_the_remedy_knows_equal_copies_and_streams(times, options, words):
    action = first(steps(lambda machine: [machine.copy(3 * MS, **options) for _ in range(times)])).action
    assert words in action if words else action.endswith(", one batch ahead.")


def test_the_function_that_copies_is_named():
    trace = steps(lambda machine: machine.function("eval.py(7): collect_outputs", lambda: machine.copy(3 * MS)))
    assert "the longest at `collect_outputs (eval.py:7)`." in first(trace).evidence


def test_many_small_copies_cost_what_the_host_takes_to_launch_them():
    """200 copies of 2 µs, each of which takes the host 15 µs, while no kernel is queued."""

    def copy(machine):
        machine.wait()
        for _ in range(200):
            machine.copy(2 * US)

    claim = first(steps(copy))
    assert claim.rule == "small_copies"
    assert claim.title.startswith("Many small copies from the host to the device take")
    assert claim.evidence.startswith("200 copies per step of 2 µs each")
    assert claim.saving_ns == pytest.approx(200 * 10 * US, rel=0.25)


def test_few_small_copies_are_nothing():
    assert first(steps(lambda machine: [machine.copy(2 * US) for _ in range(5)])).rule == "nothing_to_fix"


def test_copies_within_the_device_are_a_cost_of_their_own():
    name = "Memcpy DtoD (Device -> Device)"
    claim = first(steps(lambda machine: [machine.copy(MS, name) for _ in range(4)]))
    assert claim.rule == "device_copies"
    assert claim.title.startswith("Copies within the device's memory take 28")
    assert "`aten::copy_` makes most of them" in claim.evidence
    assert claim.saving_ns == pytest.approx(4 * MS, rel=0.02)


def test_fills_are_a_cost_of_their_own():
    claim = first(steps(lambda machine: [machine.fill(MS) for _ in range(4)]))
    assert claim.rule == "fills"
    assert claim.title.startswith("Filling memory with a value (memset) takes 28")
    assert "`aten::zero_` makes most of them" in claim.evidence
    assert claim.saving_ns == pytest.approx(4 * MS, rel=0.02)


def exchanging(*, op="", name="Memcpy PtoP (Device -> Device)", **others):
    """The device computes for 10 ms, then 4 copies of 64 MB take 2 ms each."""
    machine = Machine()

    def copy():
        machine.function("split.py(9): exchange", lambda: machine.copy(2 * MS, name, **others))

    def step(_):
        machine.kernel(10 * MS)
        for _ in range(4):
            copy()
        machine.wait()

    return machine.steps(step)


def test_copies_between_devices_are_named_with_their_rate_and_place():
    first, *_ = advice(Facts(exchanging()))
    assert first.rule == "peer_copies"
    assert first.title.startswith("Copies between GPUs take 44.")
    assert first.saving_ns == pytest.approx(8 * MS, rel=0.02)
    assert "the longest at `exchange (split.py:9)`" in first.evidence


def test_a_copy_that_takes_longer_than_the_computation_cannot_be_hidden():
    machine = Machine()

    def step(_):
        machine.kernel(5 * MS)
        machine.copy(12 * MS, "Memcpy HtoD (Pinned -> Device)", stream=20)
        machine.wait()

    claim = {row.rule: row for row in advice(Facts(machine.steps(step)))}["copies"]
    assert claim.action.startswith("The copies take longer than the computation, so one batch ahead can't hide them")


def test_copies_of_one_step_are_counted_there():
    machine = Machine()

    def step(number):
        machine.copy(20 * US, "Memcpy HtoD (Pinned -> Device)")
        for _ in range(10):
            machine.kernel(MS)
        for _ in range(8 if number == 3 else 0):
            machine.copy(5 * MS, "Memcpy DtoH (Device -> Pageable)")

    claim = first(machine.steps(step, 8))
    assert claim.title.startswith("Exposed copies from the device to the host take 80 %")
    assert claim.title.endswith(" of step 3.")
    assert ", 9.44 MB there; " in claim.evidence  # nine copies of 1 MiB; the others are of other steps
