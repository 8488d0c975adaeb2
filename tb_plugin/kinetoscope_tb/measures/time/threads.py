"""Which host thread does what: the main thread, and autograd's threads."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, scatter_add
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import is_operator, is_step, name_mask

_OF_ENGINE = ("autograd::engine::", "torch::autograd::AccumulateGrad")
"""How ranges of the engine begin; torch 1.8 has only the second."""


@once_per_recording
def main_thread(trace: Trace) -> int:
    """The row of `threads` on which the steps are marked; without steps, the one that computes and launches longest.

    Where neither operators nor launches were recorded, the thread with the longest host events; NONE if there is none.
    """
    host, calls = trace.host_events, trace.launches
    if is_step(trace).any():
        time_ns = _time_by_thread(trace, host, "dur_ns", is_step(trace))
    else:
        operator_ns = _time_by_thread(trace, host, "self_ns", is_operator(trace))
        time_ns = operator_ns + _time_by_thread(trace, calls, "dur_ns")
    if not time_ns.any():
        time_ns = _time_by_thread(trace, host, "self_ns")
    return int(time_ns.argmax()) if time_ns.any() else NONE


def _time_by_thread(
    trace: Trace, events: pl.DataFrame, column: str, mask: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """The time of all rows, or of those chosen, on each thread."""
    thread, time_ns = events["thread"].to_numpy(), events[column].to_numpy()
    if mask is not None:
        thread, time_ns = thread[mask], time_ns[mask]
    return scatter_add(thread, time_ns, trace.threads.height)


@once_per_recording
def autograd_threads(trace: Trace) -> NDArray[np.bool_]:
    """Which threads run backward operators of forward operators of other threads; nobody may change it."""
    host = trace.host_events
    is_autograd = np.zeros(trace.threads.height, bool)
    engine = name_mask(host["name"], lambda name: name.startswith(_OF_ENGINE))
    is_autograd[host["thread"].to_numpy()[engine | (host["fwd_thread"].to_numpy() > 0)]] = True
    is_autograd.flags.writeable = False
    return is_autograd
