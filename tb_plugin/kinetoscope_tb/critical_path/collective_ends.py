"""When collectives on threads of their own had ended, if DDP knew that earlier than the trace says.

gloo completes the future of a collective before it records that the collective has ended (AsyncWork in c10d's
ProcessGroupGloo.cpp). On a busy machine the thread that waits for the future takes the core, and the end is recorded
milliseconds late. DDP's reducer waits for all of its collectives before it copies what the last one has computed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather
from ..trace import Trace
from ..trace.row_filters import rows_where
from .boundaries import HostBoundaries, RangeBoundaries
from .collective_edges import calls_and_runs
from .thread_edges import WAKE_NS, busy_ranges

Rows = NDArray[np.int32]

_COPY = "torch.distributed.ddp.reducer::copy_bucket_to_grad"


def end_on_time(trace: Trace, boundaries: HostBoundaries, ranges: RangeBoundaries) -> None:
    """Let collectives end when the last pause before the reducer's last copy is over, if the trace says later."""
    copies = rows_where(trace.host_events, name=_COPY)
    if not copies.size:
        return
    thread, parent = (trace.host_events[name].to_numpy() for name in ("thread", "parent"))
    calls, runs = calls_and_runs(trace)
    runs = runs[~np.isin(runs, parent)]
    is_busy = np.append(busy_ranges(trace), np.False_)
    for number in np.unique(thread[copies]):
        begins = ranges.start[runs[thread[runs] != number]]
        copy_points, call_points = (ranges.start[rows[thread[rows] == number]] for rows in (copies, calls))
        last_copies = _last_of_each(copy_points, call_points)
        after_wait = _ends_of_pauses(boundaries, number, is_busy, last_copies)
        has_wait = after_wait != NONE
        _end_before(boundaries.time, begins, last_copies[has_wait], after_wait[has_wait])


def _last_of_each(copy_points: Rows, call_points: Rows) -> Rows:
    """Of the copies between two calls of a thread, the last ones; none before the first call."""
    group = np.searchsorted(np.sort(call_points), copy_points)
    is_last = np.append(group[1:] > group[:-1], np.True_) & (group > 0)
    return copy_points[is_last]


def _ends_of_pauses(boundaries: HostBoundaries, thread: int, is_busy: NDArray[np.bool_], points: Rows) -> Rows:
    """For each boundary of a thread the last one at which the thread continued after a pause, or NONE."""
    own = slice(boundaries.first[thread], boundaries.first[thread + 1])
    pauses = ~is_busy[boundaries.inner[own][:-1]] & (np.diff(boundaries.time[own]) > WAKE_NS)
    ends = np.flatnonzero(pauses) + 1 + own.start
    at = np.searchsorted(ends, points, "right").astype(np.int32) - np.int32(1)  # before all of them: NONE
    return gather(ends.astype(np.int32), at)


def _end_before(time: NDArray[np.int64], begins: Rows, copies: Rows, after_wait: Rows) -> None:
    """End what began before a wait, and ends after what shows that the wait was over, just before the wait was over.

    Args:
        time: Of each boundary; changed in place.
        begins: Where collectives begin: their ends are the next boundaries.
        copies: Where a thread makes its last copies.
        after_wait: Where it had continued after its last pause before each.
    """
    at = np.searchsorted(time[copies], time[begins])
    begins, at = begins[at < copies.size], at[at < copies.size]
    over = time[after_wait[at]] - 1
    is_late = (time[begins] < over) & (time[begins + 1] > time[copies[at]])
    time[begins[is_late] + 1] = over[is_late]
