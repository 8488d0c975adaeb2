"""Ranges written as two events, begin (phase B) and end (E): kineto never writes them, other tools do.

A begin event becomes a complete event of its category. An end event closes the latest open begin event of its thread,
in order of time; the arguments of the end event are ignored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.native import Function
from ...trace.model import Diagnostic
from ..scan.rows import BACKWARDS, OPEN, SortedEvents
from ..scan.tokens import Texts
from .plausible_times import PlausibleTimes
from .threads import text_places

_close_ranges = Function("close_ranges")

_BEGIN_IN = ("host_events", "launches", "device_events", "memory", "python_calls", "syncs", "others")


def close_begin_end(events: SortedEvents, texts: Texts, plausible: PlausibleTimes) -> list[Diagnostic]:
    """Set the duration of each begin event, and count begin events without an end, and end events without a begin."""
    ends = events.frames["ends"]
    if not events.begun.count and not ends["ts"].size:
        return []
    open_rows = {name: np.flatnonzero(events.frames[name]["dur"] == OPEN) for name in _BEGIN_IN}
    parts = [(events.frames[name], rows) for name, rows in open_rows.items()] + [(ends, np.arange(ends["ts"].size))]
    pids: dict[str, int] = {}
    tids: dict[str, int] = {}
    pid = np.concatenate([text_places(frame["pid"][rows], texts, pids) for frame, rows in parts])
    tid = np.concatenate([text_places(frame["tid"][rows], texts, tids) for frame, rows in parts])
    ts = np.concatenate([frame["ts"][rows] for frame, rows in parts])
    offset = np.concatenate([frame["offset"][rows].astype(np.int64) for frame, rows in parts])
    is_end = np.arange(ts.size) >= ts.size - ends["ts"].size
    dur = np.full(ts.size, NONE, np.int64)
    thread = pid.astype(np.int64) * len(tids) + tid
    _close(np.lexsort((offset, ts, thread)), thread, ts, is_end, dur)
    diagnostics = note_unpaired(thread, offset, is_end, plausible.excludes(ts), dur)
    at = 0
    for name, rows in open_rows.items():
        lengths = dur[at : at + rows.size]
        events.frames[name].put("dur", rows, np.where(lengths == NONE, OPEN, lengths))
        at += rows.size
    ends.keep(np.zeros(ends["ts"].size, bool))
    return diagnostics


def close_by_time(
    thread: NDArray[np.int64], ts: NDArray[np.int64], offset: NDArray[np.int64], is_end: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """How long each begin lasts, and 0 for its end; NONE for those without a partner. Equal times are in file order."""
    dur = np.full(ts.size, NONE, np.int64)
    _close(np.lexsort((offset, ts, thread)), thread, ts, is_end, dur)
    return dur


def note_unpaired(
    thread: NDArray[np.int64],
    offset: NDArray[np.int64],
    is_end: NDArray[np.bool_],
    is_lost: NDArray[np.bool_],
    dur: NDArray[np.int64],
) -> list[Diagnostic]:
    """Count begins and ends whose duration is NONE.

    An end long before the recording closes nothing, and a begin long after it is never closed. Each leaves its
    counterpart of the same thread alone: these aren't missing, and such a begin gets the duration BACKWARDS.

    Args:
        thread, offset, is_end: Of each begin and end.
        is_lost: Which of them have a time that the recording can't have.
        dur: Their durations.
    """
    alone = np.flatnonzero(dur == NONE)
    begins, ends = alone[~is_end[alone]], alone[is_end[alone]]
    is_early = is_lost[ends]
    for some_begins, some_ends in ((begins, ends[is_early]), (begins[is_lost[begins]], ends[~is_early])):
        begin, end = _same_thread(thread, some_begins, some_ends)
        dur[begin], dur[end] = BACKWARDS, 0
    return _diagnostics((dur == NONE) & (is_end | ~is_lost), is_end, offset)


def _same_thread(
    thread: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The begins and ends that are the n-th ones of the same thread."""
    if not begins.size or not ends.size:
        return begins[:0], ends[:0]
    nth = pl.int_range(pl.len()).over("thread").alias("nth")
    frames = [pl.DataFrame({"thread": thread[rows], "row": rows}).with_columns(nth) for rows in (begins, ends)]
    pairs = frames[0].join(frames[1], on=["thread", "nth"], suffix="_of_end")
    return pairs["row"].to_numpy(), pairs["row_of_end"].to_numpy()


def _close(order: Any, thread: Any, ts: Any, is_end: Any, dur: Any) -> None:
    """Set the durations of matched events; those of end events to 0."""
    _close_ranges(order, thread, ts, is_end, np.empty(order.size, np.int64), dur)


def _diagnostics(is_alone: NDArray[np.bool_], is_end: NDArray[np.bool_], offset: NDArray[np.int64]) -> list[Diagnostic]:
    if not is_alone.any():
        return []
    begins, ends = int((is_alone & ~is_end).sum()), int((is_alone & is_end).sum())
    words = (
        f"{begins} ranges have no end: they last 0 ns here. {ends} ends have no begin: they are left out. "
        "Record until all ranges have ended."
    )
    return [Diagnostic("unpaired", begins + ends, words, int(offset[is_alone].min()), level="loss")]
