"""Calls in which the main thread waits for the workers of a DataLoader: they deliver batches at their own rate.

Workers fetch ahead, so the main thread waits in (nearly) every step only if they take longer for a batch than it takes
for a step. Then a batch comes when it comes, and whatever the main thread does faster makes it wait longer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import map_categories
from ...arrays.intervals import length_within
from ...names.kernels import loads_by_workers
from ...names.python_frames import is_wait
from ...trace import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import name_mask
from .breakdown import intervals_of
from .threads import main_thread

_FEWEST = 3
_NEARLY_ALL = 0.8  # of the calls since the first wait: before it, workers had fetched ahead
_MOST = 0.5  # of all calls, or of the time of a call
_MUCH = 0.05  # of the time from one call to the next, if stacks show that a call waits
_VERY_MUCH = 0.2  # of that time without stacks, and no operator meanwhile: a call that doesn't wait is done sooner


@once_per_recording
def worker_waits(trace: Trace) -> NDArray[np.integer]:
    """The calls (rows of host_events, by time) that wait for workers; none if the main thread rarely waits for them."""
    host, thread = trace.host_events, main_thread(trace)
    is_call = name_mask(host["name"], loads_by_workers) & (host["thread"] == thread).to_numpy()
    rows = np.flatnonzero(is_call)
    start, dur = host["start_ns"].to_numpy()[rows], host["dur_ns"].to_numpy()[rows]
    order = np.argsort(start, kind="stable")
    rows, start, dur = rows[order], start[order], dur[order]
    if rows.size < _FEWEST:
        return rows[:0]
    python, least_ns = trace.python_calls, _VERY_MUCH * float(np.median(np.diff(start)))
    wait_ns = host["self_ns"].to_numpy()[rows]
    if not python.is_empty():
        on_thread = (python["thread"] == thread).to_numpy()
        waits = intervals_of(python, on_thread & map_categories(python["name"], is_wait))
        wait_ns, least_ns = length_within(waits, start, start + dur), least_ns * _MUCH / _VERY_MUCH
    is_wait_call = (wait_ns >= least_ns) & (wait_ns >= _MOST * dur) & (dur > 0)
    since = int(is_wait_call.argmax())
    is_steady = is_wait_call[since:].mean() >= _NEARLY_ALL and is_wait_call.mean() >= _MOST
    return rows[is_wait_call] if is_steady and is_wait_call.sum() >= _FEWEST else rows[:0]
