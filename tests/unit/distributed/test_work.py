"""How much a rank computes, and what that says of one that takes longer."""

from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.distributed.activity import host_copies, inputs, work
from kinetoscope_tb.distributed.imbalance.late_rank import action, of_copies, of_work
from kinetoscope_tb.distributed.model import INPUTS
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.measures.time.idle import Windows
from kinetoscope_tb.views import RUN_VIEWS
from support.build import TraceBuilder, same
from support.simulated import Truth, simulated, summary_of

US = 1_000
GRID = {"grid": [132, 1, 1], "block": [384, 1, 1]}


def rank(*ops):
    """A step of operators, each with its name and the shapes of its inputs, that launch a kernel."""
    builder = TraceBuilder().step(1, 0, 1000 * US)
    for number, (name, shapes) in enumerate(ops, 1):
        at = number * 50 * US
        builder.op(name, at, 20 * US, **({} if shapes is None else {"Input Dims": shapes}))
        builder.launch(at + US, 5 * US, number).kernel("gemm", at + 30 * US, 10 * US, number, **GRID)
    trace = builder.build()
    return tuple(int(amount[0]) for amount in work(trace, Windows.of(trace, per_step=True)))


def test_larger_inputs_are_more_work_though_grids_are_equal():
    threads = 132 * 384
    assert rank(("aten::mm", [[64, 32], [32, 8]])) == (1, threads, 64 * 32 + 32 * 8)
    assert rank(("aten::mm", [[96, 32], [32, 8]])) == (1, threads, 96 * 32 + 32 * 8)


def test_updates_of_parameters_are_no_inputs():
    assert rank(("aten::mm", [[4, 4], [4, 4]]), ("aten::_fused_adamw_", [[[1000]], [[1000]]]))[2] == 32


def test_operators_that_compute_nothing_have_no_inputs():
    builder = TraceBuilder().step(1, 0, 1000 * US)
    for number, name in enumerate(("aten::resolve_conj", "aten::transpose", "aten::addmm")):
        builder.op(name, 100 * US * (number + 1), 20 * US, **{"Input Dims": [[640, 256]]})
    trace = builder.build()
    rows = inputs(trace, Windows.of(trace, per_step=True))
    assert (rows["operator"].to_list(), rows["elements"].to_list()) == (["aten::addmm"], [640 * 256])


def test_elements_are_unknown_without_the_shapes_of_most():
    assert rank(("aten::mm", None))[2] == 0
    assert rank(("aten::mm", [[4, 4], [4, 4]]), ("aten::mm", None), ("aten::mm", None))[2] == 0
    for hostile in ("[[4", [[-4, 4]], [[True]], "[" * 2000 + "]" * 2000):
        assert rank(("aten::mm", hostile))[2] in (0, 1)
    assert rank(("aten::mm", [[10**30]]))[2] == 1 << 40


@pytest.mark.parametrize(
    ("launches", "threads", "elements", "words", "does"),
    [
        (1.2, 1.2, 1.2, "It runs 20 % more kernels than the others: it has more work.", "Give all ranks as much"),
        (1.0, 1.5, 1.0, "with 50 % more threads: it has more work.", "Give all ranks as much"),
        (1.0, 1.0, 1.5, "on inputs with 50 % more elements: it has more work.", "Give all ranks as much"),
        (1.0, 1.0, 1.0, "on inputs as large: its device is slower.", "Compare its device's clock"),
        (1.0, 1.0, None, "its device is slower, or its inputs are larger", "Check whether its device is as fast"),
        (1.0, None, None, "It runs as many kernels as the others.", "Check whether its device is as fast"),
    ],
)
def test_a_device_is_called_slower_only_where_its_inputs_are_known_to_be_as_large(
    launches, threads, elements, words, does
):
    fractions = {"launches_frac": launches, "threads_frac": threads, "elements_frac": elements}
    row = {"cause": "computation", "device": "cuda:0", "ranks": 4, **fractions}
    assert words in of_work(row)
    assert action(row).startswith(does)


