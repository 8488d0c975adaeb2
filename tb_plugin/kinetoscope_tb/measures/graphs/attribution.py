"""How the operator of each kernel is known: its launch was recorded, or it comes from the capture of its graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...arrays.nesting import nearest
from ...trace.model import Trace
from ...trace.row_filters import Events

SOURCES = ("recorded", "capture", "eager")
"""How an operator of a replayed kernel is known: from a capture in the same recording, from another recording, from
the same kernels launched one by one."""

RECORDED = "recorded"
"""Provenance of an operator whose own launch was recorded."""


def provenance(trace: Trace) -> pl.Series:
    """How the operator of each device row is known (SOURCES); null: it isn't."""
    of_row = np.where(trace.device_events["op"].to_numpy() >= 0, SOURCES.index(RECORDED), NONE)
    if trace.replayed is not None:
        of_row = np.where(
            trace.replayed.innermost >= 0, gather(trace.replayed.origin, trace.replayed.innermost), of_row
        )
    return pl.Series("provenance", SOURCES, dtype=pl.Enum(SOURCES)).gather(pl.Series(of_row).replace(NONE, None))


def provenance_doc(what: str) -> str:
    """The definition of a column with the provenance of device time."""
    return (
        f"How the {what} of the device time is known: recorded (its launch is in this recording, or the capture of its "
        "graph); capture (another recording launched the same kernels in the same order); eager (this recording ran "
        "the same kernels without a graph). Missing without device time, or if it isn't known."
    )


def joined_sources(is_of: Sequence[NDArray[np.bool_]]) -> pl.Series:
    """SOURCES with commas, by whether each group has rows of each; null: of none."""
    order = sorted(range(len(SOURCES)), key=lambda source: SOURCES[source], reverse=True)
    frame = pl.DataFrame({SOURCES[source]: is_of[source] for source in order})
    names = [pl.when(name).then(pl.lit(name)) for name in frame.columns]
    return frame.select(pl.concat_str(names, separator=", ", ignore_nulls=True).replace("", None)).to_series()


def provenance_of_calls(trace: Trace) -> pl.Series:
    """How each row of all_host_events is known (SOURCES)."""
    replayed_calls = trace.replayed
    of_row = np.full(trace.all_host_events.height, SOURCES.index(RECORDED))
    if replayed_calls is not None:
        of_row[trace.host_events.height :] = replayed_calls.origin[~replayed_calls.is_module]
    return pl.Series("provenance", SOURCES, dtype=pl.Enum(SOURCES)).gather(pl.Series(of_row))


def recorded_events(trace: Trace, events: Events) -> Events:
    """Events as recorded rows: those of all_host_events and all_python_calls, and what replayed ones ran on devices."""
    replayed_calls = trace.replayed
    if replayed_calls is None:
        return events
    first = {name: getattr(trace, name).height for name in ("host_events", "python_calls")}
    is_included = np.zeros(replayed_calls.parent.size, bool)
    for frame, is_so in (("host_events", ~replayed_calls.is_module), ("python_calls", replayed_calls.is_module)):
        rows = np.asarray(events.get(frame, []), np.int64)
        is_included[np.flatnonzero(is_so)[rows[rows >= first[frame]] - first[frame]]] = True
    ran = np.flatnonzero(gather(nearest(is_included, replayed_calls.parent), replayed_calls.innermost) >= 0)
    recorded_rows = {name: rows[rows < first[name]] if name in first else rows for name, rows in events.items()}
    return {**recorded_rows, "device_events": np.union1d(recorded_rows.get("device_events", ran[:0]), ran)}
