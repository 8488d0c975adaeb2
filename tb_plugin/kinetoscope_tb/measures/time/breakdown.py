"""The breakdown of a step: its time by category, each instant counted once.

Each instant belongs to the first category of CATEGORIES that is active then, over all threads and devices of the
worker; the last category is the rest. So the categories of a step add up to its length, to the nanosecond.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import gather
from ...arrays.intervals import Intervals, Ints, exclusive_lengths, merge, union_of_rows
from ...names.kernels import is_data_loading
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import is_step, name_mask

CATEGORIES = ("Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CPU Exec", "Other")


def intervals_of(frame: pl.DataFrame, where: NDArray[np.bool_] | None = None) -> Intervals:
    """The times at which any row of a frame is active, or any of its rows selected by `where`."""
    return union_of_rows(frame["start_ns"].to_numpy(), frame["dur_ns"].to_numpy(), where)


@once_per_recording
def loading_ranges(trace: Trace) -> NDArray[np.bool_]:
    """For each host event whether it loads data or waits for them."""
    return name_mask(trace.host_events["name"], is_data_loading)


def activities(trace: Trace) -> dict[str, Intervals]:
    """When each category except Other is active, including overlaps."""
    device, host = trace.device_events, trace.host_events
    is_communication = device["is_communication"].to_numpy()
    on_device = {
        kind: intervals_of(device, (device["kind"] == kind).to_numpy() & ~is_communication)
        for kind in ("kernel", "memcpy", "memset")
    }
    communicates = host["is_communication"].to_numpy()
    loads = loading_ranges(trace)
    steps = is_step(trace)
    executes = ~(communicates | loads | steps)
    inside = gather(executes, host["parent"].to_numpy(), missing=False)  # then its parent covers it
    return {
        "Kernel": on_device["kernel"],
        "Memcpy": on_device["memcpy"],
        "Memset": on_device["memset"],
        "Communication": merge([intervals_of(device, is_communication), intervals_of(host, communicates)]),
        "Runtime": intervals_of(trace.launches),
        "DataLoader": intervals_of(host, loads),
        "CPU Exec": intervals_of(host, executes & ~inside),
    }


def breakdown(trace: Trace) -> dict[str, Ints]:
    """How long each category of CATEGORIES lasts in each step, in ns, in the order of the steps."""
    active = activities(trace)
    start, end = (trace.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    lengths = exclusive_lengths([active[name] for name in CATEGORIES[:-1]], start, end)
    return dict(zip(CATEGORIES, map(np.asarray, lengths), strict=True))