@pytest.mark.parametrize("elements", [1.0, None])
def test_without_a_device_it_is_the_cores_that_may_be_slower(elements):
    fractions = {"launches_frac": 1.0, "threads_frac": None, "elements_frac": elements}
    row = {"cause": "computation", "device": "", "ranks": 4, **fractions}
    assert of_work(row) == " It runs as many operators as the others."
    assert action(row).startswith("Check whether its cores are as fast as those of the others, and as free")
    assert action({**row, "ranks": 2}).startswith(
        "Check whether its cores are as fast as those of the other rank, and "
    )
    assert action({**row, "launches_frac": 1.2}).startswith("Give all ranks as much")


def test_inputs_are_counted_by_operator_and_place():
    builder = TraceBuilder()
    for step in range(2):
        builder.step(step, step * 1000 * US, 1000 * US)
        for number, (name, shapes) in enumerate(
            [
                ("aten::mm", [[64, 32], [32, 8]]),
                ("aten::mm", [[8, 32], [32, 8]]),
                ("aten::_fused_adamw_", [[[9]], [[9]]]),
            ]
        ):
            at, correlation = step * 1000 * US + number * 50 * US, 10 * step + number + 1
            builder.op(name, at, 20 * US, **{"Input Dims": shapes}).launch(at + US, 5 * US, correlation)
            builder.kernel("gemm", at + 30 * US, 10 * US, correlation)
    trace = builder.build()
    same(
        inputs(trace, Windows.of(trace, per_step=True)),
        """
        step  operator  input  elements
        0     aten::mm  0      2304
        0     aten::mm  1      512
        1     aten::mm  0      2304
        1     aten::mm  1      512
        """,
    )


def test_copies_between_host_and_device_are_counted_and_those_of_pageable_memory_timed():
    builder = TraceBuilder().step(1, 0, 1000 * US)
    builder.memcpy(0, 10 * US, bytes=100).memcpy(20 * US, 5 * US, bytes=50, name="Memcpy HtoD (Pinned -> Device)")
    builder.memcpy(40 * US, 5 * US, bytes=70, name="Memcpy DtoD (Device -> Device)")
    trace = builder.build()
    copies = host_copies(trace, Windows.of(trace, per_step=True))
    assert [int(amount[0]) for amount in copies] == [150, 10 * US]


@pytest.mark.parametrize(
    ("copied", "pageable_ns", "words", "does"),
    [
        (
            1.0,
            9_000,
            "It copies as much as the others, but to or from pageable memory, for 9 µs longer",
            "Pin its host",
        ),
        (1.5, 0, "It copies 50 % more than the others.", "Check what it copies"),
        (None, None, "", "Check what it copies"),
    ],
)
def test_a_rank_that_copies_longer_has_more_to_copy_or_other_memory(copied, pageable_ns, words, does):
    row = {"cause": "copies", "ranks": 4, "part_ns": 10_000, "copied_bytes_frac": copied, "pageable_ns": pageable_ns}
    assert words in of_copies(row)
    assert action(row).startswith(does)


def run_with(*mine):
    """Three ranks, of which rank 2 computes longer; inputs of each: (operator, input, elements)."""
    made = simulated(Truth(ranks=3, late={(2, None): 5_000_000}, noise=0.0, jitter_ns=0))
    members = []
    for rank, counts in enumerate(mine):
        own = summary_of(made, rank)
        rows = [(step, *count) for step in range(own.steps.height) for count in counts]
        frame = pl.DataFrame(rows, schema=INPUTS, orient="row")
        steps = own.steps.with_columns(elements=pl.lit(sum(count for *_, count in counts), pl.Int64))
        members.append(Member(f"rank{rank}", "1", 0, replace(own, inputs=frame, steps=steps)))
    (row,) = RUN_VIEWS["run_advice"].run(Ranks("r", tuple(members))).rows(named=True)
    return row["evidence"]


WEIGHTS = ("aten::_grouped_mm", 1, 10_000)


def test_what_is_as_large_on_all_ranks_is_no_part_of_what_one_has_more():
    tokens = [[("aten::_grouped_mm", 0, count), WEIGHTS] for count in (300, 310, 900)]
    assert "inputs with 195 % more elements in `aten::_grouped_mm`: it has more work." in run_with(*tokens)


def test_inputs_that_hardly_differ_in_all_dont_make_a_rank_busier():
    lengths = [[("aten::slice", 0, count), WEIGHTS] for count in (3, 3, 9)]
    assert "on inputs as large: its device is slower." in run_with(*lengths)
