"""How long kernels last: launching a short kernel takes longer than running it, so many of them keep a device waiting.

It counts kernels, not copies or fills, and shows where the time of a device goes: a hundred thousand kernels of 2 µs,
or a hundred of 2 ms. It doesn't show whether a kernel is too short for its work.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import fraction
from ...measures.recording.contents import has_kernels
from ...measures.time.duration_bins import bin_of, histogram, is_in_bin
from ...pictures import Histogram
from ...table import COUNT, DURATION, FRACTION, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Slices, Tab, View


class KernelDurations(Table):
    """How many kernels last how long."""

    key, weight = ("from_ns",), "total_ns"
    picture = Histogram("from_ns", "to_ns", heights=("calls", "total_ns"))

    from_ns = Column(DURATION, "Shortest duration in this bin.", adds_up=False)
    to_ns = Column(DURATION, "Durations in this bin are shorter than this.", adds_up=False)
    calls = Column(COUNT, "Number of kernels.")
    total_ns = Column(DURATION, "Sum of their durations.")
    calls_up_to_here_frac = Column(FRACTION, "Share of all kernels that are shorter than this row's upper end.")
    total_up_to_here_frac = Column(FRACTION, "Share of all kernel time in kernels shorter than this row's upper end.")


def kernel_durations(trace: Trace) -> pl.DataFrame:
    """Kernels by how long they last, the shortest first."""
    durations = trace.device_events.select("kind", "dur_ns").filter(pl.col("kind") == "kernel")["dur_ns"].to_numpy()
    amounts, names = ("calls", "total_ns"), ("calls_up_to_here_frac", "total_up_to_here_frac")
    shares = [
        fraction(pl.col(amount).cum_sum(), pl.col(amount).sum()).alias(name)
        for amount, name in zip(amounts, names, strict=True)
    ]
    return KernelDurations.of(histogram({"calls": durations}, {"total_ns": durations}).with_columns(shares))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The kernels whose durations fall into the bin."""
    is_kernel = (trace.device_events["kind"] == "kernel").to_numpy()
    return {"device_events": np.flatnonzero(is_kernel & is_in_bin(trace.device_events["dur_ns"], key["from_ns"]))}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The bin of a kernel."""
    if frame != "device_events" or trace.device_events["kind"][row] != "kernel":
        return None
    return {"from_ns": bin_of(trace.device_events["dur_ns"][row])}


VIEW = View(
    kernel_durations,
    table=KernelDurations,
    title="How long kernels last",
    entry="Kernels",
    place=Tab("Durations"),
    needs=has_kernels,
    hint="No kernels were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    slices=Slices(events_of_row, row_of),
)
