"""Copies and fills by name: how many bytes in what time, between which memories.

Rates are recomputed from bytes and durations; torch 2.4 and 2.5 recorded wrong ones (kineto b5c85daa). A copy by a
kernel (as `aten::copy_` on one device often runs) is a kernel, and not here.
"""

from __future__ import annotations

import polars as pl

from ...trace.model import Trace
from ...trace.results import once_per_recording

_ROUTE = r"(?:^|[^A-Za-z])([HDAP]to[HDAP])(?:[^A-Za-z]|$)"
_ENDS = r"\(\s*([^()]+?)\s*->\s*([^()]+?)\s*\)"
_IN_WORDS = {"HostToDevice": "HtoD", "DeviceToHost": "DtoH", "DeviceToDevice": "DtoD", "HostToHost": "HtoH"}


@once_per_recording
def copy_totals(trace: Trace) -> pl.DataFrame:
    """Return one row per name and devices of copies and fills, those with the longest total first.

    Columns: name, device, from_device, to_device, direction, source, target, is_pageable, calls, moved_bytes,
    mean_bytes, total_ns, mean_ns, max_ns, timed_ns (the durations of those with a recorded size), moved_bytes_per_s.
    What isn't recorded is null.
    """
    by = ("name", "device", "from_device", "to_device")
    size, dur = pl.col("bytes"), pl.col("dur_ns")
    has_size = size >= 0
    rows = trace.device_events.select(*by, "kind", "bytes", "dur_ns").filter(pl.col("kind") != "kernel").group_by(by)
    table = rows.agg(
        pl.col("kind").first() == "memset",
        pl.len().cast(pl.Int64).alias("calls"),
        pl.when(has_size.any()).then(size.filter(has_size).sum()).alias("moved_bytes"),
        size.filter(has_size).mean().round().cast(pl.Int64).alias("mean_bytes"),
        dur.sum().alias("total_ns"),
        dur.mean().round().cast(pl.Int64).alias("mean_ns"),
        dur.max().alias("max_ns"),
        dur.filter(has_size).sum().alias("timed_ns"),
    )
    table = table.with_columns(
        pl.col("name").cast(pl.String),
        *(pl.when(pl.col(n) >= 0).then(pl.col(n)).cast(pl.Int64).alias(n) for n in by[1:]),
        moved_bytes_per_s=pl.when(pl.col("timed_ns") > 0).then(pl.col("moved_bytes") / pl.col("timed_ns") * 1e9),
    ).with_columns(*_parsed_name())
    return table.sort("total_ns", *by, descending=[True, *(False for _ in by)])


def _parsed_name() -> list[pl.Expr]:
    """Direction, source and target; kineto writes "Memcpy HtoD (Pageable -> Device)", roctracer "CopyHostToDevice"."""
    name = pl.col("name")
    in_words = pl.coalesce(
        name.str.extract(_ROUTE),
        *(pl.when(name.str.contains(words, literal=True)).then(pl.lit(route)) for words, route in _IN_WORDS.items()),
    )
    source, target = (
        name.str.extract(_ENDS, group).str.replace("Pagable", "Pageable") for group in (1, 2)
    )  # the oldest misspell it
    is_pageable = (source == "Pageable") | (target == "Pageable")
    ends_known = source.is_in(["Pageable", "Pinned"]) | target.is_in(["Pageable", "Pinned"]) | (source == target)
    return [
        pl.when("kind").then(pl.lit("fill")).otherwise(in_words).alias("direction"),
        source.alias("source"),
        target.alias("target"),
        pl.when(ends_known).then(is_pageable).alias("is_pageable"),
    ]
