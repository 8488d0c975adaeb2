"""Exposed time: communication and copies that no computation hides, and the remaining idle time.

Within a window, per device or over all devices of the worker: computation + exposed communication + exposed copies +
idle = the window. Computation is kernels that don't communicate; copies are copies and fills.
"""

from __future__ import annotations

import numpy as np

from ...arrays.intervals import Ints, exclusive_lengths, length_within
from ...trace.model import Trace
from .breakdown import intervals_of
from .idle import Rows, Windows

PARTS = ("computation", "exposed communication", "exposed copies", "idle")


def exposure(trace: Trace, rows: Rows, windows: Windows) -> dict[str, Ints]:
    """Time of each of PARTS per window, and `communication`: all of it, hidden or not; for these device rows."""
    device = trace.device_events[rows]
    communicates = device["is_communication"].to_numpy()
    computes = (device["kind"] == "kernel").to_numpy() & ~communicates
    computation, communication, copies = (
        intervals_of(device, where) for where in (computes, communicates, ~computes & ~communicates)
    )
    parts = exclusive_lengths([computation, communication, copies], windows.start, windows.end)
    whole = length_within(communication, windows.start, windows.end)
    return {**dict(zip(PARTS, map(np.asarray, parts), strict=True)), "communication": whole}
