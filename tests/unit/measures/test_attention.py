"""The work of attention in the iterations of a server."""

import polars as pl

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
