"""Exposed time: what of a device's time goes to computation, and what of communication and copies it doesn't hide.

The parts are counted in this order, each instant once: computation + exposed communication + exposed copies + idle =
the window. Only exposed time makes a step longer; yet exposed is not the same as blocking: what computes next may wait
for something else.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...arrays.gather import fraction
from ...measures.time.exposure import exposure
from ...measures.time.idle import Windows, axes
from ...table import DURATION, FRACTION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import device_work
from ...view import Part, Slices, View


class ExposedTime(Table):
    """One row is one device in all steps or in one; computation, exposed time and idle add up to the window."""

    key, weight = ("device", "step"), "exposed_communication_ns"

    device = Column(ID, "Index of the device.")
    step = Column(TEXT, "Number of the step; `all` from the start of the first to the end of the last.")
    window_ns = Column(DURATION, "Length of the step, or of all of them and what lies between.")
    computation_ns = Column(DURATION, "A kernel runs that is not communication.")
    exposed_communication_ns = Column(DURATION, "The device communicates with others, and doesn't compute.")
    exposed_copies_ns = Column(DURATION, "It copies or fills memory, and neither computes nor communicates.")
    idle_ns = Column(DURATION, "Nothing runs on it.")
    computation_frac = Column(FRACTION, "Computation / window.")
    communication_ns = Column(DURATION, "It communicates, whatever else runs.")
    overlap_ns = Column(DURATION, "It communicates and computes at the same time.")
    overlap_frac = Column(FRACTION, "Overlap / communication: the hidden share of it; missing if there is none.")


def exposed_time(trace: Trace, *, per: Literal["recording", "step"] = "recording") -> pl.DataFrame:
    """Devices by index, then steps in order."""
    windows = Windows.of(trace, each=per == "step")
    found = []
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
        found.append(pl.DataFrame(columns).with_columns(device=pl.lit(device, dtype=pl.Int64)))
    rows = (pl.concat(found) if found else pl.DataFrame(schema=ExposedTime.schema())).with_columns(
        computation_frac=fraction(pl.col("computation_ns"), pl.col("window_ns")),
        overlap_frac=fraction(pl.col("overlap_ns"), pl.col("communication_ns")),
    )
    return ExposedTime.of(rows.select(ExposedTime.schema().names()))


VIEW = View(
    exposed_time,
    table=ExposedTime,
    title="Exposed time",
    group="Device",
    within="recording",
    needs="device_events",
    hint="No device work was recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    place=Part("idle"),
    slices=Slices(device_work),
)
