"""What became of each runtime or driver call: the device work that it launched, and how long that took to begin.

A *launch delay* runs from the end of the call to the start of the first row that it launched, and is never negative: a
kernel may begin while its call still returns. Where the stream still had work when the call ended, most of the delay is
waiting in the queue, which is what a busy device looks like. Only a delay behind an empty queue tells what launching
itself costs.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...trace.model import Trace

SLOW_CALL_NS = 50_000
"""Longer than this, a call that launches work is an outlier; so HTA counts them too (get_cuda_kernel_launch_stats)."""
LATE_START_NS = 100_000
"""The same for launch delays."""


def launch_outcomes(trace: Trace) -> pl.DataFrame:
    """Return one row per row of `launches`, in its order.

    Columns: device_rows (how many it launched), device_ns (the sum of their durations), delay_ns (null if it launched
    none), found_empty (whether all earlier work of the first row's stream had ended when the call did).
    """
    calls, device = trace.launches, trace.device_events
    call_end = (calls["start_ns"] + calls["dur_ns"]).to_numpy()
    launch = device["launch"].to_numpy()
    known = np.flatnonzero(launch >= 0)
    rows, spent = np.zeros(calls.height, np.int64), np.zeros(calls.height, np.int64)
    np.add.at(rows, launch[known], 1)
    np.add.at(spent, launch[known], device["dur_ns"].to_numpy()[known])
    first = np.full(calls.height, NONE, np.int64)
    first[launch[known[::-1]]] = known[::-1]  # device rows come by their start: the earliest is written last
    launching = np.flatnonzero(first >= 0)
    delay, is_empty = np.full(calls.height, NONE, np.int64), np.zeros(calls.height, bool)
    start, reached = device["start_ns"].to_numpy(), _reached_before(device)
    delay[launching] = np.maximum(start[first[launching]] - call_end[launching], 0)
    is_empty[launching] = reached[first[launching]] <= call_end[launching]
    found = pl.DataFrame({"device_rows": rows, "device_ns": spent, "delay_ns": delay, "found_empty": is_empty})
    return found.with_columns(delay_ns=pl.when(pl.col("delay_ns") >= 0).then("delay_ns"))


def _reached_before(device: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Up to when the rows before each one kept its stream busy; the least number where there is none."""
    end = (pl.col("start_ns") + pl.col("dur_ns")).cum_max().shift(1).over("device", "stream")
    return device.select(end.fill_null(np.iinfo(np.int64).min)).to_series().to_numpy()
