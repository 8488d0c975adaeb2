"""Which times a recording can have, and what becomes of those that it can't.

A damaged time, or one of another clock, is days or decades away from all others. This is the one check of all readers:
complete events, pairs of begin and end, slices of Perfetto and rows of Nsight pass it before anything is computed.
An event that begins out of the window is left out; one that ends out of it lasts no time. Both are diagnostics.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...trace.model import Diagnostic
from ..scan.kinds import Kind
from ..scan.rows import BACKWARDS, ENDLESS, OPEN, Occurrences, Rows, SortedEvents
from ..scan.tokens import Texts, distinct_codes

_MINUTE_NS = 60 * 10**9
_DAY_NS = 24 * 60 * _MINUTE_NS
_LONGEST_NS = 2**52  # a recording: 52 days
_WIDENED = 1000
"""The window reaches so many times farther than three quarters of the times, in case the rest is sparse."""

_MOST_NS = 2**61  # sum of all durations
_FARTHEST_NS = 2**62
_NO_TIMES = np.empty(0, np.int64)

_ZERO = "Events that the profiler wrote with time 0, far from all others, are left out (pytorch#188481)."
_FAR = "Events begin days or years away from most others: their times are damaged, and they are left out."
_ENDLESS = "Events have impossible durations; they last 0 ns here."
_BACKWARDS = "Events end before they start; they last 0 ns here."


@dataclass(frozen=True)
class PlausibleTimes:
    """The times that a recording can have.

    Args:
        first, last: From when to when, in the file's ns.
        is_zero_lost: Whether the time zero is none, but what the profiler wrote where it lost the time.
    """

    first: int
    last: int
    is_zero_lost: bool

    def excludes(self, ts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Where a time is none that the recording can have."""
        is_out: NDArray[np.bool_] = (ts < self.first) | (ts > self.last) | (self.is_zero_lost & (ts == 0))
        return is_out


def plausible_times(events: SortedEvents, texts: Texts, ends: NDArray[np.int64] = _NO_TIMES) -> PlausibleTimes:
    """The times that a recording can have.

    That is a day around the median of all begins and ends, or more where a quarter of them is farther away, but at most
    26 days; and whenever the profiler says that it recorded, if most events lie there.

    Args:
        events: All events; of some the duration isn't known yet.
        texts: Of their codes.
        ends: When others end, of which that is known.
    """
    is_zero_lost = _is_zero_lost(events)
    parts = [part[part != 0] if is_zero_lost else part for part in (*_begins_and_ends(events), ends) if part.size]
    parts = [part for part in parts if part.size]
    if not parts:
        return PlausibleTimes(-_FARTHEST_NS, _FARTHEST_NS, is_zero_lost)
    first, last = min(int(part.min()) for part in parts), max(int(part.max()) for part in parts)
    if last - first > _DAY_NS:
        times = np.concatenate(parts)
        half = (times.size - 1) // 2
        middle = int(np.partition(times, half)[half])
        distance, three_quarters = np.abs(times - middle), 3 * (times.size - 1) // 4
        reach = min(
            max(_WIDENED * int(np.partition(distance, three_quarters)[three_quarters]), _DAY_NS), _LONGEST_NS // 2
        )
        spans = [span for span in profiler_spans(events.frames["others"], texts) if span[0] <= middle <= span[1]]
        first = min([middle - reach, *(begin for begin, _ in spans)])
        last = max([middle + reach, *(end for _, end in spans)])
    return PlausibleTimes(first, last, is_zero_lost)


def recorded_extent(events: SortedEvents, plausible: PlausibleTimes) -> tuple[int, int]:
    """The first and the last of the begins and ends that the recording can have; (0, -1) without any."""
    parts = [part[~plausible.excludes(part)] for part in _begins_and_ends(events)]
    parts = [part for part in parts if part.size]
    return min((int(p.min()) for p in parts), default=0), max((int(p.max()) for p in parts), default=-1)


