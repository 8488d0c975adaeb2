"""Ranges written as two events, begin (phase B) and end (E): kineto never writes them, other tools do.

A begin event becomes a complete event of its category. An end event closes the latest open begin event of its thread,
in order of time; the arguments of the end event are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.native import Function
from ...trace.model import Diagnostic
from ..scan.rows import OPEN, Sorted
from ..scan.tokens import Texts
from .threads import text_places

_close_ranges = Function("close_ranges")

_BEGIN_IN = ("host_events", "launches", "device_events", "memory", "python_calls", "syncs", "others")


def close_begin_end(events: Sorted, texts: Texts) -> list[Diagnostic]:
    """Set the duration of each begin event, and count begin events without an end, and end events without a begin."""
    ends = events.frames["ends"]
    if not events.begun.count and not ends["ts"].size:
        return []
    opened = {name: np.flatnonzero(events.frames[name]["dur"] == OPEN) for name in _BEGIN_IN}
    parts = [(events.frames[name], rows) for name, rows in opened.items()] + [(ends, np.arange(ends["ts"].size))]
    pids: dict[str, int] = {}
    tids: dict[str, int] = {}
    pid = np.concatenate([text_places(frame["pid"][rows], texts, pids) for frame, rows in parts])
    tid = np.concatenate([text_places(frame["tid"][rows], texts, tids) for frame, rows in parts])
    ts = np.concatenate([frame["ts"][rows] for frame, rows in parts])
    offset = np.concatenate([frame["offset"][rows].astype(np.int64) for frame, rows in parts])
    is_end = np.arange(ts.size) >= ts.size - ends["ts"].size
    dur = np.full(ts.size, NONE, np.int64)
    order = np.lexsort((offset, ts, tid, pid))
    _close(order, pid.astype(np.int64) * len(tids) + tid, ts, is_end, dur)
    at = 0
    for name, rows in opened.items():
        events.frames[name].put("dur", rows, dur[at : at + rows.size])
        at += rows.size
    return _unpaired(dur == NONE, is_end, offset)


def close_by_time(
    thread: NDArray[np.int64], ts: NDArray[np.int64], offset: NDArray[np.int64], is_end: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """How long each begin lasts, and 0 for its end; NONE for those without a partner. Equal times are in file order."""
    dur = np.full(ts.size, NONE, np.int64)
    _close(np.lexsort((offset, ts, thread)), thread, ts, is_end, dur)
    return dur


def _close(order: Any, thread: Any, ts: Any, is_end: Any, dur: Any) -> None:
    """Set the durations of matched events; those of end events to 0."""
    _close_ranges(order, thread, ts, is_end, np.empty(order.size, np.int64), dur)


def _unpaired(is_alone: NDArray[np.bool_], is_end: NDArray[np.bool_], offset: NDArray[np.int64]) -> list[Diagnostic]:
    if not is_alone.any():
        return []
    begun, ended = int((is_alone & ~is_end).sum()), int((is_alone & is_end).sum())
    words = (
        f"{begun} ranges have no end: they last 0 ns here. {ended} ends have no begin: they are left out. "
        "Record until all ranges have ended."
    )
    return [Diagnostic("unpaired", begun + ended, words, int(offset[is_alone].min()), level="loss")]
