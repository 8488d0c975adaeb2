"""Threads that wait for a collective that they began and that runs on a thread of its own, as gloo's do.

Traces don't record such a wait. It is inferred if a thread did nothing from the end of its call (c10d's operator) until
after the end of that collective, and continued soon after that: at most RETURN_NS, and no longer than it had been quiet
until then. A thread that computes in Python meanwhile rarely continues just then.

The collective of a call is the last one of its kind that began before the thread continued, and not before the call.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import gather, map_categories
from ..arrays.nesting import nearest
from ..names.collectives import kind_of
from ..trace import Trace
from ..trace.row_filters import is_operator
from .boundaries import HostBoundaries, RangeBoundaries

Rows = NDArray[np.int32]

RETURN_NS = 500_000
"""The longest time from the end of a collective until its caller's next operator or annotation begins or ends: Python's
wrappers run in between, at most 280 µs in our recordings."""


def collective_edges(trace: Trace, boundaries: HostBoundaries, ranges: RangeBoundaries) -> tuple[Rows, Rows]:
    """Boundaries at which a thread continues after its own collective, and those at which the collective ended."""
    host = trace.host_events
    call, run = calls_and_runs(trace)
    start, kind = host["start_ns"].to_numpy(), map_categories(host["name"][call], kind_of, missing="")
    run = run[np.argsort(start[run], kind="stable")]
    kind_of_run = map_categories(host["name"][run], kind_of, missing="")
    resumes, ends = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for run_kind in np.unique(kind_of_run):
        calls, runs = call[kind == run_kind], run[kind_of_run == run_kind]
        over = ranges.end[calls]
        continues = over + 1 < boundaries.first[boundaries.thread_of(over) + 1]
        calls, resume = calls[continues], over[continues] + 1
        since, until = boundaries.time[resume - 1], boundaries.time[resume]
        last = np.searchsorted(start[runs], until, "right") - 1
        end = ranges.end[runs[np.maximum(last, 0)]]
        quiet, after = boundaries.time[end] - since, until - boundaries.time[end]
        waits = (last >= 0) & (start[runs[last]] >= start[calls])
        waits &= (quiet > 0) & (after >= 0) & (after <= np.minimum(quiet, RETURN_NS))
        resumes.append(resume[waits])
        ends.append(end[waits])
    return np.concatenate(resumes), np.concatenate(ends)


def calls_and_runs(trace: Trace) -> tuple[Rows, Rows]:
    """The outermost operators that begin collectives, and the ranges of collectives on threads that begin none."""
    host = trace.host_events
    communicates, parent = host["is_communication"].to_numpy(), host["parent"].to_numpy()
    is_inside = gather(nearest(communicates, parent), parent) >= 0
    is_op = is_operator(trace)
    begins = np.zeros(trace.threads.height, bool)
    begins[host["thread"].to_numpy()[communicates & is_op]] = True
    alone = np.flatnonzero(communicates & ~is_inside).astype(np.int32)
    is_run = ~is_op[alone] & ~begins[host["thread"].to_numpy()[alone]]
    return alone[is_op[alone]], alone[is_run]
