"""Sorted events of one file → `Parts`: kinds, one time axis, threads, frames, diagnostics."""

from __future__ import annotations

import numpy as np

from ...arrays.gather import NONE
from ...trace.assemble import Parts
from ...trace.meta import Meta, WriterFingerprint
from ...trace.model import COLLECTED, Diagnostic
from ..input.document import not_a_trace
from ..scan.counters import counters, with_samples
from ..scan.damage import damage_outside_events, truncation
from ..scan.ingest import Ingested
from ..scan.kinds import Kind
from ..scan.rows import Noted, Rows, Sorted
from ..scan.tokens import Texts, used
from .amounts import without_impossible_numbers
from .anomalies import text_diagnostics
from .arrows import arrows
from .ascend import sort_ascend_rows
from .begin_end import close_begin_end
from .event_frames import collectives, frame
from .metadata import metadata
from .threads import threads_of

_FAR_NS = 60 * 10**9
_FARTHEST_NS = 2**62
_LONGEST_NS = 2**52  # a recording: 52 days
_MOST_NS = 2**61  # sum of all durations
_NO_THREADS = np.empty(0, np.int32)


def build_parts(
    ingested: Ingested, path: str, source_diagnostics: list[Diagnostic], fingerprint: WriterFingerprint
) -> Parts:
    """Everything that `assemble` needs.

    Raises:
        NotATrace: No event was usable, or the array has something else in it.
    """
    events = ingested.events
    is_clean = ingested.lost_bytes is None and not ingested.tally and b'"traceEvents"' in ingested.head
    if not events.events and not is_clean:
        raise not_a_trace(path, ingested.head)
    outside = metadata(ingested.head, ingested.tail)
    texts = Texts(events.tokens, outside.labels)
    diagnostics = [
        *source_diagnostics,
        *_damage(ingested, outside.lost),
        *text_diagnostics(events),
        *without_impossible_numbers(events),
        *_untimed(events),
        *close_begin_end(events, texts),
    ]
    sort_ascend_rows(events, texts)
    diagnostics += _unknown_categories(events, texts)
    diagnostics += _without_far(events)
    earliest = min((int(rows["ts"].min()) for rows in events.timed() if rows["ts"].size), default=0)
    window = _window(events.frames["others"], texts, earliest)
    links = arrows(events.frames, texts)
    threads_by_frame, threads = threads_of(events.frames, texts)
    frames = {
        name: frame(name, events.frames.pop(name), texts, earliest, threads_by_frame.pop(name, _NO_THREADS))
        for name in COLLECTED
    }
    frames["collectives"] = collectives(events.frames["collectives"], texts)
    frames["counters"], without_value = counters(events.counters, frames["others"], threads)
    diagnostics += without_value
    if ingested.samples is not None:
        frames["counters"] = with_samples(frames["counters"], ingested.samples, earliest)
    outside, origin = outside.with_origin(earliest)
    diagnostics += outside.diagnostics()
    meta = Meta(outside.top, events.events, fingerprint, outside.impossible)
    return Parts(path, origin, window, threads, frames, links, meta, tuple(diagnostics))


def _untimed(events: Sorted) -> list[Diagnostic]:
    """Remove what can't be on the time axis."""
    diagnostics = []
    if events.untimed.count:
        words = "Events without a usable time are left out."
        diagnostics.append(Diagnostic("untimed", events.untimed.count, words, events.untimed.first, "loss"))
    endless = events.endless
    _without_endless(events, endless)
    if endless.count:
        words = "Events have impossible durations; they last 0 ns here."
        diagnostics.append(Diagnostic("impossible_duration", endless.count, words, endless.first))
    zero = _without_clamped(events)
    if zero.count:
        words = "Events that the profiler wrote with time 0, far from all others, are left out (pytorch#188481)."
        diagnostics.append(Diagnostic("zero_time", zero.count, words, zero.first, "loss"))
    if events.backwards.count:
        words = "Events end before they start; they last 0 ns here."
        diagnostics.append(Diagnostic("negative_duration", events.backwards.count, words, events.backwards.first))
    return diagnostics


