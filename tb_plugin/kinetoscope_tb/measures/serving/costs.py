"""What iterations cost: device time, idle time by cause, families of kernels, and what the host does between them."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, map_categories, scatter_add
from ...arrays.intervals import Ints, length_within, union
from ...names.kernel_families import FAMILIES, kernel_family
from ...trace.model import Trace
from ..time.host_activity import host_activity
from ..time.idle import Windows
from ..time.idle_causes import CAUSES, gap_parts
from .iterations import Iterations


def busy_times(trace: Trace, start: Ints, end: Ints) -> Ints:
    """How long any kernel, copy or fill of the worker runs in each window."""
    begins = trace.device_events["start_ns"].to_numpy()
    busy: Ints = length_within(union(begins, begins + trace.device_events["dur_ns"].to_numpy()), start, end)
    return busy


def idle_times(trace: Trace, start: Ints, end: Ints) -> dict[str, Ints]:
    """How long no device of the worker runs anything in each window, by cause; windows are disjoint and in order."""
    if not start.size or trace.device_events.is_empty():
        return {cause: np.zeros(start.size, np.int64) for cause in CAUSES}
    gaps = gap_parts(trace, "worker", Windows(list(map(str, range(start.size))), start, end))
    window, length = gaps["window"].to_numpy(), (gaps["end_ns"] - gaps["start_ns"]).to_numpy()
    causes = gaps["cause"].cast(pl.String).to_numpy()
    return {cause: scatter_add(np.where(causes == cause, window, NONE), length, start.size) for cause in CAUSES}


def family_times(trace: Trace, made: Iterations) -> dict[str, Ints]:
    """The sum of the durations of each iteration's device work, by family; copies and fills are `other`."""
    device = trace.device_events
    family = map_categories(device["name"], kernel_family, missing="other")
    family = np.where((device["kind"] == "kernel").to_numpy(), family, "other")
    family = np.where(device["is_communication"].to_numpy(), "communication", family)
    duration, size = device["dur_ns"].to_numpy(), made.frame.height
    return {name: scatter_add(np.where(family == name, made.device, NONE), duration, size) for name in FAMILIES}


def gap_activities(trace: Trace, made: Iterations) -> dict[str, Ints]:
    """What the launching threads do between each iteration's window and the next one; adds up to that time."""
    gaps = made.frame.select(start_ns="end_ns", end_ns="next_ns")
    return host_activity(trace, gaps)
