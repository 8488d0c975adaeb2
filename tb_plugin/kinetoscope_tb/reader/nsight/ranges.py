"""NVTX ranges → operators and annotations.

`torch.autograd.profiler.emit_nvtx` (and `nsys profile --pytorch=autograd-nvtx`, which turns it on) pushes a range per
RecordFunction: its name, then `, seq = N`, `, op_id = N`, `, sizes = [[4, 8], []]`, `, input_op_ids = [(1, 0)]`, each
if it is known (getNvtxStr in torch/csrc/profiler/util.cpp). These are operators if torch names them so; all other
ranges are annotations, whichever program wrote them.
"""

from __future__ import annotations

import polars as pl

_FORM = (
    r"(?s)^(?P<name>.*?)(?:, seq = (?P<sequence>\d{1,18}))?(?P<id>, op_id = \d+)?"
    r"(?P<sizes>, sizes = \[[\[\]0-9, -]*\])?(?:, input_op_ids = \[[()0-9, -]*\])?$"
)
_OPERATOR = r"^[A-Za-z_][\w.]*::"  # with a namespace: aten::add, autograd::engine::evaluate_function: AddBackward0


def recorded_functions(texts: pl.Series) -> pl.DataFrame:
    """The parts of each range's text: name, sequence, shapes (as JSON has them), and whether it is an operator's."""
    parts = pl.DataFrame({"text": texts}).select(pl.col("text").str.extract_groups(_FORM)).unnest("text")
    has_inputs = pl.any_horizontal(pl.col("sequence", "sizes").is_not_null())  # record_function's ranges have none
    is_named = pl.col("id").is_not_null() & pl.col("name").str.contains(_OPERATOR)
    return parts.select(
        "name",
        pl.col("sequence").cast(pl.Int64),
        pl.col("sizes").str.strip_prefix(", sizes = ").alias("shapes"),
        (has_inputs | is_named | pl.col("name").str.starts_with("aten::")).fill_null(value=False).alias("is_operator"),
    )
