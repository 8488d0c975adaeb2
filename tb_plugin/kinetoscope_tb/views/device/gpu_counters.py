"""GPU counters: clocks, power and metrics that were sampled on the device, next to what is estimated from events.

A sample holds until the next one. Utilization, SM efficiency and occupancy of the other views are computed from events
and launch configurations; SM activity and DRAM throughput here were measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import polars as pl

from ...arrays.intervals import cut
from ...measures.recording.contents import has_gpu_counters
from ...measures.recording.hardware_counters import HardwareCounter, hardware_counters
from ...measures.time.breakdown import intervals_of
from ...measures.time.idle import Windows
from ...table import COUNT, DURATION, ID, NUMBER, TEXT, Column, Table
from ...trace import Trace
from ...view import Tab, View


class GpuCounters(Table):
    """What each counter of a device was in all steps, in each step, or while each kernel ran."""

    key = ("device", "counter", "name")

    device = Column(ID, "Index of the device.")
    counter = Column(TEXT, "What was sampled, as the file names it.")
    unit = Column(TEXT, "Unit of the values, from the counter's name; missing if it has none.")
    name = Column(TEXT, "Number of the step; `all` from the start of the first to the end of the last; or the kernel.")
    mean_value = Column(
        NUMBER,
        "Mean over the time of the row. Of a kernel: over its calls that last at least as long as the time between two "
        "samples; missing if there is none, since a sample of a shorter one holds its neighbors too.",
    )
    kernel_value = Column(NUMBER, "Mean over the part of that time in which any kernel of the device ran.")
    min_value = Column(NUMBER, "Smallest sample in that time; missing for kernels.")
    max_value = Column(NUMBER, "Largest sample in that time; missing for kernels.")
    samples = Column(COUNT, "Samples with a value in that time; missing for kernels.")
    interval_ns = Column(DURATION, "Median time between two samples.")


def gpu_counters(trace: Trace, *, per: Literal["recording", "step", "kernel"] = "recording") -> pl.DataFrame:
    """Counters by device and name, each in the order of steps, or of kernels by name."""
    rows: list[dict[str, Any]] = []
    for counter in hardware_counters(trace):
        is_its = (pl.col("kind") == "kernel") & (pl.col("device") == counter.device)
        kernels = trace.device_events.select("name", "kind", "device", "start_ns", "dur_ns").filter(is_its)
        values = _of_kernels(counter, kernels) if per == "kernel" else _of_windows(counter, kernels, trace, per)
        counter_columns = {"device": counter.device, "counter": counter.name, "unit": counter.unit or None}
        rows += [{**counter_columns, **value, "interval_ns": counter.interval_ns} for value in values]
    return GpuCounters.of(pl.DataFrame(rows, schema=GpuCounters.schema()))


def _of_windows(counter: HardwareCounter, kernels: pl.DataFrame, trace: Trace, per: str) -> Iterator[dict[str, Any]]:
    windows = Windows.of(trace, per_step=per == "step")
    for name, start, end in zip(windows.names, windows.start, windows.end, strict=True):
        bounds = np.array([start]), np.array([end])
        _, begins, ends, window = cut(*bounds, intervals_of(kernels))
        in_window = window >= 0
        inside = (counter.time_ns >= start) & (counter.time_ns < end) & ~np.isnan(counter.value)
        samples = counter.value[inside]
        yield {
            "name": name,
            "mean_value": counter.mean(*bounds),
            "kernel_value": counter.mean(begins[in_window], ends[in_window]),
            "min_value": float(samples.min()) if samples.size else None,
            "max_value": float(samples.max()) if samples.size else None,
            "samples": int(samples.size),
        }


def _of_kernels(counter: HardwareCounter, kernels: pl.DataFrame) -> Iterator[dict[str, Any]]:
    long = kernels.filter((pl.col("dur_ns") >= counter.interval_ns) & (counter.interval_ns > 0))
    start = long["start_ns"].to_numpy()
    value, time = counter.integrals(start, start + long["dur_ns"].to_numpy())
    sums = long.select(pl.col("name").cast(pl.String)).with_columns(value=value, time=time)
    means = dict(sums.group_by("name").agg(pl.col("value").sum() / pl.col("time").sum()).iter_rows())
    for name in kernels["name"].cast(pl.String).unique().sort():
        mean = means.get(name)
        finite_mean = mean if mean is not None and np.isfinite(mean) else None
        yield {"name": name, "mean_value": finite_mean, "kernel_value": finite_mean}


VIEW = View(
    gpu_counters,
    table=GpuCounters,
    title="GPU counters",
    entry="Kernels",
    place=Tab("Counters"),
    needs=has_gpu_counters,
    hint="No counters of a GPU were sampled. torch 2.15 samples clocks and power with CuspyConfig("
    "enable_environment_counters=True), and metrics with PerformanceMetricsConfig.",
)
