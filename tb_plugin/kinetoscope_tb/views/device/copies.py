"""Copies and fills: how much memory was moved from where to where, and how fast."""

from __future__ import annotations

import polars as pl

from ...measures.calls.copy_totals import copy_totals
from ...measures.recording.contents import has_copies
from ...pictures import Bars
from ...table import BOOL, BYTE_RATE, BYTES, COUNT, DURATION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where, values_at
from ...view import Slices, View


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
    return Copies.of(copy_totals(trace).select(Copies.schema().names()))


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
