"""How much longer operators of the host run than any processor takes for their work, by the shapes of their inputs.

The slowest core that a training runs on multiplies 0.5 billion times and adds as often per second without vector
instructions, and goes over memory at 0.4 GB/s where each element has a cache line of its own, is in a page that it
touches first, or is a denormal number. One call, with all threads that take part in it, costs 0.1 ms at most. Only
matmuls in float32 and float64 count, which libraries compute, and operators that go over their tensors once.
Whatever takes longer than all of these together was held up, most likely as its threads waited for cores.

The first call with some inputs may make a plan or generate code for them, so it counts like the others; inputs of one
call alone don't count.
"""

from __future__ import annotations

import polars as pl

from ...names.regex import regex
from .matrix_work import MatrixWork, UnknownWork, matrix_work
from .memory_work import memory_work

_CALL_NS = 100_000
_FLOP_PER_NS = 0.5
_BYTES_PER_NS = 0.4
_LIBRARY_TYPES = frozenset(("fp32", "fp64"))
_MATMULS = frozenset(
    (
        "aten::mm",
        "aten::bmm",
        "aten::addmm",
        "aten::addmm_",
        "aten::baddbmm",
        "aten::baddbmm_",
        "aten::mv",
        "aten::addmv",
    )
)
_GOES_OVER_MEMORY = regex(
    r"aten::(?:add|sub|mul|div|sqrt|rsqrt|neg|abs|exp|tanh|sigmoid|relu|silu|gelu|clamp|clamp_min|clamp_max|maximum"
    r"|minimum|where|lerp|addcmul|addcdiv|masked_fill|fill|zero|threshold_backward|(?:gelu|silu|sigmoid|tanh)_backward"
    r"|sum|mean|_softmax|_log_softmax|_softmax_backward_data|_log_softmax_backward_data|native_layer_norm"
    r"|native_layer_norm_backward)_?"
)


def matmul_of_library(name: str, shapes: str | None, types: str | None) -> MatrixWork | None:
    """The work of a matmul that a library computes; None if it isn't one, or that isn't known."""
    if name not in _MATMULS:
        return None
    try:
        work = matrix_work(name, shapes, types, None)
    except UnknownWork:
        return None
    return work if work.dtype in _LIBRARY_TYPES else None


def most_ns(name: str, shapes: str | None, types: str | None) -> float | None:
    """How long the slowest core takes for a call of an operator; None if that isn't known."""
    if matmul := matmul_of_library(name, shapes, types):
        return _CALL_NS + matmul.flop / _FLOP_PER_NS + (matmul.moved_bytes or 0) / _BYTES_PER_NS
    if not _GOES_OVER_MEMORY.fullmatch(name):
        return None
    try:
        return _CALL_NS + memory_work(name, shapes, types) / _BYTES_PER_NS
    except UnknownWork:
        return None


def with_excess(operators: pl.DataFrame) -> pl.DataFrame:
    """The operators whose most_ns is known, with that as `most_ns`, and with `excess_ns`: by how much they exceed it.

    Args:
        operators: name, input_shapes, input_types as texts, start_ns and self_ns of each call; other columns stay.
    """
    inputs = ["name", "input_shapes", "input_types"]
    kinds = operators.select(inputs).unique()
    most = [most_ns(*row) for row in kinds.iter_rows()]
    bounds = kinds.with_columns(most_ns=pl.Series(most, dtype=pl.Float64)).drop_nulls("most_ns")
    calls = operators.join(bounds, on=inputs, how="inner", nulls_equal=True, maintain_order="left")
    excess = pl.max_horizontal(pl.col("self_ns") - pl.col("most_ns"), 0)
    is_first = pl.col("start_ns") == pl.col("start_ns").min().over(inputs)
    usual = pl.col("excess_ns").filter(~is_first).median().over(inputs).fill_null(0)
    calls = calls.with_columns(excess_ns=excess)
    first = pl.when(is_first).then(pl.min_horizontal("excess_ns", usual)).otherwise("excess_ns")
    return calls.with_columns(excess_ns=first.cast(pl.Int64))
