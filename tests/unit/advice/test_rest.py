"""The last row: what nothing is to fix in, and large losses that have no claim of their own."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, US, Machine

COPIES = "copying between host and device."


def checkpoints(*, copies_in_function):
    """In step 5 a function writes for 150 ms; 60 ms of copies are its own, or those of the step."""
    machine = Machine()

    def copy():
        machine.copy(60 * MS, "Memcpy DtoH (Device -> Pageable)")
        machine.wait(op="aten::copy_")

    def save():
        if copies_in_function:
            copy()
        machine.work(150 * MS)

    def step(number):
        for _ in range(15):
            machine.kernel(MS)
        if number == 5:
            machine.function("train.py(90): save_state", save)
            if not copies_in_function:
                copy()
        machine.wait()

    return advice(Facts(machine.steps(step, 10)))


@pytest.mark.parametrize(("copies_in_function", "words"), [(True, "Part of the above"), (False, "Without advice")])
def test_nothing_is_to_fix_only_in_what_costs_little(copies_in_function, words):
    claims = checkpoints(copies_in_function=copies_in_function)
    assert "save_state" in claims[0].title
    assert "copies" not in claims[-1].title
    loss = claims[-1].evidence.split(f" {words}: ")[1].split(" Unknown")[0]
    assert loss.endswith(COPIES)


def test_without_a_function_its_copies_are_saved_too():
    claim, *_ = checkpoints(copies_in_function=True)
    assert claim.saving_ns == pytest.approx(21 * MS, rel=0.01)
    assert claim.evidence.endswith(" What it launches takes 60 ms besides.")
    claim, *_ = checkpoints(copies_in_function=False)
    assert claim.saving_ns == pytest.approx(13.5 * MS, rel=0.01)  # the rest hides the kernels before it
    assert "What it launches" not in claim.evidence


def test_launch_latency_of_an_optimizer_is_part_of_the_claim_about_it():
    machine = Machine()

    def update():
        for _ in range(1_000):
            machine.kernel(2 * US, "void at::native::vectorized_elementwise_kernel<4>", "aten::mul_")

    def step(_):
        for _ in range(5):
            machine.kernel(MS)
        machine.annotation("Optimizer.step#Adam.step", update)

    claims = advice(Facts(machine.steps(step)))
    assert claims[0].rule == "optimizer"
    assert "launch latency" not in claims[-1].title
    assert "Part of the above: " in claims[-1].evidence
    assert "idle between queued work (launch latency)" in claims[-1].evidence.split("Part of the above: ")[1]
