"""Time that isn't in the recording: by what was recorded a device is idle, but it may have run work that wasn't.

It is the time whose cause is `not shown` in measures/time/idle_causes.py, a part of idle time there. A device none of
whose launches are recorded has none here: the recording may hold all that it ran.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...arrays.intervals import Intervals, Ints, length_within, merge, union
from ...trace.model import Trace
from ...trace.results import once_per_recording
from .idle import Axis, Windows
from .idle_causes import gap_parts

NOT_SHOWN = "not shown"
"""The cause of such time."""
NOT_IN_RECORDING = "Not in the recording"
"""What everyone calls it."""

_NOTICEABLE = 0.05


def matters(hidden_ns: int, whole_ns: int) -> bool:
    """Whether so much of a time isn't in the recording that it changes what is said of all of it."""
    return hidden_ns > _NOTICEABLE * whole_ns


def not_shown(trace: Trace, device: int = NONE) -> Intervals:
    """When a device may have run what isn't in the recording; NONE: any, while none runs what is.

    Of a part of a trace it is what all of it shows: a part begins amid work that the trace has.
    """
    return _by_device(trace.whole).get(device, merge([]))


def not_shown_times(trace: Trace, start: Ints, end: Ints, device: int = NONE) -> Ints:
    """How much of that lies in each window."""
    lengths: Ints = np.asarray(length_within(not_shown(trace, device), start, end))
    return lengths


@once_per_recording
def _by_device(trace: Trace) -> dict[int, Intervals]:
    """The times of each device, and of all together as those of NONE; from the first step's start to the last's end."""
    axes: tuple[Axis, ...] = ("worker", "device")
    parts = pl.concat([gap_parts(trace, axis, Windows.of(trace, each=False)) for axis in axes])
    numbers = trace.device_events.filter(pl.col("launch") != NONE)["device"].unique().to_list()
    devices = [*numbers, NONE] if numbers else []
    is_hidden = (pl.col("cause") == NOT_SHOWN) & pl.col("device").is_in(devices)
    spans = parts.filter(is_hidden).partition_by("device", as_dict=True)
    return {
        int(device): union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()) for (device,), rows in spans.items()
    }
