"""Copies and fills: how much memory was moved from where to where, and how fast.

Rates are recomputed from bytes and durations; torch 2.4 and 2.5 recorded wrong ones (kineto b5c85daa). A copy by a
kernel (as `aten::copy_` on one device often runs) is a kernel, and not here.
"""

from __future__ import annotations

import polars as pl

from ...measures.recording.contents import has_copies
from ...pictures import Bars
from ...table import BOOL, BYTE_RATE, BYTES, COUNT, DURATION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where, values_at
from ...view import Slices, View

_ROUTE = r"(?:^|[^A-Za-z])([HDAP]to[HDAP])(?:[^A-Za-z]|$)"
_ENDS = r"\(\s*([^()]+?)\s*->\s*([^()]+?)\s*\)"
_IN_WORDS = {"HostToDevice": "HtoD", "DeviceToHost": "DtoH", "DeviceToDevice": "DtoD", "HostToHost": "HtoH"}


class Copies(Table):
    """Which copies and fills ran, and how fast; `fill` is memory set to one value."""

    key, weight = ("name", "device", "from_device", "to_device"), "total_ns"
    picture = Bars(("total_ns", "moved_bytes"))

    name = Column(TEXT, "Name that the profiler gives it.")
    direction = Column(
        TEXT,
        "HtoD, DtoH, DtoD, HtoH, PtoP (between devices) and so on, or fill; missing if the name doesn't say.",
    )
    device = Column(ID, "Device that ran it.")
    from_device = Column(ID, "Between devices: the one that is read; missing if not recorded.")
    to_device = Column(ID, "Between devices: the one that is written; missing if not recorded.")
    calls = Column(COUNT, "Number of copies or fills.")
    moved_bytes = Column(BYTES, "Sum of their sizes; missing if none is recorded.")
    mean_bytes = Column(BYTES, "Mean size of those with a recorded size, rounded.")
    total_ns = Column(DURATION, "Sum of their durations.")
    mean_ns = Column(DURATION, "Total / calls, rounded to the nanosecond.")
    max_ns = Column(DURATION, "Longest one.")
    moved_bytes_per_s = Column(BYTE_RATE, "Bytes per second while they ran, of those with a recorded size.")
    source = Column(
        TEXT, "Memory that is read, according to its name: Pageable, Pinned, Device, Managed, Array, Unknown."
    )
    target = Column(TEXT, "Memory that is written, according to the same name.")
    is_pageable = Column(
        BOOL, "Whether unpinned host memory took part, so that the driver copies twice; missing if unknown."
    )


def copies(trace: Trace) -> pl.DataFrame:
    """Copies and fills by total time, the longest first."""
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
    names = list(Copies.schema())
    return Copies.of(table.select(names).sort("total_ns", *by, descending=[True, *(False for _ in by)]))


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


def events_of_row(trace: Trace, key: Key) -> Events:
    """The copies and fills with this name between these devices."""
    rows = rows_where(trace.device_events, **key)
    return {"device_events": rows[(trace.device_events["kind"][rows] != "kernel").to_numpy()]}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The name and the devices of a copy or a fill."""
    if frame != "device_events" or trace.device_events["kind"][row] == "kernel":
        return None
    return values_at(trace.device_events, row, *Copies.key)


VIEW = View(
    copies,
    table=Copies,
    title="Copies",
    entry="Kernels",
    needs=has_copies,
    hint="No copies or fills were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    slices=Slices(events_of_row, row_of),
)
