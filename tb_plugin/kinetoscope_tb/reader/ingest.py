"""Blocks of text → sorted events, with scanning threads ahead of the thread that reads.

The text is cut where events probably begin. Nothing depends on the guess: a scan reports how far it came, and what it
left is scanned again with the next piece, so every scan starts at a true boundary.
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from . import scan as s
from .columns import EVENT_CODES, N_COLUMNS, key_table
from .document import array_start, not_a_trace
from .rows import Part, Sorted, sorted_out
from .tokens import integer_of

_KEYS = key_table()
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_SEARCHED_FOR_BOUNDARY = 1 << 13
_CUT_ANYWAY = 1 << 20
_LONGEST_EVENT = 1 << 26
_LONGEST_HEAD = 1 << 28
_LONGEST_TAIL = 1 << 26
_EVENTS_PER_SCAN, _TOKENS_PER_SCAN, _ODD_PER_SCAN = 1 << 15, 1 << 15, 1 << 12
_LARGEST_TIME = 2**62

_thread = threading.local()


@dataclass
class Ingested:
    """What a file's text held.

    Attributes:
        events: The events by frame.
        head, tail: The text before the first event, and after the array.
        lost_bytes: How much of the text's end is an unfinished event; None if the array is complete.
        end: Length of the text.
        damaged, first_damage: How many places were skipped, and the offset of the first.
    """

    events: Sorted = field(default_factory=Sorted)
    head: bytes = b""
    tail: bytes = b""
    lost_bytes: int | None = None
    end: int = 0
    damaged: int = 0
    first_damage: int | None = None

    def note_damage(self, places: int, first: int | None) -> None:
        """Count damaged places."""
        self.damaged += places
        if self.first_damage is None:
            self.first_damage = first


@dataclass(frozen=True)
class _Scanned:
    parts: list[Part]
    used: int
    array_ended: bool
    damaged: int
    first_damage: int | None


@dataclass(frozen=True)
class _Piece:
    offset: int
    text: memoryview
    scan: Future[_Scanned]


def ingested(blocks: Iterable[bytes], path: str, threads: int, progress: Callable[[], None]) -> Ingested:
    """Read all events; `progress` is called after each piece.

    Raises:
        NotATrace: There is no event array.
    """
    found = Ingested()
    stream = iter(blocks)
    found.head, first = _split_head(stream, path)
    rest, ended = b"", False
    with ThreadPoolExecutor(threads, "kinetoscope-scan") as pool:
        for piece in _ahead(pool, _pieces(first, stream, len(found.head)), threads + 1):
            text, offset, job = piece.text, piece.offset, piece.scan
            found.end = offset + len(text)
            if ended:
                found.tail += bytes(text[: _LONGEST_TAIL - len(found.tail)])
                continue
            if rest:  # the cut before this piece wasn't a boundary: scan from the event that it went through
                text, offset = memoryview(rest + text), offset - len(rest)
                job = pool.submit(_scan_piece, text, offset, is_last=len(text) > _LONGEST_EVENT)
            rest, ended = _take(found, job.result(), text)
            if len(rest) > _LONGEST_EVENT:  # no event is that long
                found.note_damage(1, found.end - len(rest))
                rest = b""
            progress()
        if not ended and rest:
            job = pool.submit(_scan_piece, memoryview(rest), found.end - len(rest), is_last=True)
            rest, ended = _take(found, job.result(), memoryview(rest))
    found.lost_bytes = None if ended else len(rest)
    return found


def _take(found: Ingested, scanned: _Scanned, text: memoryview) -> tuple[bytes, bool]:
    """Add what a scan found; what it left for the next, and whether the array has ended."""
    for part in scanned.parts:
        found.events.append(part)
    found.note_damage(scanned.damaged, scanned.first_damage)
    if scanned.array_ended:
        found.tail = bytes(text[scanned.used + 1 :])
        return b"", True
    return bytes(text[scanned.used :]), False


def _split_head(stream: Iterator[bytes], path: str) -> tuple[bytes, bytes]:
    """The text before the first event, and the rest of the block that it ends in."""
    text = b""
    for block in stream:
        text += block
        try:
            start = array_start(text)
        except ValueError:
            break
        if start is not None:
            return text[:start], text[start:]
        if len(text) > _LONGEST_HEAD:
            break
    raise not_a_trace(path, text)


def _pieces(first: bytes, stream: Iterator[bytes], offset: int) -> Iterator[tuple[int, memoryview]]:
    """(offset, text) cut where events probably begin."""
    text = first
    while True:
        cut = _cut(text)
        if cut:
            yield offset, memoryview(text)[:cut]
            offset, text = offset + cut, text[cut:]
        block = next(stream, None)
        if block is None:
            break
        text = text + block if text else block
    yield offset, memoryview(text)


def _cut(text: bytes) -> int:
    """Where the last event that is near the end begins; 0 if none does, or the end if the text is long anyway."""
    cut = 0
    for boundary in _BOUNDARY.finditer(text, max(0, len(text) - _SEARCHED_FOR_BOUNDARY)):
        cut = boundary.end()
    return cut or (len(text) if len(text) > _CUT_ANYWAY else 0)


def _ahead(pool: ThreadPoolExecutor, pieces: Iterable[tuple[int, memoryview]], depth: int) -> Iterator[_Piece]:
    """The pieces in order, each being scanned, with at most `depth` ahead."""
    jobs: deque[_Piece] = deque()
    for offset, text in pieces:
        jobs.append(_Piece(offset, text, pool.submit(_scan_piece, text, offset, is_last=False)))
        if len(jobs) > depth:
            yield jobs.popleft()
    yield from jobs


def _scan_piece(text: memoryview, offset: int, *, is_last: bool) -> _Scanned:
    """Scan one piece in this thread's own arrays, and sort what was found."""
    if not hasattr(_thread, "out"):
        _thread.out = _new_out()
    out: s.Out = _thread.out
    data = np.frombuffer(text, np.uint8)
    parts, used, damaged, first_damage = [], 0, 0, None
    while True:
        for array in (out.slots, out.arg_counts, out.state):
            array[:] = 0
        out.state[s.FIRST_DAMAGE] = -1
        used = s.scan(data, used, data.size, is_last, _KEYS, out)
        parts.append(_part(out, text, offset))
        damaged += int(out.state[s.DAMAGED])
        if first_damage is None and out.state[s.FIRST_DAMAGE] >= 0:
            first_damage = offset + int(out.state[s.FIRST_DAMAGE])
        if out.state[s.STATUS] != s.FULL:
            return _Scanned(parts, used, bool(out.state[s.STATUS] == s.ARRAY_END), damaged, first_damage)