def _without_far(events: Sorted) -> list[Diagnostic]:
    """Drop events that are months away from the median: differences of times fit 64 bits, even summed."""
    timed = list(events.timed())
    times = [rows["ts"] for rows in timed if rows["ts"].size]
    if not times or max(int(ts.max()) for ts in times) - min(int(ts.min()) for ts in times) <= _LONGEST_NS:
        return []
    every = np.concatenate(times)
    middle = int(np.partition(every, every.size // 2)[every.size // 2])
    noted = Noted()
    for rows in timed:
        is_far = np.abs(rows["ts"] - middle) > _LONGEST_NS // 2
        if is_far.any():
            noted.add_where(is_far, rows["offset"])
            rows.keep(~is_far)
    words = "Events are more than 26 days away from most others: their times are damaged, and they are left out."
    return [Diagnostic("far_from_others", noted.count, words, noted.first, "loss")]


def _without_endless(events: Sorted, noted: Noted) -> None:
    """Drop the longest durations if all of them together exceed 64 bits, and count them."""
    count = sum(rows["dur"].size for rows in events.timed())
    if sum(float(np.maximum(rows["dur"], 0).sum(dtype=np.float64)) for rows in events.timed()) < _MOST_NS:
        return
    for rows in events.timed():
        longest = np.flatnonzero(rows["dur"] > _MOST_NS // count)
        if longest.size:
            noted.add(int(longest.size), int(rows["offset"][longest[0]]))
            rows.put("dur", longest, np.full(longest.size, NONE, np.int64))


def _without_clamped(events: Sorted) -> Noted:
    """Drop events at time zero while all others are more than a minute away, and count them: pytorch#188481."""
    noted = Noted()
    times = [rows["ts"] for rows in events.timed()]
    nearest = min((int(np.abs(ts[ts != 0]).min(initial=_FARTHEST_NS)) for ts in times), default=_FARTHEST_NS)
    if not _FAR_NS < nearest < _FARTHEST_NS:
        return noted
    for rows in events.timed():
        is_zero = rows["ts"] == 0
        if is_zero.any():
            noted.add_where(is_zero, rows["offset"])
            rows.keep(~is_zero)
    return noted


def _window(others: Rows, texts: Texts, earliest: int) -> tuple[int, int] | None:
    """The recorded window: the profiler's span, of category Trace (kineto's output_json.cpp)."""
    category = others["category"]
    spans = [code for code in used(category, len(texts)) if (texts[code] or "").lower() == "trace"]
    rows = np.flatnonzero(np.isin(category, spans) & (others["dur"] > 0) & (others["kind"] == Kind.OTHER))
    if not rows.size:
        return None
    start = others["ts"][rows] - earliest
    return int(start.min()), int((start + others["dur"][rows]).max())


def _unknown_categories(events: Sorted, texts: Texts) -> list[Diagnostic]:
    others = events.frames["others"]
    unknown = others["category"][others["kind"] == Kind.UNKNOWN]
    if not unknown.size:
        return []
    names = sorted({texts[code] or "(none)" for code in used(unknown, len(texts))})
    listed = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
    words = f"Events of unknown categories ({listed}) are shown, but don't count as work."
    return [Diagnostic("unknown_category", int(unknown.size), words, level="note")]


def _damage(ingested: Ingested, lost_values: int) -> list[Diagnostic]:
    diagnostics = [
        *truncation(ingested.lost_bytes, ingested.end),
        *ingested.tally.diagnostics(),
        *damage_outside_events(ingested.tail, lost_values, ingested.arrays),
    ]
    if not ingested.events.events:
        diagnostics.append(Diagnostic("no_events", 1, "The trace has no events. Check that the profiler was running."))
    return diagnostics
