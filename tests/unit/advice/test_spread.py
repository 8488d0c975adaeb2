"""What is said of costs that aren't the same in all steps, calls and devices."""

import numpy as np
import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.advice.spread import Spread, growth
from support.machine import A100, MS, US, Machine

DIMS = {"shapes": [[4096, 4096], [4096, 4096]], "types": ["c10::BFloat16", "c10::BFloat16"]}


def rows(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def steps_of(cost, length=None, names=None):
    cost = np.array(cost, np.int64)
    spread = Spread(cost, np.array(length or [100] * cost.size), 0.03)
    return spread.steps_in_words(names or [str(number) for number in range(cost.size)], "step")


def test_a_share_is_of_the_steps_that_have_the_cost():
    assert steps_of([30] * 5) == "every step"
    assert steps_of([30, 30, 0, 30, 30]) == "the average step"
    assert steps_of([0, 0, 90, 0, 0]) == "step 2"
    assert steps_of([0, 0, 90, 80, 0]) == "steps 2 and 3"
    assert steps_of([0] * 15 + [50, 90, 50, 50, 50]) == "step 16 and 4 others"
    assert steps_of([0, 90]) == "the average step"  # of two, neither is the exception


def test_a_share_is_of_every_step_if_none_has_a_much_smaller_one():
    def title(lengths):
        machine = Machine()

        def step(number):
            machine.load(lengths[number] * MS)
            machine.kernel(60 * MS)
            machine.wait()

        return rows(machine.steps(step, len(lengths)))["data_loading"].title

    assert "of every step waits for data" in title([20, 20, 20, 20, 20])
    assert "of the average step waits for data" in title([16, 24, 20, 17, 23])


def test_a_few_steps_have_nearly_all_of_a_cost_though_others_have_a_little():
    assert steps_of([5, 5, 75, 5, 75, 5, 75, 5]) == "steps 2, 4 and 6"
    assert steps_of([4, 5, 90, 3, 4, 5]) == "step 2"


def test_what_most_steps_have_much_less_of_is_not_said_of_every_one():
    assert steps_of([10, 12, 75, 9, 11, 10]) == "the average step"  # others have nearly half of it
    assert steps_of([5, 75, 75, 75, 5]) == "the average step"  # more than a few
    assert steps_of([30, 33, 39, 45, 52, 60, 70, 82]) == "every step"  # it grows, and the first ones have it, too


def test_only_what_rises_all_the_time_grows():
    assert growth(np.array([1, 2, 3, 4, 5, 6])) == (1.5, 5.5)
    assert growth(np.array([1, 6, 2, 5, 3, 4])) == (0.0, 0.0)
    assert growth(np.array([4, 4, 4, 4, 4, 4])) == (0.0, 0.0)
    assert growth(np.array([1, 2, 3])) == (0.0, 0.0)


@pytest.mark.parametrize(("count", "swaps", "is_told"), [(8, 2, False), (8, 0, True), (30, 8, True)])
def test_a_trend_is_beyond_what_chance_explains(count, swaps, is_told):
    values = np.arange(1, count + 1) * MS
    for number in range(swaps):  # neighbors but one, so that ranks follow their order as steps of a busy machine do
        values[[number, number + 2]] = values[[number + 2, number]]
    assert (growth(values) != (0.0, 0.0)) == is_told


def test_one_late_batch_is_a_claim_about_its_step():
    machine = Machine()

    def step(number):
        machine.load(300 * MS if number == 25 else 20 * US, "_MultiProcessingDataLoaderIter")
        machine.kernel(3 * MS)
        machine.wait()

    first = advice(Facts(machine.steps(step, 60)))[0]
    assert first.rule == "data_loading"
    assert first.title == "99 % of step 25 waits for data."
    assert "in 1 of 60 steps" in first.evidence
    assert "of the average step" in first.evidence
    assert "late batch" in first.action
    assert first.saving_ns == pytest.approx(300 * MS / 60, rel=0.02)


def test_host_work_that_grows_is_a_trend():
    machine = Machine()

    def step(number):
        machine.work((1 + number) * MS)
        machine.kernel(2 * MS)
        machine.wait()

    row = rows(machine.steps(step, 12))["host_bound"]
    assert "in 12 of 12 steps, growing from 2.5 ms in the first third of them to" in row.evidence


def test_the_same_kernel_that_gets_slower_says_nothing_of_the_kernel():
    machine = Machine()

    def step(number):
        for _ in range(10):
            machine.kernel((200 + 20 * number) * US, **DIMS)

    found = rows(machine.steps(step, 15))
    first = next(iter(found.values()))
    assert first.rule == "kernel_times_vary"
    assert first.title.startswith("Equal kernels get slower from step to step")
    assert "`aten::mm`" in first.evidence
    assert "clocks" in first.action
    assert first.view == "steps"  # where the kernels' time of each step stands
    assert "matmul_below_roof" not in found


def test_kernels_of_two_speeds_have_a_neighbor():
    machine = Machine()

    def step(number):
        for _ in range(10):
            machine.kernel(400 * US if number % 3 == 1 else 200 * US, **DIMS)

    first = advice(Facts(machine.steps(step, 15)))[0]
    assert first.rule == "kernel_times_vary"
    assert "in 5 of 15 steps" in first.evidence
    assert "another process" in first.action
    assert first.view == "kernels"  # where least, mean and most stand


def test_different_inputs_and_company_explain_different_times():
    machine = Machine()

    def step(number):
        for size in (1, 2) * 5:
            machine.kernel(size * 200 * US, **{**DIMS, "shapes": [[4096 * size, 4096], [4096, 4096]]})

    assert "kernel_times_vary" not in rows(machine.steps(step, 10))


def on_devices(*lengths, count=6):
    """The steps of a model on some devices, each of which works for so long, one after the other."""
    machine = Machine(None, deviceProperties=[A100, {**A100, "id": 1}])

    def step(_):
        for device, dur in enumerate(lengths):
            for _ in range(10):
                machine.kernel(dur // 10, device=device, **DIMS)

    return machine.steps(step, count)


def test_devices_that_take_turns_have_a_share_each():
    first = advice(Facts(on_devices(12 * MS, 8 * MS)))[0]
    assert first.rule == "uneven_devices"
    assert first.title.startswith("2 GPUs take turns: computation takes 59.9 % on GPU 0 and 40 % on GPU 1")
    assert first.saving_ns == pytest.approx(10 * MS, rel=0.01)


@pytest.mark.parametrize(
    ("count", "subject", "waits"), [(1, "The GPU", "waits"), (2, "Both GPUs", "wait"), (3, "All 3 GPUs", "wait")]
)
def test_devices_together_are_called_as_people_do(count, subject, waits):
    facts = Facts(on_devices(*[1 * MS] * count))
    assert (facts.subject, facts.waits) == (subject, waits)


def test_a_device_that_is_nearly_idle_is_noticed():
    first = advice(Facts(on_devices(20 * MS, 1 * MS)))[0]
    assert (first.rule, first.title.startswith("GPU 1 hardly computes")) == ("uneven_devices", True)


def test_a_first_step_that_only_overlaps_less_is_no_warm_up():
    machine = Machine()

    def step(_):
        machine.load(22 * MS, "_MultiProcessingDataLoaderIter")
        machine.kernel(16 * MS)

    found = rows(machine.steps(step, 8))
    assert "warm_up" not in found
    assert "in 8 of 8 steps" in found["data_loading"].evidence


def test_work_that_cannot_be_judged_counts_against_nothing_stands_out():
    machine = Machine(None)
    trace = machine.steps(lambda _: [machine.kernel(10 * MS, op="my::thing", name="thing") for _ in range(3)], 5)
    first = advice(Facts(trace))[0]
    assert first.confidence == "cannot_tell"
    assert "unknown how close kernels come" in first.title


@pytest.mark.parametrize(("others", "confidence"), [(2, "medium"), (4, "cannot_tell")])
def test_a_small_part_that_cannot_be_rated_keeps_nobody_from_saying_that_all_is_well(others, confidence):
    """9 products of 97 % of the roof, and kernels of which no model exists: 18 or 31 % of the step."""
    machine = Machine()
    dims = {"shapes": [[2304, 2304], [2304, 2304]], "types": ["c10::BFloat16", "c10::BFloat16"]}

    def step(_):
        for _ in range(90):
            machine.kernel(100 * US, **dims)
        for _ in range(10 * others):
            machine.kernel(100 * US, op="my::thing", name="thing")

    last = advice(Facts(machine.steps(step, 6)))[-1]
    assert (last.rule, last.confidence) == ("nothing_to_fix", confidence)
    assert last.title.startswith("Nothing stands out") == (confidence == "medium")
