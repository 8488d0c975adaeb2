"""When a worker computes, communicates and collects garbage, and how much it computes."""

from __future__ import annotations

import json
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import gather, map_categories
from ..arrays.intervals import Intervals, merge
from ..measures.calls.matrix_work import element_count
from ..measures.time.breakdown import intervals_of
from ..measures.time.exposure import computing_on_host
from ..measures.time.idle import Windows
from ..names.python_frames import collects_garbage
from ..trace import Trace

Ints = NDArray[np.int64]
_MOST_THREADS = 1 << 40  # of a kernel: more than any device takes
_OF_PARAMETERS = ("aten::_foreach_", "aten::_fused_")
_MOST = 0.5  # of the kernels


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


class Work(NamedTuple):
    """How much a worker computes in each window.

    Attributes:
        launches: How many kernels, or without a device operators, start in it.
        threads: Of the kernels: grid × block; 0 without a device, or if the size of any is unknown.
        elements: Of the inputs of the kernels' operators, or of the operators, but not of updates of many parameters; 0
            if the shapes of most are unknown.
    """

    launches: Ints
    threads: Ints
    elements: Ints


def work(trace: Trace, windows: Windows) -> Work:
    """How much computes in each window.

    Ranks that do the same work launch as much; what then takes longer on one of them is slower. Threads alone don't say
    that: kernels that stay on their multiprocessors have grids of one size, whatever their inputs.
    """
    device, host = trace.device_events, trace.host_events
    ops = trace.all_host_events  # those that replayed graphs were captured from, too
    is_update = map_categories(ops["name"], lambda name: name.startswith(_OF_PARAMETERS)).astype(bool)
    elements = np.where(is_update, 0, map_categories(ops["input_shapes"], element_count, missing=0))
    if not device.height:
        is_op = (host["kind"] == "operator").to_numpy() & ~host["is_communication"].to_numpy()
        rows = np.flatnonzero(is_op)
        rows = rows[np.argsort(host["start_ns"].to_numpy()[rows], kind="stable")]
        start, threads, own = host["start_ns"].to_numpy()[rows], np.zeros(rows.size, np.int64), elements[rows]
    else:
        kernels = device.filter(kind="kernel", is_communication=False).sort("start_ns")
        start, sides = kernels["start_ns"].to_numpy(), [map_categories(kernels[s], _size) for s in ("grid", "block")]
        threads = sides[0].astype(np.int64) * sides[1].astype(np.int64)
        threads = np.where(threads.all(), np.minimum(threads, _MOST_THREADS), 0)
        own = gather(elements, kernels["op"].to_numpy(), missing=0)
    is_known = (own > 0).sum() >= _MOST * own.size
    return Work(
        _between(start, np.ones(start.size, np.int64), windows),
        _between(start, threads, windows),
        _between(start, own if is_known else np.zeros_like(own), windows),
    )


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
