"""One chunk of the event array: scanned into the arrays of its thread, repaired where damaged, sorted into frames."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ...arrays.native import SEED
from ...arrays.pages import own_pages
from ...names.regex import regex
from . import scanner as s
from .columns import EVENT_CODES, N_COLUMNS, TIMES, key_table
from .counters import CounterLines, counter_rows, lines_at
from .damage import BRACKET, COMMA, EMPTY, HEX, LOST, WORD, Tally
from .repair import RepairedEvent, RepairedText, damage_end, repair_events
from .rows import Part, sorted_out
from .tokens import integer_of

_KEYS = key_table()
_EVENTS_PER_SCAN, _TOKENS_PER_SCAN, _ODD_PER_SCAN, _PLACES_PER_SCAN = 1 << 15, 1 << 15, 1 << 12, 1 << 12
_LARGEST_TIME = 2**62
_MOST_STUCK = 64  # damaged places without a known next event; for each, all of the rest is searched
_DURATION = TIMES.index("dur")
_FIRST_KEY = regex(rb'[\s,]*\{\s*("(?:ph|cat|name|pid|tid|ts|dur|args|id)")')
_ANOMALIES = {s.WORD: WORD, s.HEX: HEX, s.EMPTY: EMPTY, s.COMMA: COMMA}

_thread = threading.local()

Collect: TypeAlias = Callable[[s.Out, memoryview, int, RepairedText | None], Any]
"""Takes the events out of the arrays, given the text, its offset in the file, and its repairs."""


@dataclass
class ChunkResult:
    """The events of a chunk.

    Attributes:
        parts: Its events, as collected.
        used: How much of its text was read; the rest is an incomplete event.
        array_ended: Whether the array's closing bracket follows.
        is_stuck: Whether damage follows after which nothing can be read.
        tally: What was repaired, tolerated or lost.
        places: Where damage begins, and where reading continues.
    """

    parts: list[Any] = field(default_factory=list)
    used: int = 0
    array_ended: bool = False
    is_stuck: bool = False
    tally: Tally = field(default_factory=Tally)
    places: list[tuple[int, int]] = field(default_factory=list)


def first_key_of(events: bytes) -> bytes:
    """The quoted key that the first event begins with, as do others; "ph" if it is unusual."""
    match = _FIRST_KEY.match(events)
    return match[1] if match else b'"ph"'


def scan_chunk(text: memoryview, offset: int, first_key: bytes, collect: Collect, *, is_last: bool) -> ChunkResult:
    """Scan a text that begins between two events, repairing damaged places if possible.

    Args:
        text: The chunk.
        offset: Its offset in the file.
        first_key: The result of first_key_of.
        collect: Takes the events.
        is_last: Whether nothing follows.
    """
    result = _scan(text, offset, first_key, collect, None, is_last=is_last)
    if result.places:
        result = _repair(result, text, offset, first_key, collect)
    if result.is_stuck:
        result.tally.note(LOST, 1, offset + result.used)
        result.tally.lost_bytes += len(text) - result.used
    return result


def _repair(result: ChunkResult, text: memoryview, offset: int, first_key: bytes, collect: Collect) -> ChunkResult:
    """The events of the text after the repair of its damaged places, as far as it was read."""
    events: list[tuple[int, int, list[RepairedEvent]]] = []
    tally = Tally()
    for start, stop in result.places:
        repairs, lost_count = repair_events(bytes(text[start:stop]))
        events.append((start, stop, repairs))
        tally.note(LOST, lost_count, offset + start)
        if lost_count:
            tally.lost_bytes += stop - start - sum(event.stop - event.start for event in repairs)
        for event in repairs:
            for rule in event.rules:
                tally.note(rule, 1, offset + start + event.start)
        if not repairs and not lost_count:
            tally.note(BRACKET, 1, offset + start)
    if not any(repairs for _, _, repairs in events):
        result.tally.add(tally)
        return result
    whole = RepairedText.of(text[: result.used], events)
    again = _scan(memoryview(whole.text), offset, first_key, collect, whole, is_last=True)
    again.tally.add(tally)
    again.tally.note(LOST, len(again.places), offset + events[0][0])
    again.used, again.array_ended, again.is_stuck = result.used, result.array_ended, result.is_stuck or again.is_stuck
    return again


def _scan(
    text: memoryview, offset: int, first_key: bytes, collect: Collect, original: RepairedText | None, *, is_last: bool
) -> ChunkResult:
    """Scan a text from end to end; `original` maps offsets to the file if the text was repaired."""
    if not hasattr(_thread, "out"):
        _thread.out = new_out()
    out: s.Out = _thread.out
    data, key = np.frombuffer(text, np.uint8), np.frombuffer(first_key, np.uint8)
    result = ChunkResult()
    tries = 0
    while True:
        for array in (out.slots, out.arg_counts, out.state[: s.SEED]):
            array[:] = 0
        result.used = s.scan(data, result.used, data.size, key, _KEYS, out, is_last=is_last)
        result.parts.append(collect(out, text, offset, original))
        _note_all(result, out, offset, original)
        status = out.state[s.STATUS]
        if status in (s.STUCK, s.CUT) and tries < _MOST_STUCK:
            tries += 1
            stop = damage_end(bytes(text[result.used :]), is_cut=status == s.CUT)
            if stop:
                result.places.append((result.used, result.used + stop))
                result.used += stop
                continue
        result.is_stuck = bool(status == s.STUCK)
        if status != s.FULL:
            result.array_ended = bool(status == s.ARRAY_END)
            return result


def _note_all(result: ChunkResult, out: s.Out, offset: int, original: RepairedText | None) -> None:
    state = out.state
    result.places += map(tuple, out.places[: state[s.PLACES]].tolist())
    counts = [(LOST, int(state[s.NAMELESS]), int(state[s.FIRST_NAMELESS]))]
    counts += [(rule, int(state[s.ANOMALIES + k]), int(state[s.FIRST_ANOMALIES + k])) for k, rule in _ANOMALIES.items()]
    for rule, count, first in counts:
        if count:
            result.tally.note(rule, count, offset + (original.offset(first) if original else first))


def new_out() -> s.Out:
    """Arrays for one scan."""
    events, tokens = _EVENTS_PER_SCAN, _TOKENS_PER_SCAN
    return s.Out(
        codes=np.empty((len(EVENT_CODES), events), np.int32),
        times=np.empty((2, events), np.int64),
        offsets=np.empty(events, np.int64),
        lengths=np.empty(events, np.int32),
        arg_counts=np.zeros(N_COLUMNS, np.int64),
        arg_rows=own_pages((N_COLUMNS, events), np.int32),
        arg_values=own_pages((N_COLUMNS, events), np.int64),
        slots=np.zeros(4 * tokens, np.uint64),
        slot_codes=np.empty(4 * tokens, np.int32),
        token_starts=np.empty(tokens, np.int64),
        token_lengths=np.empty(tokens, np.int64),
        odd=np.empty((_ODD_PER_SCAN, 5), np.int64),
        places=np.empty((_PLACES_PER_SCAN, 2), np.int64),
        state=np.array([0] * s.SEED + [SEED], np.int64),
    )


def event_texts(out: s.Out, text: memoryview, _offset: int, _original: RepairedText | None) -> list[bytes]:
    """The text of each event as the scanner read it: repaired, but not yet strict JSON."""
    n = int(out.state[s.EVENTS])
    bounds = zip(out.offsets[:n].tolist(), out.lengths[:n].tolist(), strict=True)
    return [bytes(text[offset : offset + length]) for offset, length in bounds]


def sorted_events(out: s.Out, text: memoryview, offset: int, original: RepairedText | None) -> Part:
    """The events by frame."""
    _parse_odd_values(out, text)
    n = int(out.state[s.EVENTS])
    tokens = tokens_of(out, text)
    rows = counter_rows(out, tokens)
    lines = lines_at(text, out.offsets[rows], out.lengths[rows])
    if original:
        out.offsets[:n], out.lengths[:n] = original.positions(out.offsets[:n], out.lengths[:n])
    return sorted_out(out, tokens, offset, CounterLines(out.offsets[rows] + offset, lines))


def tokens_of(out: s.Out, text: memoryview) -> list[bytes]:
    """The text of each code."""
    n = int(out.state[s.TOKENS])
    bounds = zip(out.token_starts[:n].tolist(), out.token_lengths[:n].tolist(), strict=True)
    return [bytes(text[start : start + length]) for start, length in bounds]


def _parse_odd_values(out: s.Out, text: memoryview) -> None:
    """Fill in the numbers that the scanner left to exact arithmetic."""
    for row, column, nth, start, length in out.odd[: out.state[s.ODD]].tolist():
        token = bytes(text[start : start + length])
        if nth >= 0:
            value = integer_of(token)
            out.arg_values[column, nth] = -1 if value is None else value
        else:
            value = integer_of(token, thousandfold=1000)
            is_usable = value is not None and abs(value) < _LARGEST_TIME
            out.times[column, row] = value if is_usable else (_LARGEST_TIME if column == _DURATION else s.MISSING)
