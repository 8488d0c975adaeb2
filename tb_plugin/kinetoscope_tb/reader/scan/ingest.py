"""Blocks of text → sorted events, with scanning threads ahead of the thread that reads.

The text is cut where events probably begin. Nothing depends on the guess: a scan reports how far it got, and the rest
is scanned again with the next chunk, so every scan starts at a true boundary.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..input.document import array_start, is_memory_timeline, not_a_trace
from .chunk import ChunkResult, Collect, first_key_of, scan_chunk, sorted_events
from .damage import LOST, Tally
from .rows import Sorted

_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_SEARCHED_FOR_BOUNDARY = 1 << 13
_CUT_ANYWAY = 1 << 20
_LONGEST_EVENT = 1 << 26
_LONGEST_HEAD = 1 << 28
_LONGEST_TAIL = 1 << 26
_FIRST_EVENT = 1 << 12


@dataclass
class Ingested:
    """The events of a file's text, and the text around them.

    Attributes:
        events: The events by frame.
        head, tail: The text before the first event, and after the array.
        lost_bytes: How much of the text's end is an unfinished event; None if the array is complete.
        end: Length of the text.
        tally: What was repaired, tolerated or lost in the events.
    """

    events: Sorted = field(default_factory=Sorted)
    head: bytes = b""
    tail: bytes = b""
    lost_bytes: int | None = None
    end: int = 0
    tally: Tally = field(default_factory=Tally)


@dataclass(frozen=True)
class _Piece:
    offset: int
    text: memoryview
    scan: Future[ChunkResult]


def ingest(
    blocks: Iterable[bytes],
    path: str,
    threads: int,
    progress: Callable[[Ingested], None],
    into: Any = None,
    collect: Collect = sorted_events,
) -> Ingested:
    """Read all events.

    Args:
        blocks: The text.
        path: Its name in messages.
        threads: How many threads scan.
        progress: Called after each chunk with the result so far.
        into: Where events are appended; by default a new `Sorted`.
        collect: Takes the events out of the scanner's arrays.

    Raises:
        NotATrace: There is no event array.
    """
    result = Ingested() if into is None else Ingested(into)
    stream = iter(blocks)
    result.head, first = split_head(stream, path)
    rest, ended, needed, tail = b"", False, 0, bytearray()
    scan = partial(scan_chunk, first_key=first_key_of(first), collect=collect)
    with ThreadPoolExecutor(threads, "kinetoscope-scan") as pool:
        for piece in _ahead(pool, _pieces(first, stream, len(result.head)), scan, threads + 1):
            text, offset, job = piece.text, piece.offset, piece.scan
            result.end = offset + len(text)
            if ended:
                tail += text[: max(0, _LONGEST_TAIL - len(tail))]
                continue
            if rest:  # the cut before this chunk wasn't a boundary: scan from the event that it split
                text, offset = memoryview(rest + text), offset - len(rest)
                if len(text) < needed:
                    rest = text.obj  # type: ignore[assignment]
                    continue
                job = pool.submit(scan, text, offset, is_last=len(text) > _LONGEST_EVENT)
            rest, ended = _take(result, job.result(), text)
            if len(rest) > _LONGEST_EVENT:  # no event is that long
                result.tally.note(LOST, 1, result.end - len(rest))
                rest = b""
            needed = 2 * len(rest)  # so that the cost of a long event is proportional to its length
            progress(result)
        if not ended and rest:
            job = pool.submit(scan, memoryview(rest), result.end - len(rest), is_last=True)
            rest, ended = _take(result, job.result(), memoryview(rest))
    result.tail += tail
    result.lost_bytes = None if ended else len(rest)
    return result


def _take(result: Ingested, piece: ChunkResult, text: memoryview) -> tuple[bytes, bool]:
    """Add the events of a scan; return its unread text, and whether the array has ended."""
    for part in piece.parts:
        result.events.append(part)
    result.tally.add(piece.tally)
    if piece.array_ended:
        result.tail = bytes(text[piece.used + 1 :])
        return b"", True
    return bytes(text[piece.used :]), False


def split_head(stream: Iterator[bytes], path: str) -> tuple[bytes, bytes]:
    """The text before the first event, and the text of events read so far: at least the start of the first.

    The text is searched again whenever it has doubled, so the cost is proportional to its length.
    """
    text, start = b"", None
    while start is None:
        more = _next_bytes(stream, max(1, len(text)))
        text += more
        try:
            start = array_start(text) if more else None
        except ValueError:
            break
        if is_memory_timeline(text):
            break
        if start is not None:
            text += _next_bytes(stream, max(0, _FIRST_EVENT - (len(text) - start)))
            return text[:start], text[start:]
        if not more or len(text) > _LONGEST_HEAD:
            break
    raise not_a_trace(path, text)


def _next_bytes(stream: Iterator[bytes], at_least: int) -> bytes:
    """The next blocks with this much text together, or all that is left."""
    blocks: list[bytes] = []
    length = 0
    while length < at_least and (block := next(stream, None)) is not None:
        blocks.append(block)
        length += len(block)
    return b"".join(blocks)


def _pieces(first: bytes, stream: Iterator[bytes], offset: int) -> Iterator[tuple[int, memoryview]]:
    """(offset, text) cut where events probably begin."""
    text = first
    while True:
        cut = _cut(text)
        if cut:
            yield offset, memoryview(text)[:cut]
            offset, text = offset + cut, text[cut:]
        more = _next_bytes(stream, 1 if cut else len(text))
        if not more:
            break
        text = text + more if text else more
    yield offset, memoryview(text)


def _cut(text: bytes) -> int:
    """The start of the last event near the end; 0 if there is none, or the end if the text is long anyway."""
    cut = 0
    for boundary in _BOUNDARY.finditer(text, max(0, len(text) - _SEARCHED_FOR_BOUNDARY)):
        cut = boundary.end()
    return cut or (len(text) if len(text) > _CUT_ANYWAY else 0)


def _ahead(
    pool: ThreadPoolExecutor, pieces: Iterable[tuple[int, memoryview]], scan: Callable[..., ChunkResult], depth: int
) -> Iterator[_Piece]:
    """The pieces in order, each being scanned, with at most `depth` ahead."""
    jobs: deque[_Piece] = deque()
    for offset, text in pieces:
        jobs.append(_Piece(offset, text, pool.submit(scan, text, offset, is_last=False)))
        if len(jobs) > depth:
            yield jobs.popleft()
    yield from jobs


def default_threads() -> int:
    """As many as are useful: the reading thread can feed about four."""
    return min(4, os.cpu_count() or 1)
