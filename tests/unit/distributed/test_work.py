"""How much a rank computes, and what that says of one that takes longer."""

import pytest

from kinetoscope_tb.distributed.activity import work
from kinetoscope_tb.distributed.imbalance.late_rank import action, of_work
from kinetoscope_tb.measures.time.idle import Windows
from support.build import TraceBuilder

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
    return tuple(int(amount[0]) for amount in work(trace, Windows.of(trace, each=True)))


def test_larger_inputs_are_more_work_though_grids_are_equal():
    threads = 132 * 384
    assert rank(("aten::mm", [[64, 32], [32, 8]])) == (1, threads, 64 * 32 + 32 * 8)
    assert rank(("aten::mm", [[96, 32], [32, 8]])) == (1, threads, 96 * 32 + 32 * 8)


def test_updates_of_parameters_are_no_inputs():
    assert rank(("aten::mm", [[4, 4], [4, 4]]), ("aten::_fused_adamw_", [[[1000]], [[1000]]]))[2] == 32


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
    row = {"cause": "computation", "device": "cuda:0", **fractions}
    assert words in of_work(row)
    assert action(row).startswith(does)
