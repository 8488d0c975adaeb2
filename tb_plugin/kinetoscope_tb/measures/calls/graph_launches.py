"""Launches of CUDA and HIP graphs: one call, many kernels.

All rows of a launch have its correlation, so launches are known in every trace. The graph's id is recorded since torch
2.12 (kineto 1a72dcae); without it, launches that ran the same kernels in the same order on one device count as the same
graph.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import gather, map_categories
from ...names.calls import launches_graph
from ...trace.model import Trace

Ints = NDArray[np.int64]

LAUNCH = ("launch", "correlation", "device")


def graph_launches(trace: Trace) -> pl.DataFrame:
    """Return one row per graph launch and device, in order of their start.

    Columns: launch and correlation (those of its rows), graph (its number, or "#1", "#2" … by first launch if not
    recorded), device, op (a row of host_events, or NONE), first_kernel, rows (kernels, copies and fills), device_ns
    (the sum of their durations), span_ns (from the first start to the last end), gap_ns (the part of that in which none
    of them ran).
    """
    launches = LaunchedRows.of(trace)
    end = pl.col("start_ns") + pl.col("dur_ns")
    device = trace.device_events.select("start_ns", "dur_ns", "name", op=trace.recorded_op)
    rows = device[launches.rows].with_columns(number=pl.Series(launches.of_rows()), end=end)
    rows = rows.with_columns(gap=(pl.col("start_ns") - pl.col("end").cum_max().shift(1).over("number")).clip(0))
    sums = rows.group_by("number", maintain_order=True).agg(
        pl.col("op").first(),
        pl.col("name").first().cast(pl.String).alias("first_kernel"),
        pl.len().cast(pl.Int64).alias("rows"),
        pl.col("dur_ns").sum().alias("device_ns"),
        (pl.col("end").max() - pl.col("start_ns").min()).alias("span_ns"),
        pl.col("gap").sum().alias("gap_ns"),
    )
    graph = pl.Series("graph", launches.graphs(), pl.String)
    return pl.concat([launches.calls, graph.to_frame(), sums.drop("number")], how="horizontal").select(
        "launch", "correlation", "graph", "device", pl.exclude("launch", "correlation", "graph", "device")
    )


@dataclass(frozen=True)
class LaunchedRows:
    """The device rows of graph launches, launch by launch in the order of their first rows.

    Attributes:
        rows: The rows of device_events, in their order in each launch.
        first: The place in `rows` where each launch begins, and at last their number.
        calls: Of each launch the columns LAUNCH.
        graph_id: Of each launch, or NONE if it isn't recorded.
        kernels: Of each launch, a hash of the names of its rows in their order.
    """

    rows: Ints
    first: Ints
    calls: pl.DataFrame
    graph_id: Ints
    kernels: NDArray[np.uint64]

    @classmethod
    def of(cls, trace: Trace) -> LaunchedRows:
        """The rows that a recording's graphs ran."""
        rows = np.flatnonzero(_is_of_graph(trace))
        device = trace.device_events
        columns = [device[name].to_numpy()[rows] for name in LAUNCH]
        differs = np.any([np.diff(column, prepend=column[:1]) != 0 for column in columns], axis=0)
        differs[:1] = True
        heads = np.flatnonzero(differs)  # rows of one launch mostly follow each other
        runs = pl.DataFrame({name: column[heads] for name, column in zip(LAUNCH, columns, strict=True)})
        calls = runs.unique(maintain_order=True)
        number = np.arange(heads.size)
        if calls.height < runs.height:
            numbers = runs.join(calls.with_row_index("number"), LAUNCH, "left", maintain_order="left")
            number = numbers["number"].cast(pl.Int64).to_numpy()
        of_row = np.repeat(number, np.diff(np.append(heads, rows.size)))
        if (np.diff(of_row) < 0).any():
            rows = rows[np.argsort(of_row, kind="stable")]
        first = np.append(0, np.cumsum(np.bincount(of_row, minlength=calls.height)))
        graph_id = device["graph_id"].to_numpy()[rows].astype(np.int64)
        ids = np.maximum.reduceat(graph_id, first[:-1]) if rows.size else graph_id
        return cls(rows, first, calls, ids, order_hashes(device["name"].to_physical().to_numpy()[rows], first))

    def of_rows(self) -> Ints:
        """The launch of each place in `rows`."""
        return np.repeat(np.arange(self.first.size - 1), np.diff(self.first))

    def graphs(self) -> list[str]:
        """The graph of each launch: its number, or #1, #2 … by first launch of the same kernels on the same device."""
        forms = self.calls.select("device", kernels=pl.Series(self.kernels), is_known=pl.Series(self.graph_id >= 0))
        nameless = forms.filter(~pl.col("is_known")).unique(maintain_order=True).with_row_index("number", 1)
        numbers = forms.join(nameless, forms.columns, "left", maintain_order="left")["number"].to_list()
        return [
            str(graph_id) if number is None else f"#{number}"
            for graph_id, number in zip(self.graph_id.tolist(), numbers, strict=True)
        ]


def order_hashes(codes: NDArray[np.integer], first: Ints) -> NDArray[np.uint64]:
    """A hash of each part of a sequence: equal for equal numbers in the same order.

    The sum of a mix of each number and its position, splitmix64's (S. Vigna, https://prng.di.unimi.it/splitmix64.c).
    """
    if not codes.size:
        return np.empty(0, np.uint64)
    position = np.arange(codes.size) - np.repeat(first[:-1], np.diff(first))
    word = (codes.astype(np.uint64) << np.uint64(32)) + position.astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        word = (word ^ (word >> np.uint64(shift))) * np.uint64(factor)
    return np.add.reduceat(word ^ (word >> np.uint64(31)), first[:-1])


def graph_rows(trace: Trace) -> pl.DataFrame:
    """The device rows that launches of graphs ran, with their `row` in device_events."""
    return trace.device_events.with_row_index("row").filter(pl.Series(_is_of_graph(trace)))


def _is_of_graph(trace: Trace) -> NDArray[np.bool_]:
    """Whether a graph ran each device row: by its number, or by its call."""
    is_launch = map_categories(trace.launches["name"], launches_graph).astype(bool)
    by_call = gather(is_launch, trace.device_events["launch"].to_numpy(), missing=False)
    of_graph: NDArray[np.bool_] = by_call | (trace.device_events["graph_id"] >= 0).to_numpy()
    return of_graph
