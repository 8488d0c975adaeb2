"""Exposed time: how much of a device's time is computation, and communication and copies that it doesn't hide.

Each instant counts once, in this order: computation + exposed communication + exposed copies + idle = the window. Only
exposed time makes a step longer; yet exposed doesn't mean blocking: the next computation may wait for something else.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...arrays.gather import fraction
from ...measures.recording.contents import has_device_events
from ...measures.time.exposure import exposure
from ...measures.time.idle import Windows, axes
from ...pictures import StackedBars
from ...table import DURATION, FRACTION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import device_work
from ...view import Slices, Tab, View


class ExposedTime(Table):
    """How much communication and copying was exposed, in all steps or in one; all parts add up to the window."""

    key, weight = ("device", "step"), "exposed_communication_ns"
    picture = StackedBars("window_ns", ("computation_ns", "exposed_communication_ns", "exposed_copies_ns", "idle_ns"))

    device = Column(ID, "Index of the device.")
    step = Column(TEXT, "Number of the step; `all` from the start of the first to the end of the last.")
    window_ns = Column(DURATION, "Length of the step, or of all steps including the time between them.")
    computation_ns = Column(DURATION, "Time with a running kernel that isn't communication.")
    exposed_communication_ns = Column(DURATION, "Time with communication, but no computation.")
    exposed_copies_ns = Column(DURATION, "Time with copies or fills, but neither computation nor communication.")
    idle_ns = Column(DURATION, "Time in which nothing runs on the device.")
    computation_frac = Column(FRACTION, "Computation / window.")
    communication_ns = Column(DURATION, "Time with communication, whatever else runs.")
    overlap_ns = Column(DURATION, "Time with both communication and computation.")
    overlap_frac = Column(FRACTION, "Overlap / communication: the hidden share; missing without communication.")


def exposed_time(trace: Trace, *, per: Literal["recording", "step"] = "recording") -> pl.DataFrame:
    """Devices by index, then steps in order."""
    windows = Windows.of(trace, per_step=per == "step")
    frames = []
    for device, _, own in axes(trace, "device"):
        computation, communication, copies, idle, whole = exposure(trace, own, windows).values()
        columns = {
            "step": windows.names,
            "window_ns": windows.end - windows.start,
            "computation_ns": computation,
            "exposed_communication_ns": communication,
            "exposed_copies_ns": copies,
            "idle_ns": idle,
            "communication_ns": whole,
            "overlap_ns": whole - communication,
        }
        frames.append(pl.DataFrame(columns).with_columns(device=pl.lit(device, dtype=pl.Int64)))
    rows = (pl.concat(frames) if frames else pl.DataFrame(schema=ExposedTime.schema())).with_columns(
        computation_frac=fraction(pl.col("computation_ns"), pl.col("window_ns")),
        overlap_frac=fraction(pl.col("overlap_ns"), pl.col("communication_ns")),
    )
    return ExposedTime.of(rows.select(ExposedTime.schema().names()))


VIEW = View(
    exposed_time,
    table=ExposedTime,
    title="Exposed time",
    entry="Idle",
    place=Tab("Overlap"),
    within="recording",
    needs=has_device_events,
    hint="No device work was recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    slices=Slices(device_work, "Work is in several rows: of its device, and of each step."),
)
