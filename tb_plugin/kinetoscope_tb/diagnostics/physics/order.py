"""Streams that run their work in another order than it was launched in.

A stream is a queue: of two calls, the first of which returned before the second began, the first one's work starts
first, whatever threads they were made on.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...names import text
from ...trace import Diagnostic
from ...trace.model import Fault
from . import limits
from .times import Times

_AGAIN = "Record again; if it stays so, with a newer driver and profiler library."


def diagnose(times: Times) -> Iterator[Diagnostic]:
    """Rows that start before what their stream was given earlier."""
    least = np.iinfo(np.int64).min
    earliest = np.full(times.start.size, least)
    for queue in times.queues:
        rows = queue[times.is_linked[queue]]
        by_return = rows[np.argsort(times.returned[rows], kind="stable")]
        latest = np.append(least, np.maximum.accumulate(times.start[by_return]))
        earliest[rows] = latest[np.searchsorted(times.returned[by_return], times.called[rows])]
    is_early = earliest > times.start + limits.JITTER_NS
    if not is_early.any():
        return
    count, n_linked = int(is_early.sum()), int(times.is_linked.sum())
    most = int((earliest - times.start)[is_early].max())
    fact = (
        f"{count} of {n_linked} GPU events start up to {text.time(most)} before work that their stream was given first"
    )
    yield Diagnostic(
        "stream_out_of_order",
        count,
        f"{fact}. A stream is a queue, so times are wrong, or events are linked to other calls than launched them; "
        f"launch delays, causes of idle time and times of operators are wrong by that. {_AGAIN}",
        times.first_offset(is_early),
        fault=Fault(
            fact,
            frozenset({"launches", "clock"}),
            _AGAIN,
            times.within_steps(times.start[is_early], earliest[is_early]),
        ),
    )
