"""Arrows from an operator, or a call, to its device work link the two if, and only if, there is no correlation.

The autograd profiler's own exporter draws `cpu_to_cuda` (torch/autograd/profiler_util.py); torch_npu draws `async_npu`
from an operator, and `HostToDevice` from CANN's call (its _cann_file_parser.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from ..scan.rows import Rows
from ..scan.tokens import Texts, used

_FROM_OPERATORS = ("cpu_to_", "async_npu")
_FROM_CALLS = ("HostToDevice",)
_PLACE = ["pid", "tid", "ts"]  # where an arrow ends; of several rows, the first belongs to the first arrow


def arrows(frames: Mapping[str, Rows], texts: Texts) -> pl.DataFrame:
    """The device rows at which an arrow ends, by their offsets: `device`.

    `begin` is the offset of an operator's arrow; `launch` that of the call which an arrow of CANN comes from.
    """
    of_operators = _links(frames, texts, _FROM_OPERATORS).select("device", "begin", launch=pl.lit(None, pl.Int64))
    calls = pl.DataFrame({n: frames["launches"][n] for n in ("tid", "ts", "offset")}).select(
        pl.col("tid", "ts").cast(pl.Int64), launch=pl.col("offset").cast(pl.Int64)
    )
    of_calls = _links(frames, texts, _FROM_CALLS).join(calls.unique(["tid", "ts"], keep="first"), ["tid", "ts"])
    return pl.concat([of_operators, of_calls.select("device", begin=pl.lit(None, pl.Int64), launch="launch")])


def _links(frames: Mapping[str, Rows], texts: Texts, categories: tuple[str, ...]) -> pl.DataFrame:
    """For each device row at which an arrow of such a category ends: where the arrow begins (begin, tid, ts)."""
    flows = frames["flows"]
    links = [c for c in used(flows["category"], len(texts)) if (texts[c] or "").startswith(categories)]
    columns = ("category", "phase", "id", "pid", "tid", "ts", "offset")
    ends = pl.DataFrame({n: flows[n] for n in columns}).cast(dict.fromkeys(columns, pl.Int64))
    ends = ends.filter(pl.col("category").is_in(links))
    begins = {code for code in used(flows["phase"], len(texts)) if texts[code] == "s"}
    begun = ends.filter(pl.col("phase").is_in(begins)).unique(["category", "id"], keep="first", maintain_order=True)
    begun = begun.select("category", "id", begin="offset", begin_tid="tid", begin_ts="ts")
    work = pl.DataFrame({n: frames["device_events"][n] for n in (*_PLACE, "offset")})
    work = work.cast(dict.fromkeys((*_PLACE, "offset"), pl.Int64)).select(*_PLACE, nth=_nth(_PLACE), device="offset")
    ends = ends.filter(~pl.col("phase").is_in(begins)).with_columns(nth=_nth(["category", *_PLACE]))
    linked = ends.join(begun, ["category", "id"])
    return work.join(linked, [*_PLACE, "nth"]).select("device", "begin", tid="begin_tid", ts="begin_ts")


def _nth(place: list[str]) -> pl.Expr:
    return pl.int_range(pl.len()).over(place)