def profiler_spans(others: Rows, texts: Texts) -> list[tuple[int, int]]:
    """When the profiler says that it recorded: its spans of category Trace (kineto's output_json.cpp)."""
    category = others["category"]
    spans = [code for code in distinct_codes(category, len(texts)) if (texts[code] or "").lower() == "trace"]
    rows = np.flatnonzero(np.isin(category, spans) & (others["dur"] > 0) & (others["kind"] == Kind.OTHER))
    begin = others["ts"][rows]
    return list(zip(begin.tolist(), (begin + others["dur"][rows]).tolist(), strict=True))


def without_impossible_times(events: SortedEvents, plausible: PlausibleTimes) -> list[Diagnostic]:
    """Leave out what begins at an impossible time; what can't last as long as it does is OPEN."""
    zero, far, backwards, endless = Occurrences(), Occurrences(), Occurrences(), Occurrences()
    for rows in _frames_with_times(events):
        ts = rows["ts"]
        is_out = plausible.excludes(ts)
        if is_out.any():
            is_zero = plausible.is_zero_lost & (ts == 0)
            zero.add_where(is_zero, rows["offset"])
            far.add_where(is_out & ~is_zero, rows["offset"])
            rows.keep(~is_out)
        _without_impossible_durations(rows, plausible.last, backwards, endless)
    _without_excessive_sum(events, endless)
    diagnostics = (
        (endless, Diagnostic("impossible_duration", endless.count, _ENDLESS, endless.first)),
        (zero, Diagnostic("zero_time", zero.count, _ZERO, zero.first, "loss")),
        (backwards, Diagnostic("negative_duration", backwards.count, _BACKWARDS, backwards.first)),
        (far, Diagnostic("far_from_others", far.count, _FAR, far.first, "loss")),
    )
    return [diagnostic for notes, diagnostic in diagnostics if notes.count]


def _frames_with_times(events: SortedEvents) -> Iterator[Rows]:
    """The frames whose events begin at a time."""
    return (rows for rows in events.timed_frames() if rows is not events.frames["ends"])


def _begins_and_ends(events: SortedEvents) -> Iterator[NDArray[np.int64]]:
    for rows in events.timed_frames():
        ts, dur = rows["ts"], rows["dur"]
        yield ts
        has_length = np.flatnonzero(dur > 0)
        yield ts[has_length] + dur[has_length]


def _is_zero_lost(events: SortedEvents) -> bool:
    """Whether all times that aren't zero are more than a minute away from it: pytorch#188481."""
    times = [rows["ts"] for rows in events.timed_frames()]
    if not any((ts == 0).any() for ts in times):
        return False
    nearest = min(int(np.abs(ts[ts != 0]).min(initial=_FARTHEST_NS)) for ts in times)
    return _MINUTE_NS < nearest < _FARTHEST_NS


def _without_impossible_durations(rows: Rows, last: int, backwards: Occurrences, endless: Occurrences) -> None:
    """Let events last no time that end before they begin, or after all times that the recording can have."""
    dur, offset = rows["dur"], rows["offset"]
    if dur.min(initial=0) <= BACKWARDS:
        is_backwards = dur == BACKWARDS
        backwards.add_where(is_backwards, offset)
        _without_end(rows, np.flatnonzero(is_backwards))
        dur = rows["dur"]
    too_long = np.flatnonzero((dur == ENDLESS) | (rows["ts"] + np.maximum(dur, 0) > last))
    if too_long.size:
        endless.add(int(too_long.size), int(offset[too_long[0]]))
        _without_end(rows, too_long)


def _without_excessive_sum(events: SortedEvents, endless: Occurrences) -> None:
    """Let the longest events last no time if all of them together exceed 64 bits."""
    count = sum(rows["dur"].size for rows in _frames_with_times(events))
    if sum(float(np.maximum(rows["dur"], 0).sum(dtype=np.float64)) for rows in _frames_with_times(events)) < _MOST_NS:
        return
    for rows in _frames_with_times(events):
        longest = np.flatnonzero(rows["dur"] > _MOST_NS // count)
        if longest.size:
            endless.add(int(longest.size), int(rows["offset"][longest[0]]))
            _without_end(rows, longest)


def _without_end(rows: Rows, which: NDArray[np.int64]) -> None:
    rows.put("dur", which, np.full(which.size, OPEN, np.int64))
