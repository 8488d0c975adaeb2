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
        "Step 4 takes 3.99 times as long as the median step: it does more work, most of it in `validate (eval.py:21)`."
    )
    assert claim.saving_ns == pytest.approx(1.5 * MS, rel=0.05)
    assert claim.action.startswith("Run `validate (eval.py:21)` less often or on less data, ")
    assert claim.candidate.words == "validate (eval.py:21)"


def test_several_steps_are_named_together():
    claim = first(steps(validate, [3, 8]))
    assert claim.title.startswith("Steps 3 and 8 take 3.99 times as long as the median step: they do more work")


def test_an_annotation_is_a_name_too_and_without_one_the_steps_are():
    by_annotation = steps(lambda machine: machine.annotation("sample images", lambda: products(machine, 150)), [4])
    assert first(by_annotation).title.endswith("most of it in `sample images`.")
    claim = first(steps(lambda machine: products(machine, 150), [4]))
    assert (claim.title.endswith("it does more work."), claim.confidence) == (True, "medium")
    assert claim.action.startswith("The trace doesn't say what launches it there: record Python stacks")


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
        f"{which} {verb} 3 times as long as the median step: `validate (train.py:20)` runs in {there} alone."
    )
    assert (claim.rule, claim.confidence) == ("longer_host_steps", "high")
    assert claim.culprit.function == "train.py(20): validate"
    assert claim.action.startswith("Run `validate (train.py:20)` less often, on less data, ")
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
    assert claim.title.endswith(": `validate (train.py:20)` runs in it alone.")


@pytest.mark.parametrize("longer_ms", [50, 300])
def test_what_all_steps_cost_on_a_cpu_is_said_whatever_one_step_does_once(longer_ms):
    machine = Machine(None)

    def step(number):
        machine.load(2 * MS)
        machine.op("aten::mm", lambda: machine.work(18 * MS))
        if number == 7:
            machine.op("aten::copy_", lambda: machine.work(longer_ms * MS))

    claims = {claim.rule: claim for claim in advice(Facts(machine.steps(step, 20)))}
    assert claims["longer_host_steps"].title.startswith("Step 7 takes ")
    assert claims["data_loading"].saving_ns == 2 * MS
    assert "data loading" not in claims["nothing_to_fix"].title


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
    assert claim.title.startswith("`save_checkpoint (train.py:30)` takes ")
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


ADAM = "void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor<float>>"
DURATION_OF_UPDATE = 6 * MS


def accumulation(updates, count=12, kernels=5, name="Optimizer.step#AdamW.step"):
    """A training whose optimizer updates with so many kernels in some steps alone; no input differs."""
    machine = Machine()

    def update():
        for _ in range(kernels):
            machine.kernel(DURATION_OF_UPDATE // kernels, ADAM, "aten::_fused_adamw_", grid=[320, 1, 1])

    def step(number):
        products(machine, 50)
        if number in updates:
            machine.annotation(name, update)
        machine.wait()

    return machine.steps(step, count)


@pytest.mark.parametrize("kernels", [5, 50])
def test_updates_once_in_so_many_steps_are_gradient_accumulation(kernels):
    last = first(accumulation((5, 11), kernels=kernels))
    assert (last.rule, last.confidence) == ("nothing_to_fix", "medium")
    assert last.title.startswith("Nothing stands out: ")
    assert " % in `Optimizer.step`, once in 6 steps (gradient accumulation)." in last.evidence


@pytest.mark.parametrize("updates", [(3, 8, 10), (6,)])
def test_updates_at_any_distance_are_told_without_advice_on_batches(updates):
    claim = first(accumulation(updates))
    assert claim.rule == "longer_steps"
    assert claim.title.endswith("more work, most of it in `aten::_fused_adamw_`.")
    assert claim.action.startswith("An optimizer updates in these steps alone")


def test_what_only_longer_steps_run_is_told_before_inputs_are_blamed():
    claim = first(accumulation((3, 7, 11), name="average weights"))
    assert claim.title.endswith("more work, most of it in `aten::_fused_adamw_`.")
    assert claim.culprit.range == "aten::_fused_adamw_"


def test_a_kernel_without_operator_that_only_longer_steps_run_is_no_larger_input():
    def sample(machine):
        for _ in range(5):
            machine.kernel(MS, "my_kernel", op="", grid=[320, 1, 1])

    claim = first(steps(sample, [4]))
    assert claim.title.endswith("more work, most of it in `my_kernel`.")
    assert claim.culprit.kernel == "my_kernel"


def test_annotations_that_count_steps_are_no_cause():
    machine = Machine()

    def step(number):
        factor = 5 if number in (4, 9) else 1
        shapes = [[8192 * factor, 4096], [4096, 4096]]
        machine.annotation(
            f"batch {number}",
            lambda: machine.kernel(factor * MS, shapes=shapes, types=["c10::BFloat16"] * 2, grid=[factor * 64, 1, 1]),
        )
        machine.wait()

    assert first(machine.steps(step, 14)).title.endswith("more work, on larger inputs.")


def test_on_the_host_updates_once_in_so_many_steps_are_gradient_accumulation():
    machine = Machine(None)

    def update():
        machine.op("aten::_fused_adamw_", lambda: machine.work(20 * MS))

    def step(number):
        machine.op("aten::mm", lambda: machine.work(10 * MS))
        if number % 4 == 3:
            machine.function("train.py(30): step", lambda: machine.annotation("Optimizer.step#AdamW.step", update))

    claims = advice(Facts(machine.steps(step, 12)))
    assert "longer_host_steps" not in [claim.rule for claim in claims]
    assert "% in `Optimizer.step`, once in 4 steps (gradient accumulation)" in claims[-1].evidence
