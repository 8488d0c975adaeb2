"""Kernels: which device code took the time."""

from __future__ import annotations

import polars as pl

from ..tables import TEXT, Column, Table
from ..trace import Trace
from ..trace.kernel_calls import KernelCosts, kernel_table
from ..views import View


class _Name(Table):
    """One row is one kernel."""

    name = Column(TEXT, "Symbol of the kernel as the driver gives it.")


class Kernels(KernelCosts, _Name):
    """One row is one kernel; copies and fills are not among them."""

    key, weight = ("name",), "total_ns"
    charts = ("total_ns",)


def kernels(trace: Trace) -> pl.DataFrame:
    """Kernels by total time, the longest first."""
    return Kernels.of(kernel_table(trace, [pl.col("name")]))


VIEW = View(
    kernels,
    table=Kernels,
    title="Kernels",
    group="Device",
    needs="kernels",
    hint="No kernels were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    variant="Kernel",
)
