"""Experts with uneven numbers of tokens, where the trace has the numbers."""

import pytest

from kinetoscope_tb.advice.advice import advice
from kinetoscope_tb.advice.facts import Facts
from kinetoscope_tb.reader import read
from support.machine import MS, US, Machine
from support.real_traces import FOLDER, MISSING


def advice_of(trace):
    return {row.rule: row for row in advice(Facts(trace))}


def by_shapes(tokens, module="SwitchMoE_0"):
    machine = Machine(None)

    def step(_):
        start = machine.now
        for count in tokens:
            shapes = [[256], [count, 64], [64, 256], [], []]
            machine.op("aten::addmm", lambda: machine.work(MS), **{"Input Dims": shapes})
        machine.builder.module(module, start, machine.now - start)

    return machine.steps(step)


def by_splits(splits, kernel="fused_moe_kernel"):
    machine = Machine()

    def step(_):
        for _ in range(50):
            machine.kernel(100 * US, kernel)
        args = {"Collective name": "all_to_allv", "In split size": str(splits), "Out split size": str(splits)}
        machine.op("record_param_comms", lambda: machine.work(US), **args)

    return machine.steps(step)


@pytest.mark.parametrize("trace", [by_shapes([400, 40, 30, 30]), by_splits([400, 40, 30, 30])])
def test_the_busiest_gets_a_multiple_of_the_mean(trace):
    row = advice_of(trace)["expert_imbalance"]
    assert row.title.endswith("the busiest one gets 3.2 times the mean.")
    assert "in 5 of 5 steps; such as 400, 40, 30, 30 tokens" in row.evidence
    assert row.saving_ns is None


@pytest.mark.parametrize(
    "trace",
    [
        by_shapes([100, 120, 90, 90]),
        by_shapes([3, 1, 1, 1]),  # no more than chance
        by_shapes([400, 40, 30, 30], "Encoder_0"),
        by_splits([100, 120, 90, 90]),
        by_splits([400, 40, 30, 30], "gemm"),  # embeddings are exchanged in this way too
    ],
)
def test_even_numbers_chance_and_other_models_are_no_finding(trace):
    assert "expert_imbalance" not in advice_of(trace)


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_a_mixture_that_sends_all_tokens_to_all_experts_is_even():
    trace = read(FOLDER / "single/switch_transformers_a100_torch2.3.json")
    assert "expert_imbalance" not in advice_of(trace)
