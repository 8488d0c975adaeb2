"""Which Python call a stretch of a thread's time lies in, where Python was recorded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import gather
from ..arrays.nesting import innermost
from ..trace import Trace

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]


def python_around(trace: Trace, thread: Rows, start: Ints, end: Ints) -> Rows:
    """The innermost Python call that lasts all of each stretch on its thread: a row of python_calls, or NONE."""
    calls = trace.python_calls
    of = calls["thread"].to_numpy(), calls["start_ns"].to_numpy()
    ends = of[1] + calls["dur_ns"].to_numpy()
    order = np.lexsort((start, thread))
    found = np.empty(thread.size, np.int32)
    found[order] = innermost(*of, ends, thread[order], start[order])
    parent = calls["parent"].to_numpy()
    while (ends_early := (found >= 0) & (gather(ends, found) < end)).any():
        found[ends_early] = parent[found[ends_early]]
    return found
