"""Blocks of text → sorted events, with scanning threads ahead of the thread that reads.

The text is cut where events probably begin. Nothing depends on the guess: a scan reports how far it got, and the rest
is scanned again with the next chunk, so every scan starts at a true boundary.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl

from ...names.regex import regex
from ..input.document import MOST_ARRAYS, array_start, is_memory_timeline, not_a_trace, walk_members
from .chunk import ChunkResult, Collect, first_key_of, scan_chunk, sorted_events
from .damage import LOST, Tally
from .rows import SortedEvents

if TYPE_CHECKING:
    from ...trace.model import Diagnostic
    from ..snapshots.columns import SnapshotFrames

_BOUNDARY = regex(rb"\}\s*,\s*(?=\{)")
_SEARCHED_FOR_BOUNDARY = 1 << 13
_CUT_ANYWAY = 1 << 20
_LONGEST_EVENT = 1 << 26
_LONGEST_HEAD = 1 << 28
_LONGEST_TAIL = 1 << 26
_FIRST_EVENT = 1 << 12
_SHORT = 1 << 18  # bytes that are scanned before another thread would begin with them, or soon after


@dataclass
class RawTrace:
    """The events of a file's text, and the text around them.

    Attributes:
        events: The events by frame.
        head, tail: The text before the first event, and after the array; if there are several, after each.
        arrays: How many event arrays there are.
        lost_bytes: How much of the text's end is an unfinished event; None if the array is complete.
        end: Length of the text.
        tally: What was repaired, tolerated or lost in the events.
        samples: Counters that a format has as numbers instead of events: the columns of the frame of counters, with the
            file's times in `time_ns`.
    """

    events: SortedEvents = field(default_factory=SortedEvents)
    head: bytes = b""
    tail: bytes = b""
    arrays: int = 1
    lost_bytes: int | None = None
    end: int = 0
    tally: Tally = field(default_factory=Tally)
    samples: pl.DataFrame | None = None


@dataclass
class RawFile:
    """What the reader of a format makes of a file.

    Args:
        raw_trace: Its events.
        diagnostics: What is wrong with the file.
        snapshot: The frames of a memory snapshot; None for other files.
    """

    raw_trace: RawTrace
    diagnostics: list[Diagnostic] = field(default_factory=list)
    snapshot: SnapshotFrames | None = None


@dataclass(frozen=True)
class _Piece:
    offset: int
    text: memoryview
    scan: Callable[[], ChunkResult]


def ingest(
    blocks: Iterable[bytes],
    path: str,
    threads: int,
    progress: Callable[[RawTrace], None],
    into: Any = None,
    collect: Collect = sorted_events,
) -> RawTrace:
    """Read all events.

    Args:
        blocks: The text.
        path: Its name in messages.
        threads: How many threads scan.
        progress: Called after each chunk with the result so far.
        into: Where events are appended; by default a new `SortedEvents`.
        collect: Takes the events out of the scanner's arrays.

    Raises:
        NotATrace: There is no event array.
    """
    result = RawTrace() if into is None else RawTrace(into)
    stream = iter(blocks)
    result.head, first = split_head(stream, path)
    scan = partial(scan_chunk, first_key=first_key_of(first[:_FIRST_EVENT]), collect=collect)
    with ThreadPoolExecutor(threads, "kinetoscope-scan") as pool:
        arrays = _Arrays(result, scan)
        for piece in _ahead(pool, _pieces(first, stream, len(result.head)), scan, threads + 1):
            arrays.read(piece)
            progress(result)
        arrays.finish()
    return result


class _Arrays:
    """The event arrays of a file, read one after another into a result.

    Usually there is one. Of several, parsers of JSON keep the last; here none is left out.

    Args:
        result: Where events are appended.
        scan: Scans a text.
    """

    def __init__(self, result: RawTrace, scan: Callable[..., ChunkResult]) -> None:
        self._result, self._scan_chunk = result, scan
        self._between = _Between(is_object=b"{" in result.head)
        self._has_ended = False
        self._rest, self._needed = b"", 0  # of the events, not scanned yet

    def read(self, piece: _Piece) -> None:
        """Read the next piece of the file."""
        text, scan = piece.text, piece.scan
        self._result.end = piece.offset + len(text)
        if self._has_ended:
            next_text = self._between.add(text)
            if next_text is None:
                return
            self._has_ended = False
            text, scan = next_text, partial(self._scan, next_text)
        elif self._rest:  # the cut before this piece wasn't a boundary: scan from the event that it split
            text = memoryview(self._rest + text)
            if len(text) < self._needed:
                self._rest = text.obj  # type: ignore[assignment]
                return
            scan = partial(self._scan, text)
        self._take(scan(), text)
        if len(self._rest) > _LONGEST_EVENT:  # no event is that long
            self._result.tally.note(LOST, 1, self._result.end - len(self._rest))
            self._result.tally.lost_bytes += len(self._rest)
            self._rest = b""
        self._needed = 2 * len(self._rest)  # so that the cost of a long event is proportional to its length

    def finish(self) -> None:
        """Read what is left when the file has ended."""
        if self._rest:
            text, self._rest = memoryview(self._rest), b""
            self._take(self._scan(text, is_last=True), text, is_last=True)
        self._result.tail, self._result.arrays = self._between.text(), self._between.arrays
        self._result.lost_bytes = None if self._has_ended else len(self._rest)

    def _scan(self, text: memoryview, *, is_last: bool = False) -> ChunkResult:
        is_last = is_last or len(text) > _LONGEST_EVENT
        return self._scan_chunk(text, self._result.end - len(text), is_last=is_last)

    def _take(self, chunk: ChunkResult, text: memoryview, *, is_last: bool = False) -> None:
        """Add the events of a scan, and those of further arrays in the same text; keep what wasn't read."""
        while True:
            for part in chunk.parts:
                self._result.events.append(part)
            self._result.tally.add(chunk.tally)
            self._rest = b"" if chunk.array_ended else bytes(text[chunk.used :])
            if not chunk.array_ended:
                return
            self._has_ended = True
            next_text = self._between.add(text[chunk.used + 1 :])
            if next_text is None:
                return
            self._has_ended = False
            text, chunk = next_text, self._scan(next_text, is_last=is_last)


