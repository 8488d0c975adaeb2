"""Links between slices as the arrows of Chrome's JSON, many at once: named and bound as kineto's are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...measures.calls.backward import forward_ops
from ...timeline.core.model import Timeline
from ...trace import Trace
from .events import Texts, events

_AT_ONCE = 1 << 16
Slices = NDArray[np.int32]


def arrows(
    trace: Trace, timeline: Timeline, threads: tuple[Slices, Texts], numbers: Iterator[int], shift_ns: int
) -> Iterator[bytes]:
    """All links whose both ends are written.

    Args:
        trace: The trace.
        timeline: Its slices.
        threads: The thread of each slice, or -1 if it isn't written; the members that place an event on each thread.
        numbers: Source of the arrows' ids.
        shift_ns: From the trace's times to the file's.
    """
    for name, begin, end in _links(trace, timeline):
        rows = np.flatnonzero((begin >= 0) & (end >= 0) & (threads[0][begin] >= 0) & (threads[0][end] >= 0))
        for first in range(0, rows.size, _AT_ONCE):
            batch = rows[first : first + _AT_ONCE]
            number = pl.Series(list(islice(numbers, batch.size)), dtype=pl.Int64).cast(pl.String)
            identity = Texts.of_series((f',"name":"{name}","id":' + number).rename("id"))
            for head, slices in ((',\n{"ph":"s"', begin[batch]), (',\n{"ph":"f","bp":"e"', end[batch])):
                texts = (Texts.of([f'{head},"cat":"{name}"']), identity, threads[1], Texts.of(["}"]))
                same, at = np.zeros(batch.size, np.int64), timeline.start_ns[slices] + shift_ns
                codes = (same, np.arange(batch.size), threads[0][slices], same)
                yield events(texts, codes, np.array([True]), (at, same))


def _links(trace: Trace, timeline: Timeline) -> Iterator[tuple[str, Slices, Slices]]:
    """(kineto's name, from which slices, to which slices), -1 where there is none."""
    work = np.arange(trace.device_events.height)
    launch = trace.device_events["launch"].to_numpy()
    yield "ac2g", timeline.slices_of("launches", launch), timeline.slices_of("device_events", work)
    ops, forward = np.arange(trace.host_events.height), forward_ops(trace)
    yield "fwdbwd", timeline.slices_of("host_events", forward), timeline.slices_of("host_events", ops)
