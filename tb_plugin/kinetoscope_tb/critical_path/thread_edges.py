"""Waits between threads; traces don't record them, so they are inferred from what threads do and when.

* A quiet thread begins work when another one hands it over: a communicating thread, when another thread began a
  collective (c10d); any other thread, when the main thread reached its current boundary.
* A thread resumes when another one has finished: the main thread after the whole backward pass, which runs on an
  autograd thread; any thread at most WAKE_NS after another thread's communication, if it was quiet meanwhile.

A call that returns a batch waits for the workers of a DataLoader, which take their own time from one batch to the next.

Nothing else counts as a wait: threads that watch or log (NCCL's watchdog queries events all the time) end something
whenever another one begins something.

A thread is *quiet* while no operator, no call and no data loading is open on it. Python alone is quiet too: it may run
or wait, and only what follows shows which.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather
from ..arrays.native import Array, Function
from ..arrays.nesting import nearest
from ..measures.time.breakdown import loading_ranges
from ..measures.time.threads import autograd_threads, main_thread
from ..measures.time.worker_waits import worker_waits
from ..trace import Trace
from ..trace.row_filters import is_operator
from .boundaries import HostBoundaries, RangeBoundaries

_find_last_elsewhere = Function("last_elsewhere")
_find_last_end_before = Function("last_end_before")

Rows = NDArray[np.int32]
Bools = NDArray[np.bool_]

WAKE_NS = 100_000
"""The longest delay until a thread resumes after what it waited for: after 45 of the 48 collectives in our samples the
next operator or annotation of the main thread begins or ends within 57 µs."""
IDLE_NS = 20_000
"""A shorter pause of a thread doesn't mean that it waited for work."""


def busy_ranges(trace: Trace) -> Bools:
    """For each range, whether a thread is busy, not quiet, while it is the innermost range."""
    host = trace.host_events
    works = is_operator(trace) | loading_ranges(trace)
    works |= host["is_communication"].to_numpy()
    within = nearest(works, host["parent"].to_numpy()) >= 0
    return np.concatenate([within, np.ones(trace.launches.height, bool)])


def works_after(trace: Trace, boundaries: HostBoundaries) -> Bools:
    """For each boundary, whether its thread is busy after it."""
    return gather(busy_ranges(trace), boundaries.inner, missing=False)


def fork_edges(trace: Trace, boundaries: HostBoundaries, is_work: Bools) -> tuple[Rows, Rows]:
    """Boundaries at which a thread begins work from another thread, and the boundaries of those threads.

    `is_work`: works_after each.
    """
    main, first = main_thread(trace), boundaries.first_of_threads
    starts_work = is_work.copy()
    starts_work[1:] &= ~is_work[:-1]
    starts_work[first] = False
    idle = np.flatnonzero(starts_work)
    idle = idle[boundaries.time[idle] - boundaries.time[idle - 1] > IDLE_NS]
    begins = np.concatenate([idle, first])
    begins = begins[boundaries.thread_of(begins) != main]
    from_main = boundaries.last_before(np.full(begins.size, main, np.int32), boundaries.time[begins])
    communication = _communications_begun(trace, boundaries, begins)
    return begins.astype(np.int32), np.where(communication >= 0, communication, from_main)


def _communications_begun(trace: Trace, boundaries: HostBoundaries, begins: NDArray[np.int64]) -> Rows:
    """For each boundary that begins a communication, the last boundary of the thread that began one last, or NONE."""
    host = trace.host_events
    communicates = host["is_communication"].to_numpy()
    rows = np.flatnonzero(communicates)
    at = host["start_ns"].to_numpy()[rows]
    order = np.argsort(at, kind="stable")
    rows, at = rows[order], at[order]
    inner = boundaries.inner[begins]
    is_one = np.append(communicates, np.zeros(trace.launches.height + 1, bool))[inner]
    thread = host["thread"].to_numpy()[rows]
    starter = _last_elsewhere(at, thread, boundaries.time[begins], boundaries.thread_of(begins))
    starter = np.where(is_one, starter, NONE)
    return boundaries.last_before(starter, boundaries.time[begins])


def join_edges(trace: Trace, boundaries: HostBoundaries, ranges: RangeBoundaries, is_work: Bools) -> tuple[Rows, Rows]:
    """Boundaries at which a thread resumes, and the boundaries of other threads at which its wait was over.

    `is_work`: works_after each.
    """
    host = trace.host_events
    is_quiet_before = np.ones_like(is_work)
    is_quiet_before[1:] = ~is_work[:-1]
    is_quiet_before[boundaries.first_of_threads] = False
    resumes = np.flatnonzero(is_quiet_before)
    is_backward, over = autograd_threads(trace), _ends_of_work(boundaries, is_work)
    communicates = host["is_communication"].to_numpy()
    over = np.union1d(over[is_backward[boundaries.thread_of(over)]], ranges.end[np.flatnonzero(communicates)])
    over = over[np.argsort(boundaries.time[over], kind="stable")]
    ends = _last_end_before(boundaries, resumes, over, is_backward, main_thread(trace), WAKE_NS)
    real = ends >= 0
    return resumes[real].astype(np.int32), ends[real]


def _ends_of_work(boundaries: HostBoundaries, is_work: Bools) -> NDArray[np.int64]:
    """The boundaries at which a thread's work ends, and it is quiet for IDLE_NS or for good."""
    ends = ~is_work
    ends[1:] &= is_work[:-1]
    ends[:1] = False
    at = np.flatnonzero(ends)
    next_point = np.minimum(at + 1, boundaries.time.size - 1)
    is_last = (next_point == at) | (boundaries.thread_of(next_point) != boundaries.thread_of(at))
    rests = is_last | (boundaries.time[next_point] - boundaries.time[at] > IDLE_NS)
    points: NDArray[np.int64] = at[rests]
    return points


def _last_elsewhere(at: Array, thread: Array, when: Array, own: Array) -> Array:
    """For each instant the thread, other than its own, of the last of `at` (sorted) that is no later, or -1."""
    threads = np.empty(when.size, np.int32)
    _find_last_elsewhere(at, thread, when, own, np.empty(at.size, np.int32), threads)
    return threads


def _last_end_before(
    boundaries: HostBoundaries, resumes: Array, over: Array, is_backward: Array, main: int, wake_ns: int
) -> Array:
    """For each boundary that ends a quiet period, the last end of work on another thread in that period, or -1."""
    ends = np.empty(resumes.size, np.int32)
    _find_last_end_before(boundaries.time, boundaries.first, resumes, over, is_backward, main, wake_ns, ends)
    return ends


def loader_edges(trace: Trace, ranges: RangeBoundaries) -> tuple[Rows, Rows]:
    """Boundaries at which a wait for a batch ends, and those at which it began."""
    calls = worker_waits(trace)
    return ranges.end[calls], ranges.start[calls]
