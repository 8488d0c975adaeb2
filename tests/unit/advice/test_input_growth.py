"""What a training accumulates and concatenates again in each step."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from support.machine import MS, Machine


def training(sizes, *, trains=True, inner=False):
    """A training whose `push` joins tensors of these many rows of 256 in its steps, however long that takes."""
    machine = Machine(None)

    def step(number):
        machine.op("aten::mm", lambda: machine.work((10 + number * 7 % 5) * MS))
        if trains:
            machine.op("autograd::engine::evaluate_function: MmBackward0", lambda: machine.work(MS))

        def join():
            dims = [[[sizes[number], 256], [64, 256]], []]
            machine.op("aten::cat", lambda: machine.work(MS), **{"Input Dims": dims})

        def push():
            machine.op("aten::cdist", lambda: (machine.work(MS), join())) if inner else join()

        machine.function("train.py(5): push", push)

    return machine.steps(step, len(sizes))


def claims(trace):
    return {claim.rule: claim for claim in advice(Facts(trace))}


def test_inputs_that_grow_by_as_much_in_every_step_are_told_with_who_keeps_them():
    claim = claims(training(range(1_000, 1_384, 64)))["growing_inputs"]
    assert claim.title == (
        "The inputs of `aten::cat` grow by 16\u202f384 elements in every step, most of it in `push (train.py:5)`."
    )
    assert claim.evidence.startswith("From 272\u202f384 elements to 354\u202f304 in 6 steps: ")
    assert (claim.confidence, claim.saving_ns, claim.culprit.function) == ("high", None, "train.py(5): push")


@pytest.mark.parametrize(
    "sizes",
    [
        (1_000, 1_064, 1_128, 1_192),  # too few steps
        (1_000, 1_064, 1_010, 1_192, 1_256, 1_320),  # sequences of any length
        (1_000, 1_010, 1_100, 1_400, 1_410, 1_900),
        (9_000, 9_001, 9_002, 9_003, 9_004, 9_005),
        (1_000,) * 6,
    ],
)
def test_inputs_that_vary_or_hardly_grow_are_not(sizes):
    assert "growing_inputs" not in claims(training(sizes))


def test_neither_is_a_cache_of_keys_while_generating_nor_what_an_operator_joins_itself():
    sizes = range(1_000, 1_384, 64)
    assert "growing_inputs" not in claims(training(sizes, trains=False))
    assert "growing_inputs" not in claims(training(sizes, inner=True))
