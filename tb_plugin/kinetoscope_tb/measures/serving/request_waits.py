"""When a server has nothing to run: the threads that run iterations wait for a message, and no other thread works.

What they wait for in a queue or on a socket is a request, or what another process sends. If a recorded thread of the
same process works meanwhile, it may be what they wait for, so that is no such time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, map_categories
from ...arrays.intervals import Intervals, Ints, length_within, merge, without
from ...names.python_frames import awaits_message, is_wait
from ...names.server_work import server_work
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ..time.breakdown import intervals_of
from ..time.host_activity import launching_threads
from .iterations import Iterations, iterations


def server_threads(trace: Trace, made: Iterations) -> NDArray[np.bool_]:
    """Which threads run iterations or launch device work."""
    threads = launching_threads(trace).copy()
    if made.frame.height:
        threads[made.frame["thread"][0]] = True
    return threads


@once_per_recording
def request_waits(trace: Trace) -> Intervals:
    """When these threads wait for a request, or for another process; a union."""
    threads, host, python = server_threads(trace, iterations(trace)), trace.host_events, trace.python_calls
    on_host, on_python = (threads[frame["thread"].to_numpy()] for frame in (host, python))
    by_range, by_frame = (
        map_categories(frame["name"], lambda name: server_work(name) == "waiting") for frame in (host, python)
    )
    of_server = merge([intervals_of(host, on_host & by_range), intervals_of(python, on_python & by_frame)])
    awaits = intervals_of(python, on_python & map_categories(python["name"], awaits_message))
    return merge([of_server, without(awaits, _working(trace))]) if awaits[0].size else of_server


def waiting_times(trace: Trace, start: Ints, end: Ints) -> Ints:
    """How long no device of the worker runs anything in each window while a server waits for requests."""
    idle = without(request_waits(trace), intervals_of(trace.device_events))
    lengths: Ints = np.asarray(length_within(idle, start, end))
    return lengths


def _working(trace: Trace) -> Intervals:
    """When any thread runs Python that doesn't wait, an operator or a call of the runtime."""
    host, python = trace.host_events, trace.python_calls
    waits = map_categories(python["name"], lambda name: is_wait(name) or awaits_message(name))
    is_outermost, thread = python["parent"].to_numpy() == NONE, python["thread"].to_numpy()
    is_on = [thread == number for number in np.unique(thread)]
    of_threads = [without(intervals_of(python, on & is_outermost), intervals_of(python, on & waits)) for on in is_on]
    operators = intervals_of(host, (host["kind"] == "operator").to_numpy())
    return merge([*of_threads, operators, intervals_of(trace.launches)])
