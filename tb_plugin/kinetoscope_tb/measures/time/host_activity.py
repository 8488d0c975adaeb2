"""What the host did: the threads that launch device work, and when all or some of them wait for a device."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, Ints, exclusive_lengths, exclusive_sums, merge, union, without
from ...names.calls import may_wait, synchronizes
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import is_operator, is_step
from .breakdown import intervals_of, loading_ranges
from .threads import main_thread

ACTIVITY_WORDS = {
    "data loading": "Waiting for data",
    "synchronizing": "Host synchronizing",
    "runtime call": "Host in runtime calls",
    "operator": "Host in operators",
    "python": "Host in Python",
    "annotation": "Host in annotations",
    "nothing recorded": "Host, nothing recorded",
}
"""What people call each activity while the device waits for the host."""
HOST_ACTIVITIES = tuple(ACTIVITY_WORDS)
"""What the host did: of several at the same time, the first. Annotations come last: one around a whole iteration says
less than the functions in it."""


@once_per_recording
def launching_threads(trace: Trace) -> NDArray[np.bool_]:
    """Which threads launched any device row."""
    is_launching = np.zeros(trace.threads.height, bool)
    rows = trace.device_events["launch"].to_numpy()
    is_launching[trace.launches["thread"].to_numpy()[rows[rows != NONE]]] = True
    return is_launching


@once_per_recording
def host_threads(trace: Trace) -> NDArray[np.bool_]:
    """The threads whose activity says what the host did: those that launch; where none is known to, the main one."""
    are_meant = launching_threads(trace).copy()
    main = main_thread(trace)
    if not are_meant.any() and main != NONE:
        are_meant[main] = True
    return are_meant


def working_threads(trace: Trace) -> NDArray[np.bool_]:
    """Which threads make up a step: the main thread, and those that launched any device row."""
    is_working = launching_threads(trace).copy()
    is_working[main_thread(trace)] = True
    return is_working


@once_per_recording
def host_activities(trace: Trace) -> dict[str, Intervals]:
    """When the threads that launch device work, or the main one, do each of HOST_ACTIVITIES but the last.

    Overlaps are included.
    Only outermost ranges and frames are looked at: they cover what is in them.
    """
    are_meant = host_threads(trace)
    host, launches, python = trace.host_events, trace.launches, trace.python_calls
    on_host = are_meant[host["thread"].to_numpy()]
    on_calls = are_meant[launches["thread"].to_numpy()]
    loads = loading_ranges(trace)
    is_op = is_operator(trace)
    ranges = ~loads & ~is_step(trace)
    inner = gather(is_op & ranges, host["parent"].to_numpy(), missing=False)
    within = gather(ranges, host["parent"].to_numpy(), missing=False)
    waits = map_categories(launches["name"], synchronizes)
    outermost = are_meant[python["thread"].to_numpy()] & (python["parent"].to_numpy() == NONE)
    return {
        "data loading": intervals_of(host, on_host & loads),
        "synchronizing": intervals_of(launches, on_calls & waits),
        "runtime call": intervals_of(launches, on_calls & ~waits),
        "operator": intervals_of(host, on_host & is_op & ranges & ~inner),
        "python": intervals_of(python, outermost),
        "annotation": intervals_of(host, on_host & ~is_op & ranges & ~within),
    }


def host_activity(trace: Trace, gaps: pl.DataFrame) -> dict[str, Ints]:
    """How long the host did each of HOST_ACTIVITIES during each gap; each instant counts for the first that applies."""
    lengths = exclusive_lengths(_in_order(trace), gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy())
    return dict(zip(HOST_ACTIVITIES, map(np.asarray, lengths), strict=True))


def host_activity_ns(trace: Trace, spans: Intervals) -> Ints:
    """How long the host did each of HOST_ACTIVITIES during the spans of a union, in all."""
    return np.asarray(exclusive_sums(_in_order(trace), *spans, np.zeros(spans[0].size, np.int32), 1)[:, 0])


def _in_order(trace: Trace) -> list[Intervals]:
    active = host_activities(trace)
    return [active[name] for name in HOST_ACTIVITIES[:-1]]


@once_per_recording
def blocking_calls(trace: Trace) -> Intervals:
    """When a launching thread is in a call that waits for a device, or that copies memory and may wait for that."""
    launches = trace.launches
    waits = map_categories(launches["name"], may_wait)
    return intervals_of(launches, launching_threads(trace)[launches["thread"].to_numpy()] & waits)


@once_per_recording
def all_wait(trace: Trace, after_ns: int) -> Intervals:
    """When a launching thread is in a synchronizing call and no other launching thread does anything recorded.

    A call that has nothing to wait for takes a moment too: it counts from `after_ns` after its start on.
    """
    launches, host, python = trace.launches, trace.host_events, trace.python_calls
    waits = map_categories(launches["name"], synchronizes)
    wait_spans: list[Intervals] = []
    work_spans: list[Intervals] = []
    threads = np.flatnonzero(launching_threads(trace)).astype(np.int32)
    for on_host, on_calls, on_python in zip(
        *(_thread_slices(frame, threads) for frame in (host, launches, python)), strict=True
    ):
        start, end = intervals_of(launches[on_calls], waits[on_calls])
        outermost = [intervals_of(f, f["parent"].to_numpy() == NONE) for f in (host[on_host], python[on_python])]
        wait_spans.append(union(start + after_ns, end))
        work_spans.append(without(merge([*outermost, intervals_of(launches[on_calls])]), (start, end)))
    return without(merge(wait_spans), merge(work_spans))


def _thread_slices(frame: pl.DataFrame, threads: NDArray[np.int32]) -> list[slice]:
    """Where the rows of each thread are, in a frame in the order of threads."""
    of = frame["thread"].to_numpy()
    return list(map(slice, np.searchsorted(of, threads), np.searchsorted(of, threads, "right")))
