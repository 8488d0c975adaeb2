"""The work of kernels whose only limit is memory, in each iteration: normalization, sampling, and others.

It is what *Operator efficiency* rates their operators by: the bytes that these must read and write at least.
"""

from __future__ import annotations

import numpy as np

from ...arrays.gather import NONE
from ...arrays.intervals import Ints
from ...trace.model import Trace
from ..calls.memory_calls import MemoryCalls
from .costs import families
from .iterations import Iterations
from .matmuls import WorkByShapes

MEMORY_BOUND = ("normalization", "sampling", "other")
"""Families of kernels that are of operators without matrices."""

_ROUNDED = 1e-6  # of a byte, or a ns: sums of floats


def memory_bound_work(trace: Trace, iterations: Iterations) -> dict[str, WorkByShapes]:
    """The known work of each of MEMORY_BOUND; the kernels of equal calls share it equally."""
    memory, size = MemoryCalls.of(trace), iterations.frame.height
    is_known = memory.call >= 0
    row, call = memory.kernels["row"].to_numpy()[is_known], memory.call[is_known]
    calls, moved_bytes, roof_ns = (memory.table[name].to_numpy() for name in ("calls", "work_bytes", "roof_ns"))
    kernels = np.maximum(np.bincount(call, minlength=calls.size), 1)
    amounts = (
        (calls * moved_bytes / kernels)[call],
        (roof_ns / kernels)[call],
        trace.device_events["dur_ns"].gather(row),
    )
    family, step = families(trace)[row], iterations.device[row]
    none = np.zeros(size, np.int64)
    works = {}
    for name in MEMORY_BOUND:
        counts = (family == name) & (step != NONE)
        bytes_sum, roof_sum, time_sum = (_sums(step[counts], np.asarray(amount)[counts], size) for amount in amounts)
        works[name] = WorkByShapes(none, bytes_sum, none, roof_sum, time_sum)
    return works


def _sums(step: Ints, amount: Ints, size: int) -> Ints:
    """The sum of each iteration, rounded up: less than 1 ns at the roof is no unknown time."""
    return np.asarray(np.ceil(np.bincount(step, amount, size) - _ROUNDED).astype(np.int64))
