"""When a worker computes, communicates and collects garbage, and how much it computes."""

from __future__ import annotations

import json
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import map_categories
from ..arrays.intervals import Intervals, merge
from ..measures.time.breakdown import intervals_of
from ..measures.time.exposure import computing_on_host
from ..measures.time.idle import Windows
from ..names.python_frames import collects_garbage
from ..trace import Trace

Ints = NDArray[np.int64]
_MOST_THREADS = 1 << 40  # of a kernel: more than any device takes


def computing(trace: Trace) -> Intervals:
    """When it computes: kernels that don't communicate; without any device work, operators (measures/time/exposure)."""
    device = trace.device_events
    if device.height:
        return intervals_of(device, (device["kind"] == "kernel").to_numpy() & ~device["is_communication"].to_numpy())
    return computing_on_host(trace)


def transferring(trace: Trace) -> Intervals:
    """When it communicates with other ranks: device rows; without any device work, the host's ranges."""
    device, host = trace.device_events, trace.host_events
    if device.height:
        return intervals_of(device, device["is_communication"].to_numpy())
    return intervals_of(host, host["is_communication"].to_numpy())


def garbage_collection(trace: Trace) -> Intervals:
    """When Python collects garbage, on any thread: meanwhile no other thread runs Python."""
    frames = (trace.python_calls, trace.others)
    return merge([intervals_of(f, map_categories(f["name"], collects_garbage).astype(bool)) for f in frames])


def work(trace: Trace, windows: Windows) -> tuple[Ints, Ints]:
    """Per window, how many kernels or operators that compute start in it, and the number of the kernels' threads.

    Ranks that do the same work launch as much; what then takes longer on one of them is slower. Without a device, the
    number of threads is 0, as it is if the grid or block of any kernel is unknown.
    """
    device, host = trace.device_events, trace.host_events
    if not device.height:
        start = host.filter(kind="operator", is_communication=False)["start_ns"].sort().to_numpy()
        return _between(start, np.ones(start.size, np.int64), windows), np.zeros(windows.start.size, np.int64)
    kernels = device.filter(kind="kernel", is_communication=False).sort("start_ns")
    start, sides = kernels["start_ns"].to_numpy(), [map_categories(kernels[side], _size) for side in ("grid", "block")]
    threads = sides[0].astype(np.int64) * sides[1].astype(np.int64)
    threads = np.where(threads.all(), np.minimum(threads, _MOST_THREADS), 0)
    return _between(start, np.ones(start.size, np.int64), windows), _between(start, threads, windows)


def _between(start: Ints, amount: Ints, windows: Windows) -> Ints:
    """The sum of the amounts of what starts in each window; `start` in order."""
    until = np.concatenate([[0], np.cumsum(amount)])
    sums: Ints = until[np.searchsorted(start, windows.end)] - until[np.searchsorted(start, windows.start)]
    return sums


def _size(extent: str) -> int:
    """The product of a grid or a block as the file has it, such as `[132, 1, 1]`; 0 if it is something else."""
    try:
        sides = json.loads(extent)
        return min(prod(map(int, sides)), _MOST_THREADS) if min(sides, default=0) > 0 else 0
    except (ValueError, TypeError, OverflowError, RecursionError):
        return 0
