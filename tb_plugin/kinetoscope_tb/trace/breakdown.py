"""The breakdown of a step: what its time went to, each instant counted once.

Each instant belongs to the first category of CATEGORIES that is active then, over all threads and devices of the
worker; the last category is what is left. So the categories of a step add up to its length, to the nanosecond.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ..intervals import Intervals, Ints, exclusive_lengths, merge, union
from ..kernel_names import is_communication_range, is_data_loading, step_number
from .lookup import by_name
from .model import Trace

CATEGORIES = ("Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CPU Exec", "Other")


def intervals_of(frame: pl.DataFrame) -> Intervals:
    """The instants at which any row of a frame is active."""
    start = frame["start_ns"].to_numpy()
    return union(start, start + frame["dur_ns"].to_numpy())


def activities(trace: Trace) -> dict[str, Intervals]:
    """When each category but Other is active, overlaps included."""
    device, host = trace.device_events, trace.host_events
    on_device = {
        kind: device.filter((pl.col("kind") == kind) & ~pl.col("is_communication"))
        for kind in ("kernel", "memcpy", "memset")
    }
    communicates = by_name(host["name"], is_communication_range)
    loads = by_name(host["name"], is_data_loading)
    steps = by_name(host["name"], lambda name: step_number(name) is not None)
    return {
        "Kernel": intervals_of(on_device["kernel"]),
        "Memcpy": intervals_of(on_device["memcpy"]),
        "Memset": intervals_of(on_device["memset"]),
        "Communication": merge(
            [
                intervals_of(device.filter(pl.col("is_communication"))),
                intervals_of(host.filter(pl.Series(communicates))),
            ]
        ),
        "Runtime": intervals_of(trace.launches),
        "DataLoader": intervals_of(host.filter(pl.Series(loads))),
        "CPU Exec": intervals_of(host.filter(pl.Series(~(communicates | loads | steps)))),
    }


def breakdown(trace: Trace) -> dict[str, Ints]:
    """How long each category of CATEGORIES lasts in each step, in ns, in the order of the steps."""
    active = activities(trace)
    start, end = (trace.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    lengths = exclusive_lengths([active[name] for name in CATEGORIES[:-1]], start, end)
    return dict(zip(CATEGORIES, map(np.asarray, lengths), strict=True))
