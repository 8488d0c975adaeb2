"""What a step or two do besides, and what all or several of them lose for another reason: both are claims."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, US, Machine

DIMS = {"shapes": [[2304, 2304], [2304, 2304]], "types": ["c10::BFloat16", "c10::BFloat16"]}


def claims(body, count):
    """The advice about steps in which the device computes for 20 ms and the host then does `body(machine, number)`."""
    machine = Machine()

    def compute(kernels):
        for _ in range(kernels):
            machine.kernel(200 * US, **DIMS)

    def step(number):
        compute(100)
        machine.wait()
        body(machine, number, compute)

    return {claim.rule: claim for claim in advice(Facts(machine.steps(step, count)))}


def log(machine, dur):
    machine.function("log.py(14): append", lambda: machine.work(dur))


def test_what_every_step_waits_for_is_a_share_of_steps_without_a_collection():
    """3 ms are 13 % of a step of 23 ms, and less than a tenth of the average step of 33 ms."""

    def body(machine, number, _):
        log(machine, 3 * MS)
        if number == 5:
            machine.function("Python GC", lambda: machine.work(100 * MS))

    rows = claims(body, 10)
    assert rows["garbage_collection"].saving_ns == pytest.approx(10 * MS, rel=0.05)
    assert rows["host_bound"].culprit.function == "log.py(14): append"
    assert " of the average step, most of it in " in rows["host_bound"].title
    assert rows["host_bound"].saving_ns == pytest.approx(3 * MS, rel=0.05)


def test_pauses_of_a_step_that_also_evaluates_count_with_the_others():
    """Every third step logs; one of them evaluates, too, and so takes longer for two reasons."""

    def body(machine, number, compute):
        if number % 3 == 2:
            log(machine, 12 * MS)
        if number == 5:
            machine.function("train.py(99): evaluate", lambda: compute(200))

    rows = claims(body, 9)
    assert rows["longer_steps"].title.startswith("Step 5 takes ")
    claim = rows["longer_host_steps"]
    assert claim.title.startswith("Steps 2, 5 and 8 take ")
    assert claim.culprit.function == "log.py(14): append"
    assert claim.saving_ns == pytest.approx(4 * MS, rel=0.05)


@pytest.mark.parametrize("saves", [4, 5])
def test_pauses_of_a_step_that_also_saves_count_with_the_others(saves):
    """Every fourth step logs for 9 ms; one step saves for 70 ms, be it one of them (5) or not (4)."""

    def body(machine, number, _):
        if number % 4 == 1:
            log(machine, 9 * MS)
        if number == saves:
            machine.function("ckpt.py(20): save", lambda: machine.work(70 * MS))

    rows = claims(body, 12)
    assert rows["longer_host_steps"].saving_ns == pytest.approx(70 / 12 * MS, rel=0.05)
    claim = rows["host_bound"]
    assert claim.title.endswith(" of steps 1, 5 and 9, most of it in `append (log.py:14)`.")
    assert claim.saving_ns == pytest.approx(3 * 9 / 12 * MS, rel=0.05)
    assert (
        "In one gap alone the host is late for 9" in claim.evidence
    )  # be it 79 ms long, with another cause for the rest


def test_a_pause_of_one_step_alone_stays_one_claim():
    rows = claims(lambda m, n, _: n == 5 and m.function("ckpt.py(20): save", lambda: m.work(70 * MS)), 12)
    assert "host_bound" not in rows
