"""When a server has nothing to run: the threads that run iterations wait for a message, and no other thread works.

What they wait for in a queue or on a socket is a request, or what another process sends. If a recorded thread of the
same process works meanwhile, it may be what they wait for, so that is no such time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, Ints, length_within, merge, without
from ...arrays.nesting import nearest
from ...names.python_frames import awaits_message, is_of_library, is_wait
from ...names.server_work import server_work
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import is_operator
from ..time.breakdown import intervals_of
from ..time.host_activity import launching_threads
from .iterations import Iterations, server_iterations


def server_threads(trace: Trace, of_trace: Iterations) -> NDArray[np.bool_]:
    """Which threads run iterations or launch device work."""
    threads = launching_threads(trace).copy()
    if of_trace.frame.height:
        threads[of_trace.frame["thread"][0]] = True
    return threads


@once_per_recording
def request_waits(trace: Trace) -> Intervals:
    """When these threads wait for a request, or for another process; a union."""
    threads, host, python = server_threads(trace, server_iterations(trace)), trace.host_events, trace.python_calls
    on_host, on_python = (threads[frame["thread"].to_numpy()] for frame in (host, python))
    by_range = map_categories(host["name"], lambda name: server_work(name) == "waiting")
    of_server = merge([intervals_of(host, on_host & by_range), _waiting_functions(trace, on_python)])
    awaits = intervals_of(python, on_python & map_categories(python["name"], awaits_message))
    return merge([of_server, without(awaits, _work(trace))]) if awaits[0].size else of_server


def _waiting_functions(trace: Trace, on_python: NDArray[np.bool_]) -> Intervals:
    """When threads are in a function in which a server waits, but for what other functions of the program do in it.

    Such a function may also take in what it waited for.
    """
    python = trace.python_calls
    parent = python["parent"].to_numpy()
    waits, is_message, is_library = (
        map_categories(python["name"], answer) & on_python
        for answer in (lambda name: server_work(name) == "waiting", _is_wait_or_collective, is_of_library)
    )
    is_other = on_python & ~is_library & ~waits
    around = gather(nearest(waits | is_other, parent), parent)
    does = intervals_of(python, is_other & gather(waits, around, missing=False))
    is_inner = waits & (gather(nearest(waits, parent), parent) != NONE) & gather(is_other, around, missing=False)
    waits_inside = intervals_of(python, is_message | is_inner)
    return without(intervals_of(python, waits), without(does, waits_inside))


def _is_wait_or_collective(frame: str) -> bool:
    return is_wait(frame) or awaits_message(frame) or frame.startswith("torch/distributed/")


def waiting_times(trace: Trace, start: Ints, end: Ints) -> Ints:
    """How long no device of the worker runs anything in each window while a server waits for requests."""
    idle = without(request_waits(trace), intervals_of(trace.device_events))
    lengths: Ints = np.asarray(length_within(idle, start, end))
    return lengths


def _work(trace: Trace) -> Intervals:
    """When any thread runs Python that doesn't wait, an operator or a call of the runtime."""
    host, python = trace.host_events, trace.python_calls
    waits = map_categories(python["name"], lambda name: is_wait(name) or awaits_message(name))
    is_outermost, thread = python["parent"].to_numpy() == NONE, python["thread"].to_numpy()
    is_on = [thread == number for number in np.unique(thread)]
    of_threads = [without(intervals_of(python, on & is_outermost), intervals_of(python, on & waits)) for on in is_on]
    operators = intervals_of(host, is_operator(trace))
    return merge([*of_threads, operators, intervals_of(trace.launches)])
