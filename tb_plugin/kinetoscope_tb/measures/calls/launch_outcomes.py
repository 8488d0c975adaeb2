"""The device work that each runtime or driver call launched, and the delay until it began.

A *launch delay* runs from the end of the call to the start of the first row that it launched, and is never negative: a
kernel may begin before its call returns. If the stream still had work when the call ended, most of the delay is waiting
in the queue, as on any busy device. Only a delay with an empty queue is the cost of launching itself.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, scatter_add
from ...arrays.intervals import Ints
from ...trace.model import Trace
from ..time.idle import axes

SLOW_CALL_NS = 50_000
"""A longer launching call is an outlier, as in HTA (get_cuda_kernel_launch_stats)."""
LATE_START_NS = 100_000
"""The same for launch delays."""


def launch_outcomes(trace: Trace) -> pl.DataFrame:
    """Return one row per row of `launches`, in its order.

    Columns: device_rows (number of rows that it launched), device_ns (the sum of their durations), delay_ns (null if it
    launched none), hit_empty_queue (whether all earlier work of the first row's stream had ended when the call did).
    """
    calls, device = trace.launches, trace.device_events
    call_end = (calls["start_ns"] + calls["dur_ns"]).to_numpy()
    launch = device["launch"].to_numpy()
    launched_rows = np.flatnonzero(launch >= 0)
    rows = scatter_add(launch, np.ones(launch.size, np.int64), calls.height)
    device_ns = scatter_add(launch, device["dur_ns"].to_numpy(), calls.height)
    first = np.full(calls.height, NONE, np.int64)
    first[launch[launched_rows[::-1]]] = launched_rows[::-1]  # sorted by start: the earliest is written last
    launching_calls = np.flatnonzero(first >= 0)
    delay, is_empty = np.full(calls.height, NONE, np.int64), np.zeros(calls.height, bool)
    start, earlier_end = device["start_ns"].to_numpy(), _earlier_ends(trace)
    delay[launching_calls] = np.maximum(start[first[launching_calls]] - call_end[launching_calls], 0)
    is_empty[launching_calls] = earlier_end[first[launching_calls]] <= call_end[launching_calls]
    outcomes = pl.DataFrame(
        {"device_rows": rows, "device_ns": device_ns, "delay_ns": delay, "hit_empty_queue": is_empty}
    )
    return outcomes.with_columns(delay_ns=pl.when(pl.col("delay_ns") >= 0).then("delay_ns"))


def _earlier_ends(trace: Trace) -> Ints:
    """When the rows before each one on its stream had ended; the smallest integer if there is none."""
    start, dur = (trace.device_events[name].to_numpy() for name in ("start_ns", "dur_ns"))
    earlier_end = np.full(start.size, np.iinfo(np.int64).min)
    for _, _, rows in axes(trace, "stream"):
        earlier = rows[:-1]
        earlier_end[rows[1:]] = np.maximum.accumulate(start[earlier] + dur[earlier])
    return earlier_end
