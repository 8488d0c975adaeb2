"""What was read of one file → `Parts`: kinds, one time axis, threads, frames, findings."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..trace.assemble import Parts
from ..trace.model import NONE, Finding, Meta
from .document import base_ns, not_a_trace, top_values
from .frames import Events, frames
from .ingest import Ingested
from .kinds import Kind, kinds
from .scan import MISSING
from .threads import threads_of
from .tokens import Texts, used

_ANOTHER_DOCUMENT = re.compile(rb"[\s}]*[\[{]")
_FAR_NS = 60 * 10**9
_LATEST_NS, _EARLIEST_NS, _LONGEST_NS = 2**62, -(2**60), 2**61
"""Times beyond these (over 100 years) are damage; within them no sum exceeds 64 bits."""


def parts_of(found: Ingested, path: str, source_findings: list[Finding]) -> Parts:
    """Everything that `assemble` needs.

    Raises:
        NotATrace: Nothing of the events was usable, or the array holds something else.
    """
    columns = found.columns
    is_clean = found.lost_bytes is None and not found.damaged and b'"traceEvents"' in found.head
    if not columns.events and not is_clean:
        raise not_a_trace(path, found.head)
    top, lost_values = top_values(found.head, found.tail)
    texts = Texts(columns.tokens)
    codes = {name: growing.array() for name, growing in columns.codes.items()}
    kind = kinds(codes["phase"], codes["category"], codes["name"], codes["pid"], texts)
    findings = [*source_findings, *_damage(found, lost_values), *_unknown_categories(kind, codes["category"], texts)]
    start, dur, earliest, time_findings = _on_one_axis(found, kind)
    window = _window(kind, codes, texts, start, dur)
    thread, threads = threads_of(columns, codes, kind, texts)
    built = frames(Events(columns, texts, codes, kind, start, dur, thread))
    meta = Meta(top, columns.events)
    origin = base_ns(top, found.head, found.tail) + earliest
    return Parts(path, origin, window, threads, built, meta, (*findings, *time_findings))


def _on_one_axis(
    found: Ingested, kind: NDArray[np.int8]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int, list[Finding]]:
    """(start since the earliest event, duration or NONE, the earliest time in the file, findings).

    Events that can't be on the axis get the kind UNTIMED.
    """
    ts, dur = found.columns.ts.array(), found.columns.dur.array()
    offsets = found.columns.offsets.array()
    findings = []
    is_event = kind != Kind.META
    untimed = is_event & ((ts < _EARLIEST_NS) | (ts > _LATEST_NS))
    if untimed.any():
        findings.append(_finding("untimed", untimed, offsets, "Events without a usable time are left out."))
    kind[untimed] = Kind.UNTIMED
    zero = _clamped(ts, kind)
    if zero.any():
        words = "Events that the profiler wrote with time 0, far from all others, are left out (pytorch#188481)."
        findings.append(_finding("zero_time", zero, offsets, words))
        kind[zero] = Kind.UNTIMED
    backwards = (kind > Kind.UNTIMED) & (dur < 0) & (dur != MISSING)
    if backwards.any():
        findings.append(
            _finding("negative_duration", backwards, offsets, "Events end before they start; they last 0 ns here.")
        )
    kept = ts[kind > Kind.UNTIMED]
    earliest = int(kept.min()) if kept.size else 0
    has_no_dur = (dur == MISSING) | (dur > _LONGEST_NS)
    return ts - earliest, np.where(has_no_dur, NONE, np.maximum(dur, 0)), earliest, findings


def _clamped(ts: NDArray[np.int64], kind: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Events at time zero while all others are more than a minute away: pytorch#188481."""
    zero = (ts == 0) & (kind > Kind.UNTIMED)
    others = ts[(ts != 0) & (kind > Kind.UNTIMED)]
    is_far = zero.any() and others.size and np.abs(others).min() > _FAR_NS
    return zero if is_far else np.zeros(ts.size, bool)


def _window(
    kind: NDArray[np.int8], codes: dict[str, NDArray[Any]], texts: Texts, start: NDArray[Any], dur: NDArray[Any]
) -> tuple[int, int] | None:
    """From when to when was recorded: the profiler's span, of category Trace (kineto's output_json.cpp)."""
    spans = [code for code in used(codes["category"], len(texts)) if (texts[code] or "").lower() == "trace"]
    rows = np.flatnonzero((kind == Kind.OTHER) & np.isin(codes["category"], spans) & (dur > 0))
    if not rows.size:
        return None
    return int(start[rows].min()), int((start[rows] + dur[rows]).max())


def _unknown_categories(kind: NDArray[np.int8], category: NDArray[Any], texts: Texts) -> list[Finding]:
    unknown = category[kind == Kind.UNKNOWN]
    if not unknown.size:
        return []
    names = sorted({texts[code] or "(none)" for code in used(unknown, len(texts))})
    listed = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
    return [
        Finding(
            "unknown_category",
            int(unknown.size),
            f"Events of categories that aren't known here ({listed}) are kept, but count as no work.",
            level="note",
        )
    ]


def _damage(found: Ingested, lost_values: int) -> list[Finding]:
    findings = []
    if found.lost_bytes is not None:
        words = (
            f"The file ends inside the event array: {found.lost_bytes} bytes of an unfinished event are left out, and "
            "whatever came after them was never written. Let the job finish writing, and check the disk's free space."
        )
        findings.append(Finding("truncated", 1, words, found.end - found.lost_bytes, level="loss"))
    if found.damaged:
        words = "Damaged places in the events were skipped; what they held is missing from all numbers."
        findings.append(Finding("damaged_events", found.damaged, words, found.first_damage, level="loss"))
    if lost_values:
        words = (
            "Values beside the events aren't JSON and are left out: facts about the device or the job may be missing."
        )
        findings.append(Finding("damaged_metadata", lost_values, words))
    if _ANOTHER_DOCUMENT.match(found.tail):
        words = "There is more in the file after the end of the trace, perhaps a second one; only the first was read."
        findings.append(Finding("second_document", 1, words, level="loss"))
    if not found.columns.events:
        findings.append(Finding("no_events", 1, "The trace holds no events. Check that the profiler was running."))
    return findings


def _finding(rule: str, where: NDArray[np.bool_], offsets: NDArray[np.int64], words: str) -> Finding:
    rows = np.flatnonzero(where)
    level: Literal["loss", "warning"] = "warning" if rule == "negative_duration" else "loss"
    return Finding(rule, int(rows.size), words, int(offsets[rows[0]]), level)
