"""Which host thread does what: the main thread, and autograd's threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, map_categories
from ...names.kernels import step_number
from ...trace.model import Trace


def main_thread(trace: Trace) -> int:
    """The thread that runs the steps, or the one with the longest ranges; NONE if there is no host thread."""
    host, calls = trace.host_events, trace.launches
    is_step = map_categories(host["name"], lambda name: step_number(name) is not None).astype(bool)
    thread = host["thread"].to_numpy()
    if is_step.any():
        return int(np.bincount(thread[is_step]).argmax())
    spent = np.zeros(trace.threads.height, np.int64)
    np.add.at(spent, calls["thread"].to_numpy(), calls["dur_ns"].to_numpy())
    outer = host["depth"].to_numpy() == 0
    np.add.at(spent, thread[outer], host["dur_ns"].to_numpy()[outer])
    return int(spent.argmax()) if spent.any() else NONE


def autograd_threads(trace: Trace) -> NDArray[np.bool_]:
    """Which threads run backward operators of forward operators of other threads."""
    host = trace.host_events
    is_autograd = np.zeros(trace.threads.height, bool)
    engine = map_categories(host["name"], lambda name: name.startswith("autograd::engine::")).astype(bool)
    is_autograd[host["thread"].to_numpy()[engine | (host["fwd_thread"].to_numpy() > 0)]] = True
    return is_autograd
