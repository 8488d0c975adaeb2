"""Kernel marks: the GPU work of CUDA graphs by the mark around its launch (mark_kernels of torch 2.15)."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.intervals import union
from ...measures.recording.contents import has_marks
from ...table import COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View


class KernelMarks(Table):
    """How long the marked kernels, copies and fills of graphs ran, by mark."""

    key, weight = ("mark",), "total_ns"

    mark = Column(TEXT, "Name of the mark, as mark_kernels got it. Inner marks replace outer ones.")
    calls = Column(COUNT, "Kernels, copies and fills with this mark that ran.")
    nodes = Column(COUNT, "Different nodes of graphs among them; missing if nodes weren't recorded.")
    total_ns = Column(DURATION, "Sum of their durations.")
    gpu_ns = Column(DURATION, "When any of them ran. Each instant counts once.", adds_up=False)
    mean_ns = Column(DURATION, "Total ÷ calls, rounded to the nanosecond.")
    total_frac = Column(FRACTION, "Share of the durations of all device work, marked or not.")


def kernel_marks(trace: Trace) -> pl.DataFrame:
    """The marks by total time, the longest first."""
    device = trace.device_events
    work = device.select("start_ns", "dur_ns", "graph_node_id").with_columns(mark=_marks_of_work(trace))
    whole = int(device["dur_ns"].sum())
    node = pl.col("graph_node_id")
    rows = work.filter(pl.col("mark").is_not_null()).group_by("mark").agg(
        pl.len().cast(pl.Int64).alias("calls"),
        node.filter(node >= 0).n_unique().cast(pl.Int64).replace(0, None).alias("nodes"),
        pl.col("dur_ns").sum().alias("total_ns"),
        pl.struct("start_ns", "dur_ns").alias("spans"),
    )  # fmt: skip
    table = rows.with_columns(
        gpu_ns=pl.Series([_length_of_union(spans) for spans in rows["spans"]], dtype=pl.Int64),
        mean_ns=(pl.col("total_ns") / pl.col("calls")).round().cast(pl.Int64),
        total_frac=pl.col("total_ns") / (whole or None),
    )
    return KernelMarks.of(table.select(KernelMarks.schema().names()).sort("total_ns", "mark", descending=[True, False]))


def _length_of_union(spans: pl.Series) -> int:
    start, dur = (spans.struct.field(name).to_numpy() for name in ("start_ns", "dur_ns"))
    begin, end = union(start, start + dur)
    return int((end - begin).sum())


def _marks_of_work(trace: Trace) -> pl.Series:
    """The mark of each row of device_events, by the recording itself, else by the files next to it; null without."""
    device, notes = trace.device_events, trace.captures.node_notes
    own = device["mark"].cast(pl.String)
    if notes is None or notes.is_empty():
        return own
    of_node = device.select(node="graph_node_id").join(notes, "node", "left", maintain_order="left")
    return own.zip_with(own.is_not_null(), of_node["mark"])


def events_of_row(trace: Trace, key: Key) -> Events:
    """The work with this mark."""
    marks = _marks_of_work(trace)
    is_chosen = (marks.is_null() if key["mark"] is None else (marks == key["mark"]).fill_null(value=False)).to_numpy()
    return {"device_events": np.flatnonzero(is_chosen).astype(np.int32)}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The mark of device work."""
    mark = _marks_of_work(trace)[row] if frame == "device_events" else None
    return None if mark is None else {"mark": mark}


VIEW = View(
    kernel_marks,
    table=KernelMarks,
    title="Kernel marks",
    entry="Annotations",
    needs=has_marks,
    hint="No kernel has a mark. torch 2.15 marks those of CUDA graphs: put mark_kernels(name) of "
    "torch.cuda.graph_annotations around parts of a capture with enable_annotations=True.",
    place=Tab("Kernel marks"),
    slices=Slices(events_of_row, row_of),
    reads_captures=True,
)
