"""Counters of a GPU that were sampled while it ran: clocks, power, and metrics of CUPTI's PM sampling.

torch 2.14 and later write them as events of phase C of the process "GPU N Counters" (Cuspy's environment counters and
PerformanceMetricsConfig; kineto's `hardware_counters`). A sample holds from its time to the next one. Cuspy's "Cycles
(Current Kernel)" is a kernel's duration times the median clock, no measurement, and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...names.regex import regex
from ...trace.model import Trace

_PROCESS = regex(r"GPU (\d{1,6}) Counters")
_UNIT = regex(r"(.+) \(([^()]+)\)")
_DERIVED = "Cycles (Current Kernel)"

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class HardwareCounter:
    """One counter of one device.

    Args:
        device: Its index.
        name: What is counted, without its unit.
        unit: Of the values; empty if the name has none.
        time_ns: When each sample was taken.
        value: Of each sample; NaN if unknown.
    """

    device: int
    name: str
    unit: str
    time_ns: Ints
    value: NDArray[np.float64]

    @property
    def interval_ns(self) -> int:
        """The median time between samples; 0 if there is only one."""
        return int(np.median(np.diff(self.time_ns))) if self.time_ns.size > 1 else 0

    def integrals(self, start: Ints, end: Ints) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(integral of the value, time in which it is known) of each interval; their ratio is the mean."""
        edges = np.append(self.time_ns, self.time_ns[-1] + self.interval_ns)
        is_known = ~np.isnan(self.value)
        lengths = np.diff(edges) * is_known
        sums, times = (
            np.concatenate([[0.0], np.cumsum(part)]) for part in (np.nan_to_num(self.value) * lengths, lengths)
        )
        value, time = (np.interp(end, edges, part) - np.interp(start, edges, part) for part in (sums, times))
        return value, time

    def mean(self, start: Ints, end: Ints) -> float | None:
        """The mean over all intervals together; None if nothing is known of them."""
        value, time = (part.sum() for part in self.integrals(start, end))
        return float(value / time) if time > 0 else None


def device_of_counter(process: str) -> int | None:
    """The device whose counters a process of the file holds; None for a program's own."""
    match = _PROCESS.fullmatch(process)
    return int(match[1]) if match else None


def name_and_unit(counter: str) -> tuple[str, str]:
    """A counter's name without its unit, and the unit: "Power (W)" is Power in W."""
    match = _UNIT.fullmatch(counter)
    return (match[1], match[2]) if match else (counter, "")


def is_measured(counter: str) -> bool:
    """Whether a counter of a device was sampled."""
    return counter != _DERIVED


def hardware_counters(trace: Trace) -> Iterator[HardwareCounter]:
    """The sampled counters of all devices, by device and name."""
    processes = trace.counters["process"].cast(pl.String).unique().drop_nulls().to_list()
    devices = {process: device for process in processes if (device := device_of_counter(process)) is not None}
    rows = trace.counters.with_columns(pl.col("process", "name").cast(pl.String)).filter(
        pl.col("process").is_in(list(devices))
    )
    for (process, name), samples in sorted(rows.group_by("process", "name", maintain_order=True), key=lambda g: g[0]):
        if is_measured(str(name)):
            in_order = samples.sort("start_ns").unique("start_ns", keep="last", maintain_order=True)
            of = devices[str(process)]
            yield HardwareCounter(
                of, *name_and_unit(str(name)), in_order["start_ns"].to_numpy(), in_order["value"].to_numpy()
            )