def _new_out() -> s.Out:
    events, tokens = _EVENTS_PER_SCAN, _TOKENS_PER_SCAN
    return s.Out(
        codes=np.empty((len(EVENT_CODES), events), np.int32),
        times=np.empty((2, events), np.int64),
        offsets=np.empty(events, np.int64),
        lengths=np.empty(events, np.int32),
        arg_counts=np.zeros(N_COLUMNS, np.int64),
        arg_rows=np.empty((N_COLUMNS, events), np.int32),
        arg_values=np.empty((N_COLUMNS, events), np.int64),
        slots=np.zeros(4 * tokens, np.uint64),
        slot_codes=np.empty(4 * tokens, np.int32),
        token_starts=np.empty(tokens, np.int64),
        token_lengths=np.empty(tokens, np.int64),
        odd=np.empty((_ODD_PER_SCAN, 5), np.int64),
        state=np.zeros(6, np.int64),
    )


def _part(out: s.Out, text: memoryview, offset: int) -> Part:
    _settle_odd(out, text)
    tokens = int(out.state[s.TOKENS])
    starts, lengths = out.token_starts[:tokens].tolist(), out.token_lengths[:tokens].tolist()
    return sorted_out(out, [bytes(text[i : i + m]) for i, m in zip(starts, lengths, strict=True)], offset)


def _settle_odd(out: s.Out, text: memoryview) -> None:
    """Put in the numbers that the scanner left to exact arithmetic."""
    for row, column, nth, start, length in out.odd[: out.state[s.ODD]].tolist():
        token = bytes(text[start : start + length])
        if nth >= 0:
            value = integer_of(token)
            out.arg_values[column, nth] = -1 if value is None else value
        else:
            value = integer_of(token, thousandfold=1000)
            is_usable = value is not None and abs(value) < _LARGEST_TIME
            out.times[column, row] = value if is_usable else s.MISSING


def default_threads() -> int:
    """As many as are worth it: the reading thread keeps up with about four."""
    return min(4, os.cpu_count() or 1)
