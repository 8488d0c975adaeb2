"""Launches of CUDA and HIP graphs: one call, many kernels.

All rows of a launch have its correlation, so launches are known in every trace. The graph's id is recorded since torch
2.12 (kineto 1a72dcae); without it, launches that ran the same kernels in the same order on one device count as the same
graph.
"""

from __future__ import annotations

import polars as pl

from ...arrays.gather import map_categories
from ...names.calls import launches_graph
from ...trace.model import Trace

LAUNCH = ("launch", "correlation", "device")


def graph_launches(trace: Trace) -> pl.DataFrame:
    """Return one row per graph launch and device, in order of their start.

    Columns: launch and correlation (those of its rows), graph (its number, or "#1", "#2" … by first launch if not
    recorded), device, op (a row of host_events, or NONE), first_kernel, rows (kernels, copies and fills), device_ns
    (the sum of their durations), span_ns (from the first start to the last end), gap_ns (the part of that in which none
    of them ran).
    """
    end = pl.col("start_ns") + pl.col("dur_ns")
    nth = pl.int_range(pl.len()).over(LAUNCH)
    rows = graph_rows(trace).with_columns(
        end=end,
        gap=(pl.col("start_ns") - end.cum_max().shift(1).over(LAUNCH)).clip(0),
        word=pl.struct(nth, pl.col("name").to_physical()).hash(),
    )
    launched = rows.group_by(LAUNCH, maintain_order=True).agg(
        pl.col("graph_id").max(),
        pl.col("word").sum().alias("kernels"),
        pl.col("op").first(),
        pl.col("name").first().cast(pl.String).alias("first_kernel"),
        pl.len().cast(pl.Int64).alias("rows"),
        pl.col("dur_ns").sum().alias("device_ns"),
        (pl.col("end").max() - pl.col("start_ns").min()).alias("span_ns"),
        pl.col("gap").sum().alias("gap_ns"),
    )
    return _named(launched)


def graph_rows(trace: Trace) -> pl.DataFrame:
    """The device rows that launches of graphs ran, with their `row` in device_events."""
    is_graph = pl.Series("is_graph_launch", map_categories(trace.launches["name"], launches_graph), pl.Boolean)
    launches = trace.launches.select(pl.int_range(pl.len(), dtype=pl.Int32).alias("launch"), is_graph)
    joined = trace.device_events.with_row_index("row").join(launches, "launch", "left", maintain_order="left")
    return joined.filter((pl.col("graph_id") >= 0) | pl.col("is_graph_launch"))


def _named(launched: pl.DataFrame) -> pl.DataFrame:
    alike = ("device", "kernels")
    nameless = launched.filter(pl.col("graph_id") < 0).unique(alike, keep="first", maintain_order=True)
    numbers = nameless.select(*alike, pl.int_range(1, pl.len() + 1).alias("number"))
    recorded = pl.when(pl.col("graph_id") >= 0).then(pl.col("graph_id").cast(pl.String))
    name = pl.coalesce(recorded, pl.format("#{}", "number")).alias("graph")
    named = launched.join(numbers, alike, "left", maintain_order="left")
    times = ("device_ns", "span_ns", "gap_ns")
    return named.select("launch", "correlation", name, "device", "op", "first_kernel", "rows", *times)
