"""Names that the profiler lost."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays.gather import map_categories
from ..trace import Diagnostic, Trace

_LOST = ("unknown", "")


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Rows of the host that are called `unknown`, or nothing."""
    frames = (trace.host_events, trace.python_calls)
    offsets = [f["offset"].to_numpy()[map_categories(f["name"], lambda n: n in _LOST, missing=True)] for f in frames]
    lost = np.concatenate(offsets)
    if lost.size:
        yield Diagnostic(
            "names_lost",
            int(lost.size),
            "The profiler wrote `unknown` or nothing instead of a name; since torch 2.7 it does so for each name with "
            "a character outside ASCII (kineto 7ae1ce85). Use plain letters in record_function and in names of files.",
            int(lost.min()),
        )
