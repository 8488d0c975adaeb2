"""Graphs: launches of CUDA and HIP graphs, and how full the device was inside them.

A graph's kernels belong to the operator that was open at its launch; the trace of a replay doesn't have the operators
of the capture. Gaps inside a graph are the device's own: the host doesn't cause them.
"""

from __future__ import annotations

import polars as pl

from ...measures.calls.graph_launches import LAUNCH, graph_launches, graph_rows
from ...measures.recording.contents import has_graphs
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, ID, NUMBER, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, has_op, is_equal
from ...view import Slices, View


class Graphs(Table):
    """Which CUDA or HIP graphs were launched, and how much time is idle inside them."""

    key, weight = ("graph", "op", "device"), "device_total_ns"
    picture = Bars(("device_total_ns",))

    graph = Column(
        TEXT,
        "CUDA's number of it (torch 2.12 and later record it); #1, #2 … if not recorded: then launches that ran the "
        "same kernels in the same order count as one graph.",
    )
    op = Column(TEXT, "Innermost operator that was open when it was launched; missing if none is known.")
    device = Column(ID, "Device that ran it.")
    first_kernel = Column(TEXT, "First kernel, copy or fill of its first launch.")
    launches = Column(COUNT, "Number of launches.")
    mean_device_events = Column(NUMBER, "Kernels, copies and fills per launch.")
    device_total_ns = Column(DURATION, "Sum of the durations of all its kernels, copies and fills.")
    mean_span_ns = Column(DURATION, "Mean time from the first start to the last end of a launch, rounded.")
    max_span_ns = Column(DURATION, "The longest such time.")
    gap_ns = Column(
        DURATION, "Time between the first start and the last end in which none of its work ran, over all launches."
    )
    gap_frac = Column(FRACTION, "Share of the gaps in that time.")


def graphs(trace: Trace) -> pl.DataFrame:
    """Graphs by their device time, the longest first."""
    by = ("graph", "op", "device")
    spans = pl.col("span_ns")
    rows = graph_launches(trace)
    names = trace.host_events["name"].gather(rows["op"].replace(-1, None)).cast(pl.String).alias("op")
    table = (
        rows.with_columns(names)
        .group_by(by, maintain_order=True)
        .agg(
            pl.col("first_kernel").first(),
            pl.len().cast(pl.Int64).alias("launches"),
            pl.col("rows").mean().alias("mean_device_events"),
            pl.col("device_ns").sum().alias("device_total_ns"),
            spans.mean().round().cast(pl.Int64).alias("mean_span_ns"),
            spans.max().alias("max_span_ns"),
            pl.col("gap_ns").sum(),
            pl.when(spans.sum() > 0).then(pl.col("gap_ns").sum() / spans.sum()).alias("gap_frac"),
        )
    )
    table = table.cast({"device": pl.Int64}).select(Graphs.schema().names())
    return Graphs.of(table.sort("device_total_ns", *by, descending=[True, *(False for _ in by)]))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The device work of the graph's launches."""
    launches = graph_launches(trace)
    of_graph = is_equal(launches["graph"], key["graph"]) & is_equal(launches["device"], key["device"])
    matches = launches.filter(pl.Series(of_graph & has_op(trace, launches, key["op"])))
    rows = graph_rows(trace).join(matches.select(LAUNCH), LAUNCH, "semi", nulls_equal=True)
    return {"device_events": rows["row"].to_numpy()}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The graph that ran device work."""
    launch = graph_rows(trace).filter((pl.col("row") == row) & (frame == "device_events")).select(LAUNCH)
    if launch.is_empty():
        return None
    graph_launch = graph_launches(trace).join(launch, LAUNCH, "semi", nulls_equal=True).row(0, named=True)
    op = graph_launch["op"]
    return {**graph_launch, "op": trace.host_events["name"][op] if op >= 0 else None}


VIEW = View(
    graphs,
    table=Graphs,
    title="Graphs",
    entry="Kernels",
    needs=has_graphs,
    hint="No CUDA or HIP graph was launched during the recording. torch.cuda.graph and torch.compile with "
    'mode="reduce-overhead" make them, so that many kernels cost one launch.',
    slices=Slices(events_of_row, row_of),
)
