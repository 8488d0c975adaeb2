"""What grows from step to step: kernels of one operator, a function that is hidden at first, inputs of some steps."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, US, Machine


def first(trace):
    return advice(Facts(trace))[0]


def with_cat(length, count=12, **args):
    """Steps with other kernels of 4 ms, and an `aten::cat` that takes `length(number)`."""
    machine = Machine()

    def step(number):
        for _ in range(4):
            machine.kernel(MS)
        machine.kernel(length(number), "CatArrayBatchedCopy<float>", "aten::cat", **args)
        machine.wait()

    return machine.steps(step, count)


def test_an_operator_whose_kernels_grow_is_named_though_its_roof_is_unknown():
    claim = first(with_cat(lambda number: (1 + number) * MS))
    assert claim.rule == "growing_kernels"
    assert claim.view == "steps"
    assert (
        claim.title == "Kernels of `aten::cat` take longer from step to step: 4.2 times as long at the end as at first."
    )
    assert "2.5 ms per step in the first third of the steps, and 10.5 ms in the last" in claim.evidence
    assert claim.saving_ns == pytest.approx(sum(max(0, number - 1.5) for number in range(12)) / 12 * MS, rel=0.02)


def test_kernels_that_vary_without_a_trend_do_not_grow():
    rules = [claim.rule for claim in advice(Facts(with_cat(lambda number: (1 + number * 5 % 12) * MS)))]
    assert "growing_kernels" not in rules


def with_bank(length, count):
    """Steps with other kernels of 28 ms, and a function that concatenates for `length(number)`."""
    machine = Machine()

    def step(number):
        for _ in range(28):
            machine.kernel(MS)
        kernel = length(number), "CatArrayBatchedCopy<float>", "aten::cat"
        machine.function("train.py(66): update_bank", lambda: machine.kernel(*kernel))
        machine.wait()

    return machine.steps(step, count)


@pytest.mark.parametrize("count", [8, 30])
def test_what_grows_steadily_is_named_while_it_is_little(count):
    claim = first(with_bank(lambda number: (1 + number) * 6 * MS // count, count))
    assert claim.rule == "growing_kernels"
    assert claim.title.startswith("Kernels of `aten::cat` take longer from step to step: ")
    assert claim.title.endswith(" times as long at the end as at first, most of them in `update_bank (train.py:66)`.")
    assert f", {750 if count == 8 else 200} µs more in each: " in claim.evidence


@pytest.mark.parametrize("sizes", [(1, 2, 4, 3, 5, 4, 6, 6, 7, 5), (1, 1, 1, 1, 1, 6, 6, 6, 6, 6), (1, 2, 3, 4, 5)])
def test_what_varies_or_is_seen_for_few_steps_does_not_grow_steadily(sizes):
    trace = with_bank(lambda number: sizes[number] * 600 * US, len(sizes))
    assert "growing_kernels" not in [claim.rule for claim in advice(Facts(trace))]


def test_a_function_that_is_hidden_at_first_is_said_to_grow():
    machine = Machine()

    def step(number):
        for _ in range(10):
            machine.kernel(MS)
        machine.function("buffer.py(7): append", lambda: machine.work(2 * number * MS))

    claim = first(machine.steps(step, 16))
    assert claim.title.endswith("most of it in `append (buffer.py:7)`.")
    assert "It takes longer from step to step: 4 ms in the first third, 26 ms in the last." in claim.evidence


@pytest.mark.parametrize("longer", [(4,), (4, 9)])
def test_steps_with_larger_inputs_do_more_work(longer):
    machine = Machine()

    def step(number):
        factor = 5 if number in longer else 1
        for _ in range(4):
            shapes = [[8192 * factor, 4096], [4096, 4096]]
            machine.kernel(factor * MS, shapes=shapes, types=["c10::BFloat16"] * 2, grid=[factor * 64, 1, 1])
        machine.wait()

    claim = first(machine.steps(step, 14))
    assert claim.rule == "longer_steps"
    assert claim.title.endswith("more work, on larger inputs.")
    assert "similar length" in claim.action


def test_a_loop_of_one_elementwise_operator_could_be_one_kernel():
    machine = Machine()
    shapes = {"shapes": [[1 << 22]] * 2, "types": ["float"] * 2}

    def step(_):
        for _ in range(5):
            machine.kernel(MS)
        for _ in range(100):
            machine.kernel(30 * US, "void at::native::vectorized_elementwise_kernel<4>", "aten::where", **shapes)
        machine.wait()

    claim = first(machine.steps(step, 6))
    assert claim.rule == "elementwise"
    assert claim.title.endswith(", most of it in `aten::where` (100 times per step).")
    assert claim.saving_ns == pytest.approx(3 * MS, rel=0.1)
