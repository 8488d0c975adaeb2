"""The work of kernels that only memory limits: Limits rates them as Kernel efficiency does."""

from __future__ import annotations

import polars as pl
import pytest

from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.server import ARGMAX

H100 = {"id": 0, "name": "NVIDIA H100 80GB HBM3"}
FILL = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, std::array<char*, 1ul> >"


def server() -> TraceBuilder:
    """An iteration that samples by an operator, fills a tensor, and copies; a graph replays a matmul and a fill."""
    builder = TraceBuilder(deviceProperties=[H100]).annotation("step[DECODE bs=16]", 0, 100_000)
    builder.op("aten::argmax", 1_000, 5_000, **{"Input Dims": [[16, 128_256]], "Input type": ["float"]})
    builder.launch(2_000, 1_000, 1).kernel(ARGMAX, 20_000, 30_000, 1)
    builder.op("aten::fill_", 7_000, 5_000, **{"Input Dims": [[1 << 20], []], "Input type": ["long", "Scalar"]})
    builder.launch(8_000, 1_000, 2).kernel(FILL, 51_000, 10_000, 2)
    builder.launch(14_000, 1_000, 3, name="cudaMemcpyAsync").memcpy(62_000, 1_000, 3)
    builder.launch(20_000, 1_000, 4, name="cudaGraphLaunch")
    return builder.kernel("nvjet_tst_64x8", 70_000, 20_000, 4)


def test_limits_rate_kernels_without_matrices_as_kernel_efficiency_does():
    trace = server().build()
    parts = {row["part"]: row for row in VIEWS["limits"].run(trace).to_dicts()}
    rated = {row["operator"]: row for row in VIEWS["kernel_efficiency"].run(trace).to_dicts()}
    for part, operator in (("sampling", "aten::argmax"), ("other", "aten::fill_")):
        row = parts[part]
        assert (row["known_frac"], row["bound_by"], row["reason"]) == (1, "memory", None)
        assert row["roof_frac"] == pytest.approx(rated[operator]["roof_frac"], rel=1e-3)
        assert row["achieved_bytes_per_s"] == pytest.approx(rated[operator]["achieved_bytes_per_s"], rel=1e-3)


def test_each_part_without_known_work_has_its_reason_and_copies_are_not_rated():
    trace = server().kernel(FILL, 91_000, 9_000, 4).build()
    parts = {row["part"]: row for row in VIEWS["limits"].run(trace).to_dicts()}
    replayed = "Graphs replay these kernels: their shapes are in a recording of the capture, and none was found."
    assert (parts["gemm"]["known_frac"], parts["gemm"]["reason"]) == (0, replayed)
    assert parts["other"]["known_frac"] == pytest.approx(10 / 19)
    assert parts["other"]["reason"] == f"52.6 % of its time is rated. {replayed}"
    assert parts["other"]["roof_frac"] is not None
    assert (parts["copy"]["known_frac"], parts["copy"]["reason"]) == (None, None)


def test_a_part_is_not_rated_by_less_than_half_of_its_time():
    trace = server().kernel(FILL, 91_000, 11_000, 4).build()
    part = VIEWS["limits"].run(trace).row(by_predicate=pl.col("part") == "other", named=True)
    assert part["known_frac"] == pytest.approx(10 / 21)
    assert (part["roof_frac"], part["bound_by"], part["bandwidth_frac"]) == (None, None, None)
    assert part["reason"].startswith("Only 47.6 % of its time can be rated. ")
