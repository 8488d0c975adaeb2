"""Arrows from an operator to its device work link the two if, and only if, the writer gives no correlation.

The autograd profiler's own exporter draws `cpu_to_cuda` (torch/autograd/profiler_util.py), torch_npu `async_npu`.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ..scan.rows import Rows
from ..scan.tokens import Texts, used

_OF_NPU = "async_npu"
_OF_AUTOGRAD = "cpu_to_"


def arrows(frames: Mapping[str, Rows], texts: Texts) -> pl.DataFrame:
    """The device rows at which an arrow ends: `device` and `begin` are the offsets of the row and the arrow."""
    flows = frames["flows"]
    category = flows["category"]
    links = [c for c in used(category, len(texts)) if (texts[c] or "").startswith((_OF_AUTOGRAD, _OF_NPU))]
    if not links:
        return pl.DataFrame(schema={"device": pl.Int64, "begin": pl.Int64})
    ends = pl.DataFrame({n: flows[n] for n in ("category", "phase", "id", "pid", "tid", "ts", "offset")})
    ends = ends.filter(pl.col("category").is_in(links)).with_columns(pl.col("offset").cast(pl.Int64))
    begins = {code for code in used(flows["phase"], len(texts)) if texts[code] == "s"}
    begun = ends.filter(pl.col("phase").is_in(begins)).select("category", "id", begin="offset")
    place = [
        "pid",
        "tid",
        "ts",
    ]  # where the arrow ends; of several rows, the first belongs to the first arrow
    work = pl.DataFrame({n: frames["device_events"][n] for n in (*place, "offset")})
    work = work.select(*place, nth=_nth(place), device=pl.col("offset").cast(pl.Int64))
    ends = ends.filter(~pl.col("phase").is_in(begins)).with_columns(nth=_nth(place))
    linked = ends.join(begun.unique(["category", "id"], keep="first"), ["category", "id"])
    return (
        work.cast(dict.fromkeys(place, pl.Int64))
        .join(linked.cast(dict.fromkeys(place, pl.Int64)), [*place, "nth"])
        .select("device", "begin")
    )


def _nth(place: list[str]) -> pl.Expr:
    return pl.int_range(pl.len()).over(place)
