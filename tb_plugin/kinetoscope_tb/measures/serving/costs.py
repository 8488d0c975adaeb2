"""What iterations cost: device time, idle time by cause, families of kernels, and what the host does between them."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, map_categories, scatter_add
from ...arrays.intervals import Intervals, Ints, exclusive_lengths, length_within, merge, union
from ...names.kernel_families import FAMILIES, kernel_family
from ...names.server_work import WORK, server_work
from ...trace.model import Trace
from ...trace.row_filters import is_operator
from ..calls.waiting_calls import waits_for_devices
from ..time.breakdown import intervals_of
from ..time.idle import Windows
from ..time.idle_causes import CAUSES, NOT_SHOWN, gap_parts
from .iterations import Iterations
from .request_waits import request_waits, server_threads

DEVICE_WORK = (*FAMILIES, "copy")
"""What a device does: families of kernels, and copies and fills."""
QUEUED, LAUNCHING = "queued", "operators and launches"
_LAUNCHING = ["launch latency", "graph launch"]
_QUEUED = [cause for cause in CAUSES if cause not in ("host late", NOT_SHOWN, *_LAUNCHING)]
HOST_CAUSES = ("synchronizing", *WORK, LAUNCHING, "other", "unrecorded")
"""What the host of a server does: it waits for the device; the work of names/server_work.py; it is in operators and
calls that launch work; in other Python or annotated code; nothing was recorded."""
IDLE_CAUSES = (NOT_SHOWN, QUEUED, *HOST_CAUSES)
"""Why no device runs anything: it may, with what wasn't recorded; work is queued, and waits for another stream or for
no recorded reason; or nothing is queued, and the host does one of HOST_CAUSES."""


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
    is_cause = {cause: map_categories(gaps["cause"], partial(str.__eq__, cause)) for cause in CAUSES}
    return {cause: scatter_add(np.where(which, window, NONE), length, start.size) for cause, which in is_cause.items()}


def family_times(trace: Trace, iterations: Iterations, counts: NDArray[np.bool_] | None = None) -> dict[str, Ints]:
    """The sum of the durations of each iteration's device work, by DEVICE_WORK; of the device rows that count."""
    family, size = families(trace), iterations.frame.height
    duration = trace.device_events["dur_ns"].to_numpy()
    device = iterations.device if counts is None else np.where(counts, iterations.device, NONE)
    return {name: scatter_add(np.where(family == name, device, NONE), duration, size) for name in DEVICE_WORK}


def families(trace: Trace) -> NDArray[np.str_]:
    """Which of DEVICE_WORK each device row is."""
    device = trace.device_events
    family = map_categories(device["name"], kernel_family, missing="other")
    family = np.where((device["kind"] == "kernel").to_numpy(), family, "copy")
    return np.where(device["is_communication"].to_numpy(), "communication", family)


def host_causes(trace: Trace, iterations: Iterations, start: Ints, end: Ints) -> dict[str, Ints]:
    """What the host does in each window (HOST_CAUSES), each instant counted for the first that applies."""
    work = _host_work(trace, iterations)
    lengths = exclusive_lengths([work[cause] for cause in HOST_CAUSES[:-1]], start, end)
    return dict(zip(HOST_CAUSES, map(np.asarray, lengths), strict=True))


def gap_causes(trace: Trace, iterations: Iterations) -> dict[str, Ints]:
    """What the host does between each iteration's window and the next one; adds up to that time."""
    return host_causes(trace, iterations, iterations.frame["end_ns"].to_numpy(), iterations.frame["next_ns"].to_numpy())


def idle_causes(trace: Trace, iterations: Iterations) -> dict[str, Ints]:
    """The idle time of each cycle by IDLE_CAUSES; no device of the worker runs anything then.

    What the host does counts only while nothing is queued for the device (`host late`), and launching until what was
    launched begins.
    """
    start, end = (iterations.frame[name].to_numpy() for name in ("start_ns", "next_ns"))
    if not start.size or trace.device_events.is_empty():
        none = np.zeros(start.size, np.int64)
        return {cause: end - start if cause == NOT_SHOWN else none for cause in IDLE_CAUSES}
    parts = gap_parts(trace, "worker", Windows(list(map(str, range(start.size))), start, end))
    late = parts.filter(pl.col("cause") == "host late")
    work = _host_work(trace, iterations)
    groups = [work[cause] for cause in HOST_CAUSES[:-1]]
    by_host = exclusive_lengths(groups, late["start_ns"].to_numpy(), late["end_ns"].to_numpy())
    sums = {
        cause: scatter_add(late["window"].to_numpy(), np.asarray(lengths), start.size)
        for cause, lengths in zip(HOST_CAUSES, by_host, strict=True)
    }
    for cause, names in ((NOT_SHOWN, [NOT_SHOWN]), (QUEUED, _QUEUED), (LAUNCHING, _LAUNCHING)):
        rows = parts.filter(pl.col("cause").is_in(names))
        length = (rows["end_ns"] - rows["start_ns"]).to_numpy()
        sums[cause] = sums.get(cause, 0) + scatter_add(rows["window"].to_numpy(), length, start.size)
    return {cause: sums[cause] for cause in IDLE_CAUSES}


def busy_families(trace: Trace, start: Ints, end: Ints) -> dict[str, Ints]:
    """The busy time of each window by DEVICE_WORK, each instant counted once; communication where nothing else runs."""
    device = trace.device_events
    family = families(trace)
    order = [name for name in DEVICE_WORK if name != "communication"] + ["communication"]
    lengths = exclusive_lengths([intervals_of(device, family == name) for name in order], start, end)
    return dict(zip(order, map(np.asarray, lengths), strict=False))


def _host_work(trace: Trace, iterations: Iterations) -> dict[str, Intervals]:
    """When the threads that run iterations or launch device work do each of HOST_CAUSES but the last."""
    is_server_thread = server_threads(trace, iterations)
    host, launches, python = trace.host_events, trace.launches, trace.python_calls
    on_host, on_calls, on_python = (is_server_thread[frame["thread"].to_numpy()] for frame in (host, launches, python))
    waits = waits_for_devices(trace)
    is_op = is_operator(trace)
    work_times = {
        work: merge(
            [
                intervals_of(frame, on_threads & map_categories(frame["name"], partial(_is_work, work)))
                for frame, on_threads in ((host, on_host), (python, on_python))
            ]
        )
        for work in WORK
    }
    work_times["waiting"] = request_waits(trace)
    return {
        "synchronizing": intervals_of(launches, on_calls & waits),
        **work_times,
        LAUNCHING: merge([intervals_of(launches, on_calls & ~waits), intervals_of(host, on_host & is_op)]),
        "other": merge([intervals_of(python, on_python), intervals_of(host, on_host & ~is_op)]),
    }


def _is_work(work: str, name: str) -> bool:
    return server_work(name) == work
