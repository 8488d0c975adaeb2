"""The work of attention in the iterations of a server."""

import polars as pl
import pytest

from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

SHAPE = [1, 8, 256, 64]
ARGUMENTS = {
    "Input Dims": [SHAPE, SHAPE, SHAPE, [], [], [], [], [], []],
    "Input type": ["c10::BFloat16"] * 3 + [""] + ["Scalar"] * 4 + [""],
    "Concrete Inputs": ["", "", "", "", "False", "0.", "True", "False", ""],
}


def test_attention_over_padded_tensors_needs_no_lengths_of_requests() -> None:
    """Its bytes and FLOPs are those that the efficiency of operators rates, in the kernels of attention alone."""
    builder = TraceBuilder(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])
    builder.annotation("step[EXTEND bs=1 toks=256]", 0, 100_000)
    builder.op("aten::_scaled_dot_product_cudnn_attention", 100, 5_000, **ARGUMENTS)
    builder.launch(200, 50, 1).kernel("cudnn_generated_fort_native_sdpa_sm90_flash_fprop", 6_000, 4_000, 1)
    trace = builder.launch(300, 50, 2).kernel("philox_seed", 11_000, 500, 2).build()
    row = VIEWS["limits"].run(trace).row(by_predicate=pl.col("part") == "attention", named=True)
    (operator,) = VIEWS["operator_efficiency"].run(trace).filter(pl.col("work_flop") > 0).rows(named=True)
    assert (row["known_frac"], row["reason"], row["kernels_ns"]) == (1.0, None, 4_000)
    assert (row["work_flop"], row["moved_bytes"]) == (operator["work_flop"], operator["work_bytes"])
    assert row["model_bytes"] == 2 * 2 * 8 * 256 * 64


@pytest.mark.parametrize(("times", "is_rated"), [((130, 300), False), ((130, 140), True)])
def test_attention_whose_equal_calls_differ_as_with_windows_is_not_rated(
    times: tuple[int, int], is_rated: bool
) -> None:
    """Half of the layers read keys of a window, whose length no trace has, so their work isn't that of all keys."""
    builder = TraceBuilder(deviceProperties=[{"id": 0, "name": "NVIDIA H100 80GB HBM3"}])
    lengths = "c_sq=8192 c_sk=8192 c_sqsq=67108864 c_sqsk=67108864 g_sq=0 g_sk=0 g_sqsq=0 g_sqsk=0"
    builder.annotation(f"step[EXTEND bs=1 toks=8192 c=1 g=0 {lengths}]", 0, 9_000_000)
    inputs = {"Input Dims": [[8192, 64, 64], [8192, 8, 64], [8192, 8, 64]], "Input type": ["c10::BFloat16"] * 3}
    for layer in range(12):
        at = 10_000 * layer
        builder.op("vllm::unified_attention_with_output", at + 100, 5_000, **inputs)
        builder.launch(at + 200, 50, layer + 1)
        builder.kernel("kernel_unified_attention_2d", 600_000 * (layer + 1), 1_000 * times[layer % 2], layer + 1)
    row = VIEWS["limits"].run(builder.build()).row(by_predicate=pl.col("part") == "attention", named=True)
    assert row["known_frac"] == 1
    assert (row["roof_frac"] is not None, row["bound_by"] is not None) == (is_rated, is_rated)
    assert (row["reason"] is None) == is_rated
    assert is_rated or "window" in row["reason"]
