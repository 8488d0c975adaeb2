"""One event as recorded in the file, with every argument, for the details of a row.

A row stores the offset of its event in the scanned text, which is decompressed and in UTF-8. Plain files are read at
that offset; others from the start, at some GB of text per second.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any

import polars as pl

from ..errors import NotFound, TraceError
from ..filesystem import begins_database, stored_bytes
from ..names.regex import regex
from ..trace.model import COLLECTED, Trace
from .input.encodings import whole_characters
from .input.source import Source
from .nsight.event import row_as_json
from .perfetto.event import packet_as_json
from .perfetto.message import BrokenMessage
from .perfetto.wire import begins_perfetto
from .scan.repair import repair_events
from .scan.strict_json import strict_event

_BLOCK_BYTES = 4 << 20
_REMEMBERED, _AROUND_BYTES = 4, 2 << 20
_PLAIN_TEXT = regex(rb"(\xef\xbb\xbf)?[\s{\[][^\0]*", re.DOTALL)
_LARGEST_EXACT, _MOST_DIGITS = 2**53, 17  # of the integers that JavaScript's numbers hold


@dataclass(frozen=True)
class Event:
    """One event of a file.

    Args:
        offset, length: Its position in the decompressed text, in bytes.
        text: Its text in the file.
        value: Its parsed value; None if it can't be parsed. Numbers that JavaScript can't represent, because they are
            too long or not a number (NaN), are text.
        problem: A sentence about what is wrong with it; empty if nothing is.
    """

    offset: int
    length: int
    text: str
    value: Mapping[str, Any] | None
    problem: str | None


def event_length(trace: Trace, offset: int) -> int:
    """How long the event at this offset is.

    Raises:
        NotFound: No row of the trace belongs to an event that begins there.
    """
    starts: list[int] = []
    for name in COLLECTED:
        frame: pl.DataFrame = getattr(trace, name)
        if frame.is_empty():
            continue
        row = (frame["offset"] - offset).abs().arg_min() or 0
        if frame["offset"][row] == offset:
            return int(frame["length"][row])
        starts.append(int(frame["offset"][row]))
    nearest = sorted(starts, key=lambda start: abs(start - offset))[:1]
    raise NotFound("event that begins at byte", str(offset), (f"one at {start}" for start in nearest))


class EventTexts:
    """The texts of events; the text around the most recent ones is cached."""

    def __init__(self) -> None:
        self._windows: deque[tuple[str, Any, int, bytes]] = deque(maxlen=_REMEMBERED)

    def event(self, path: str, stamp: Any, offset: int, length: int) -> Event:
        """The event at an offset.

        Args:
            path: The file.
            stamp: What changes whenever the file does.
            offset: Where the event begins in the decompressed text.
            length: How many bytes it has there.

        Raises:
            TraceError: The file can't be read, or has less text.
        """
        if begins_database(stored_bytes(path, 0, 16)):
            return replace(event_of(row_as_json(path, offset), offset), length=length)
        text = self._text(path, stamp, offset, length)
        if not text.startswith(b"{") and _is_perfetto(path):
            return _packet_at(path, offset, length)
        if len(text) < length:
            end = offset + length
            raise TraceError(path, f"its text ends before byte {end}: the file was truncated since it was read.")
        return event_of(text, offset)

    def _text(self, path: str, stamp: Any, offset: int, length: int) -> bytes:
        for cached_path, cached_stamp, start, window in self._windows:
            if (cached_path, cached_stamp) == (path, stamp) and start <= offset <= start + len(window) - length:
                return window[offset - start : offset - start + length]
        if _PLAIN_TEXT.fullmatch(stored_bytes(path, 0, 4)):
            text = stored_bytes(path, offset, length)
            if text.startswith(b"{") and text.endswith(b"}"):
                return text  # otherwise the scanned text was in another encoding
        start, window = _window(path, offset, length)
        self._windows.append((path, stamp, start, window))
        return window[offset - start : offset - start + length]


def _is_perfetto(path: str) -> bool:
    with Source(path, 1 << 16) as blocks:
        return begins_perfetto(next(blocks, b""))


def _packet_at(path: str, offset: int, length: int) -> Event:
    """An event of a Perfetto trace, shown as JSON."""
    try:
        with Source(path, _BLOCK_BYTES) as blocks:
            event = event_of(packet_as_json(blocks, offset, length), offset)
    except BrokenMessage:
        problem = f"bytes {offset} to {offset + length} aren't an event, or are inside a compressed packet."
        raise TraceError(path, f"{problem} Open the file in ui.perfetto.dev to see it.") from None
    return replace(event, length=length)


def _window(path: str, offset: int, length: int) -> tuple[int, bytes]:
    """(offset, text) of the text around the event."""
    end, blocks_read = 0, []
    with Source(path, _BLOCK_BYTES) as blocks:
        for block in blocks:
            end += len(block)
            if end > offset:
                blocks_read.append(block)
            if end >= offset + length:
                break
    text = b"".join(blocks_read)
    start = end - len(text)
    first = max(start, offset - _AROUND_BYTES)
    return first, text[first - start : offset + length + _AROUND_BYTES - start]


def event_of(raw: bytes, offset: int = 0) -> Event:
    """Parse the text of an event."""
    problems = []
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        text = raw.decode("utf-8", "replace")
        problems.append("Bytes that aren't UTF-8 are shown as \N{REPLACEMENT CHARACTER}.")
    value = None
    try:
        value = _value(text)
    except json.JSONDecodeError as error:
        where = offset + len(text[: error.pos].encode())
        value = _repaired_value(raw)
        consequence = "its text is shown as recorded" if value is None else "its repaired values are shown"
        problems.append(f"This event is damaged at byte {where}; {consequence}.")
    except RecursionError:
        problems.append("This event is nested too deeply; its text is shown as recorded.")
    if value is not None and not isinstance(value, dict):
        value = None
        problems.append("This isn't an event.")
    return Event(offset, len(raw), text, value, " ".join(problems) or None)


def _value(text: str) -> Any:
    return _whole(json.loads(text, strict=False, parse_int=_integer, parse_float=_decimal, parse_constant=str))


def _whole(value: Any) -> Any:
    """The value with texts that every encoding has."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return {whole_characters(key): _whole(item) for key, item in value.items()} if isinstance(value, dict) else value


def _repaired_value(raw: bytes) -> Any:
    """The value of a damaged event after the reader's repair; None if it can't be repaired."""
    events, n_lost = repair_events(raw)
    return None if n_lost or len(events) != 1 else _value(strict_event(events[0].text).decode())


def _integer(text: str) -> int | str:
    return int(text) if len(text) <= _MOST_DIGITS and abs(int(text)) <= _LARGEST_EXACT else text


def _decimal(text: str) -> float | str:
    value = float(text)
    try:
        return value if isfinite(value) and Decimal(repr(value)) == Decimal(text) else text
    except InvalidOperation:  # an exponent that is too long
        return text
