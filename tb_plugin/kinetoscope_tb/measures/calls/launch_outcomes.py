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
    linked = np.flatnonzero(launch >= 0)
    rows = scatter_add(launch, np.ones(launch.size, np.int64), calls.height)
    spent = scatter_add(launch, device["dur_ns"].to_numpy(), calls.height)
    first = np.full(calls.height, NONE, np.int64)
    first[launch[linked[::-1]]] = linked[::-1]  # device rows are sorted by start: the earliest is written last
    launching = np.flatnonzero(first >= 0)
    delay, is_empty = np.full(calls.height, NONE, np.int64), np.zeros(calls.height, bool)
    start, reached = device["start_ns"].to_numpy(), _reached_before(trace)
    delay[launching] = np.maximum(start[first[launching]] - call_end[launching], 0)
    is_empty[launching] = reached[first[launching]] <= call_end[launching]
    outcomes = pl.DataFrame({"device_rows": rows, "device_ns": spent, "delay_ns": delay, "hit_empty_queue": is_empty})
    return outcomes.with_columns(delay_ns=pl.when(pl.col("delay_ns") >= 0).then("delay_ns"))


def _reached_before(trace: Trace) -> Ints:
    """When the rows before each one on its stream had ended; the smallest integer if there is none."""
    start, dur = (trace.device_events[name].to_numpy() for name in ("start_ns", "dur_ns"))
    reached = np.full(start.size, np.iinfo(np.int64).min)
    for _, _, rows in axes(trace, "stream"):
        earlier = rows[:-1]
        reached[rows[1:]] = np.maximum.accumulate(start[earlier] + dur[earlier])
    return reached
