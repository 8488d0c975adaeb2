"""Kernels: which kernels took the GPU's time."""

from __future__ import annotations

import polars as pl

from ...measures.calls.kernel_calls import KernelCosts, kernel_table
from ...measures.recording.contents import has_kernels
from ...pictures import Bars
from ...table import TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where, values_at
from ...view import Slices, View


class _Name(Table):
    """Names of kernels."""

    name = Column(TEXT, "Symbol of the kernel as the driver gives it.")


class Kernels(KernelCosts, _Name):
    """Which kernels use the GPU's time; copies and fills are not included."""

    key, weight = ("name",), "total_ns"
    picture = Bars(("total_ns",))


def kernels(trace: Trace) -> pl.DataFrame:
    """Kernels by total time, the longest first."""
    return Kernels.of(kernel_table(trace, [pl.col("name")]))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The kernel's executions."""
    return {"device_events": rows_where(trace.device_events, kind="kernel", **key)}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The name of a kernel."""
    if frame != "device_events" or trace.device_events["kind"][row] != "kernel":
        return None
    return values_at(trace.device_events, row, "name")


VIEW = View(
    kernels,
    table=Kernels,
    title="Kernels",
    entry="Kernels",
    needs=has_kernels,
    hint="No kernels were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    slices=Slices(events_of_row, row_of, category="Kernel"),
)
