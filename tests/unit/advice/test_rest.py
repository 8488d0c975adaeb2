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


@pytest.mark.parametrize(
    ("copies_in_function", "words"), [(True, "Part of the above"), (False, "Costs that no advice covers")]
)
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


def test_launches_are_not_fine_where_half_of_the_hosts_work_would_save_much():
    """The host loads 30 ms, then launches for 40 ms what takes 50 ms: the device waits for data alone."""
    machine = Machine()

    def step(_):
        machine.load(30 * MS)
        for _ in range(100):
            machine.kernel(500 * US, host=400 * US)

    claims = advice(Facts(machine.steps(step, 8)))
    assert claims[0].rule == "data_loading"
    assert "launches" not in claims[-1].title
    loss = claims[-1].evidence.split("Costs that no advice covers: ")[1]
    half = "half of all host code and launches, data loading included, would save 2"
    assert f"waiting for the host, though {half}" in loss


@pytest.mark.parametrize(("blocks", "is_fine"), [(0.8, False), (0.95, True)])
def test_multiprocessors_are_not_fine_where_a_tenth_of_the_step_is_lost(blocks, is_fine):
    machine = Machine()

    def step(_):
        machine.load(10 * MS)
        for _ in range(50):
            machine.kernel(MS, **{"blocks per SM": blocks})
        machine.wait()

    rest = advice(Facts(machine.steps(step)))[-1]
    assert ("SM efficiency" in rest.title) == is_fine
    words = f"Costs that no advice covers: {'' if is_fine else '16.'}"
    assert (f"{words}" in rest.evidence and "lost because running kernels leave 20 % of" in rest.evidence) != is_fine


def test_what_fusing_saves_beyond_the_numbers_of_its_evidence_is_said():
    """Four kernels of 220 µs become one of 197 µs, and the device no longer waits for three launches of them."""
    machine = Machine()

    def step(_):
        for _ in range(10):
            machine.kernel(MS)
            for name in ("aten::mul", "aten::add", "aten::sub", "aten::div"):
                shapes, kernel = [[8192, 4096], [8192, 4096]], "void at::native::vectorized_elementwise_kernel<4>"
                machine.kernel(220 * US, kernel, name, 500 * US, shapes=shapes, types=["float", "float"])

    claim = next(claim for claim in advice(Facts(machine.steps(step))) if claim.rule == "elementwise")
    assert 1.05 * claim.candidate.less * claim.size_ns < claim.saving_ns < claim.size_ns
    assert claim.evidence.endswith(" saved comes from other work, which could then start earlier.")
