"""Exposed time: communication and copies that no computation hides, and the remaining idle time.

Within a window, per device or over all devices of the worker: computation + exposed communication + exposed copies +
idle = the window. Computation is kernels that don't communicate; copies are copies and fills.

On the host, operators compute. One that encloses a collective may only wait for it, so while a collective or a transfer
is open on any thread, only innermost operators count.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.intervals import Intervals, Ints, exclusive_lengths, length_within, without
from ...names.compiled_code import is_compiled_region
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import is_operator, name_mask
from .breakdown import intervals_of, loading_ranges
from .idle import Rows, Windows

PARTS = ("computation", "exposed communication", "exposed copies", "idle")


def exposure(trace: Trace, rows: Rows, windows: Windows) -> dict[str, Ints]:
    """Time of each of PARTS per window, and `communication`: all of it, hidden or not; for these device rows."""
    names = ("kind", "is_communication", "start_ns", "dur_ns")
    if rows.size < trace.device_events.height:
        device = pl.DataFrame([trace.device_events[name].gather(rows) for name in names])
    else:  # all of them, in order
        device = trace.device_events.select(names)
    communicates = device["is_communication"].to_numpy()
    computes = (device["kind"] == "kernel").to_numpy() & ~communicates
    computation, communication, copies = (
        intervals_of(device, where) for where in (computes, communicates, ~computes & ~communicates)
    )
    parts = exclusive_lengths([computation, communication, copies], windows.start, windows.end)
    whole = length_within(communication, windows.start, windows.end)
    return {**dict(zip(PARTS, map(np.asarray, parts), strict=True)), "communication": whole}


@once_per_recording
def exposed_on_host(trace: Trace) -> Intervals:
    """When the host communicates while none of its innermost operators computes."""
    host = trace.host_events
    communicates, parent = host["is_communication"].to_numpy(), host["parent"].to_numpy()
    is_innermost = np.ones(host.height, bool)
    is_innermost[parent[parent >= 0]] = False
    computes = is_innermost & is_operator(trace) & ~communicates
    computes &= ~(loading_ranges(trace) | name_mask(host["name"], is_compiled_region))
    return without(intervals_of(host, communicates), intervals_of(host, computes))


def computing_on_host(trace: Trace) -> Intervals:
    """When operators compute that neither communicate nor load data, without the exposed communication.

    Annotations and Python don't count: some of them cover a whole training step, including its waits.
    """
    host = trace.host_events
    computes = is_operator(trace) & ~host["is_communication"].to_numpy()
    computes &= ~loading_ranges(trace)
    return without(intervals_of(host, computes), exposed_on_host(trace))
