"""Few steps in which the device does more work than in the others."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, US, Machine

DIMS = {"shapes": [[2304, 2304], [2304, 2304]], "types": ["c10::BFloat16", "c10::BFloat16"]}


def first(trace):
    return advice(Facts(trace))[0]


def products(machine, count):
    for _ in range(count):
        machine.kernel(100 * US, **DIMS)


def steps(extra, rare, count=10):
    machine = Machine()

    def step(number):
        products(machine, 50)
        if number in rare:
            extra(machine)
        machine.wait()

    return machine.steps(step, count)


def validate(machine):
    machine.function("eval.py(21): validate", lambda: products(machine, 150))


def test_an_evaluation_is_a_claim_about_its_step_and_function():
    claim = first(steps(validate, [4]))
    assert claim.rule == "longer_steps"
    assert claim.title == (
        "Step 4 takes 3.99 times as long as the median step: it does more work, most of it in `eval.py(21): validate`."
    )
    assert claim.saving_ns == pytest.approx(1.5 * MS, rel=0.05)


def test_several_steps_are_named_together():
    claim = first(steps(validate, [3, 8]))
    assert claim.title.startswith("Steps 3 and 8 take 3.99 times as long as the median step: they do more work")


def test_an_annotation_is_a_name_too_and_without_one_the_steps_are():
    by_annotation = steps(lambda machine: machine.annotation("sample images", lambda: products(machine, 150)), [4])
    assert first(by_annotation).title.endswith("most of it in `sample images`.")
    claim = first(steps(lambda machine: products(machine, 150), [4]))
    assert (claim.title.endswith("it does more work."), claim.confidence) == (True, "medium")


def test_steps_that_alternate_are_no_exception():
    assert first(steps(validate, range(0, 10, 2))).rule != "longer_steps"


@pytest.mark.parametrize("rare", [[4], [3, 8]])
def test_on_the_host_a_function_that_runs_in_some_steps_alone_is_told(rare):
    machine = Machine(None)

    def compute(dur):
        machine.op("aten::mm", lambda: machine.work(dur))

    def step(number):
        machine.function("train.py(9): forward", lambda: compute(10 * MS))
        if number in rare:
            machine.function("train.py(20): validate", lambda: compute(20 * MS))

    claim = first(machine.steps(step, 10))
    which, verb, there = ("Step 4", "takes", "it") if rare == [4] else ("Steps 3 and 8", "take", "them")
    assert claim.title == (
        f"{which} {verb} 3 times as long as the median step: `train.py(20): validate` runs in {there} alone."
    )
    assert (claim.rule, claim.confidence) == ("longer_host_steps", "high")
    assert claim.culprit.function == "train.py(20): validate"
    assert claim.saving_ns == 20 * MS * len(rare) / 10


def test_a_step_that_alone_has_most_of_a_rare_function_is_one():
    machine = Machine(None)

    def compute(dur):
        machine.op("aten::mm", lambda: machine.work(dur))

    def step(number):
        machine.function("train.py(9): forward", lambda: compute(16 * MS if number == 8 else 10 * MS))
        if number in (4, 8):
            machine.function("train.py(20): validate", lambda: compute(40 * MS if number == 4 else MS // 4))

    claim = first(machine.steps(step, 10))
    assert claim.title.startswith("Step 4 takes ")
    assert claim.title.endswith(": `train.py(20): validate` runs in it alone.")


@pytest.mark.parametrize("rare", [(1, 4), (4,)])
def test_a_function_of_few_steps_is_told_where_other_work_makes_others_longer(rare):
    """As on a machine that others use: the longest step isn't one with a checkpoint."""
    machine = Machine(None)
    others = (60, 40, 160, 85, 45, 60)

    def step(number):
        machine.function(
            "train.py(9): forward", lambda: machine.op("aten::mm", lambda: machine.work(others[number] * MS))
        )
        if number in rare:
            machine.function(
                "train.py(30): save_checkpoint", lambda: machine.op("aten::copy_", lambda: machine.work(70 * MS))
            )

    claim = first(machine.steps(step, 6))
    which = "steps 1 and 4" if len(rare) > 1 else "step 4"
    assert claim.rule == "longer_host_steps"
    assert claim.title.startswith("`train.py(30): save_checkpoint` takes ")
    assert claim.title.endswith(f" % of {which}, and runs in no other.")
    assert claim.culprit.function == "train.py(30): save_checkpoint"
    assert claim.saving_ns == round(70 * MS * len(rare) / 6)


def test_on_the_host_steps_that_take_longer_for_no_recorded_reason_have_no_culprit():
    machine = Machine(None)

    def step(number):
        machine.function(
            "train.py(9): forward",
            lambda: machine.op("aten::mm", lambda: machine.work((30 if number == 4 else 10) * MS)),
        )

    assert first(machine.steps(step, 10)).rule != "longer_host_steps"