class _Between:
    """The text between event arrays and after the last one, as far as it is members of an object.

    Attributes:
        arrays: How many arrays have begun.
    """

    def __init__(self, *, is_object: bool) -> None:
        self._read, self._rest = bytearray(), b""
        self._has_ended = not is_object
        self.arrays = 1

    def add(self, text: memoryview) -> memoryview | None:
        """Add more text; returns what follows the bracket of another event array, None if there is none yet."""
        if self._has_ended:
            self._read += text[: max(0, _LONGEST_TAIL - len(self._read))]
            return None
        rest = self._rest + text
        walk = walk_members(rest, 0)
        at = walk.events_at
        if at is not None and len(self._read) + at < _LONGEST_TAIL and self.arrays < MOST_ARRAYS:
            self._read += rest[: walk.places[-1, 0]]
            self._rest = b""
            self.arrays += 1
            return memoryview(rest)[at:]
        self._has_ended = walk.has_ended or at is not None or len(self._read) + len(rest) > _LONGEST_TAIL
        end = len(rest) if self._has_ended else walk.following
        self._read += rest[:end]
        self._rest = rest[end:]
        return None

    def text(self) -> bytes:
        """All of it, without the keys and the events of the arrays."""
        return bytes(self._read + self._rest)[:_LONGEST_TAIL]


def split_head(stream: Iterator[bytes], path: str) -> tuple[bytes, bytes]:
    """The text before the first event, and the text of events read so far: at least the start of the first.

    The text is searched again whenever it has doubled, so the cost is proportional to its length.
    """
    text, start = b"", None
    while start is None:
        more = _next_bytes(stream, max(_FIRST_EVENT, len(text)))
        text += more
        try:
            start = array_start(text, is_whole=not more)
        except ValueError:
            break
        if is_memory_timeline(text[:_FIRST_EVENT]):
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
    """The pieces in order, each being scanned, with at most `depth` ahead; short ones are scanned by who reads them."""
    jobs: deque[_Piece] = deque()
    for offset, text in pieces:
        of_piece = partial(scan, text, offset, is_last=False)
        jobs.append(_Piece(offset, text, pool.submit(of_piece).result if len(text) > _SHORT else of_piece))
        if len(jobs) > depth:
            yield jobs.popleft()
    yield from jobs


def default_threads() -> int:
    """As many as are useful: the reading thread can feed about four."""
    return min(4, os.cpu_count() or 1)
