"""Names that the profiler lost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays.gather import map_categories
from ..trace import Diagnostic, Trace

_LOST = ("unknown", "")


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Events with the name `unknown`, or an empty one."""
    frames = (trace.host_events, trace.python_calls, trace.device_events)
    offsets = [f["offset"].to_numpy()[map_categories(f["name"], lambda n: n in _LOST, missing=True)] for f in frames]
    lost = np.concatenate(offsets)
    if lost.size:
        yield Diagnostic(
            "names_lost",
            int(lost.size),
            "The profiler wrote `unknown` or nothing instead of a name; since torch 2.7 it does so for every name with "
            "a non-ASCII character (kineto 7ae1ce85). Use ASCII in record_function and in file names.",
            int(lost.min()),
        )
