"""The work of experts and of latent attention, where shapes prove it."""

from __future__ import annotations

import json

import polars as pl
import pytest

from kinetoscope_tb.measures.calls.memory_work import NO_EXPERTS
from kinetoscope_tb.measures.serving.experts import expert_call
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

BF16 = "c10::BFloat16"
HIDDEN, INNER, EXPERTS, CHOSEN = 64, 32, 8, 2


def inputs(tokens: int, chosen: int = CHOSEN, experts: int = EXPERTS) -> list[list[int]]:
    weights = [[experts, 2 * INNER, HIDDEN], [experts, HIDDEN, INNER]]
    return [[tokens, HIDDEN], *weights, [tokens, chosen], [tokens, chosen]]


def call(shapes: list[list[int]]):
    return expert_call(json.dumps(shapes), json.dumps([BF16, BF16, BF16, "float", "int"]))


def test_one_token_reads_the_experts_that_it_chose() -> None:
    expert = 3 * HIDDEN * INNER
    work = call(inputs(1))
    assert work is not None
    assert (work.flop, work.weight_bytes) == (2 * CHOSEN * expert, 2 * CHOSEN * expert)
    assert work.moved_bytes == work.weight_bytes + 2 * 2 * HIDDEN
    every = call(inputs(16, chosen=EXPERTS))
    assert every is not None
    assert (every.flop, every.weight_bytes) == (2 * 16 * EXPERTS * expert, 2 * EXPERTS * expert)


@pytest.mark.parametrize(
    "shapes",
    [
        inputs(2),  # may have chosen the same experts, or others
        [*inputs(1), [4 * EXPERTS]],  # the experts of all ranks: it may hold none of those that were chosen
        [[1, HIDDEN], [EXPERTS, 2 * INNER, HIDDEN // 2], *inputs(1)[2:]],  # packed
        inputs(1)[:4],
        [[1, HIDDEN], [], [], [], []],
    ],
)
def test_otherwise_nothing_is_known(shapes: list[list[int]]) -> None:
    assert call(shapes) is None


def _limits(shapes: list[list[int]], name: str, kernel: str) -> dict[str, object]:
    """Limits of the part of a kernel in one iteration of SGLang with details of 4 requests with 100 tokens each."""
    mark = "execute_4_context_0(sq0sk0sqsq0sqsk0)_generation_4(sq4sk400sqsq4sqsk400)"
    types = [BF16] * 3 + ["float", "int"]
    trace = TraceBuilder(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]).annotation(mark, 0, 10_000)
    trace.op(name, 100, 500, **{"Input Dims": shapes, "Input type": types[: len(shapes)]})
    trace.launch(200, 50, 1).kernel(kernel, 1_000, 5_000, 1)
    return VIEWS["limits"].run(trace.build()).row(by_predicate=pl.col("known_frac").is_not_null(), named=True)


def test_limits_have_the_work_of_experts_or_the_reason_why_not() -> None:
    known = _limits(inputs(1), "sglang::inplace_fused_experts", "fused_moe_kernel")
    assert (known["part"], known["known_frac"], known["reason"]) == ("moe", 1, None)
    assert known["model_bytes"] == 2 * CHOSEN * 3 * HIDDEN * INNER
    assert known["bound_by"] == "memory"
    unknown = _limits(inputs(4), "sglang::inplace_fused_experts", "fused_moe_kernel")
    assert (unknown["known_frac"], unknown["model_bytes"], unknown["reason"]) == (0, None, NO_EXPERTS)


def test_values_that_are_a_part_of_a_latent_key_are_read_once() -> None:
    """DeepSeek: a latent of 512 numbers, and 64 with the position."""
    latent = [[4, 16, 576], [4, 1, 576], [4, 1, 512]]
    row = _limits(latent, "sglang_profiler::attention", "mla_decode_kernel")
    assert (row["part"], row["model_bytes"]) == ("attention", 400 * 576 * 2)
    heads = [[4, 16, 128], [4, 4, 128], [4, 4, 128]]
    assert _limits(heads, "sglang_profiler::attention", "flash_fwd_kernel")["model_bytes"] == 400 * 4 * 256 * 2
