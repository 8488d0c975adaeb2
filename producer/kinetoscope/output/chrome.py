"""Reads the Chrome JSON of another profiler, event by event. This module never imports torch."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

_BLOCK = _TAIL = 1 << 20
_SPACE = re.compile(r"[\s,]*")
_EVENTS = re.compile(r'"traceEvents"\s*:\s*\[')
_BASE = re.compile(r'"baseTimeNanoseconds"\s*:\s*"?(-?\d+)')
_OFFSET = re.compile(r'"clock"\s*:\s*\{[^{}]*?"offset_ns"\s*:\s*(-?\d+)')


class ChromeTrace:
    """Another profiler's trace: an object with `traceEvents`, or an array, even a truncated one; plain or gzip.

    Args:
        path: The file.
        parse_float: Parses a number with a decimal point; by default as a float.

    Attributes:
        base_ns: Unix time of its zero; 0 if the file doesn't say.
        offset_ns: How far this machine's clock is ahead of rank 0's; None if it wasn't measured.
    """

    def __init__(self, path: Path, parse_float: Callable[[str], Any] | None = None) -> None:
        self.path = path
        self._decoder = json.JSONDecoder(parse_float=parse_float)
        self.base_ns = 0
        self.offset_ns: int | None = None

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield each event, as far as the file can be read; the attributes are set once the first one is read.

        Raises:
            OSError: The file can't be read.
        """
        with _open_text(self.path) as file:
            text = self._head(file)
            at = 0
            while True:
                at = _SPACE.match(text, at).end()  # type: ignore[union-attr]  # matches nothing too
                try:
                    event, at = self._decoder.raw_decode(text, at)
                except ValueError:
                    block = file.read(_BLOCK)
                    if not block or text[at : at + 1] == "]":
                        return
                    text, at = text[at:] + block, 0
                    continue
                if isinstance(event, dict):
                    yield event

    def _head(self, file: IO[str]) -> str:
        """Read up to the first event; return the text that was read after that point."""
        text = ""
        while block := file.read(_BLOCK):
            text += block
            begin = text.lstrip("\ufeff \t\r\n")
            if begin.startswith("["):
                return begin[1:]
            match = _EVENTS.search(text)
            if match:
                head = text[: match.start()]
                base, offset = _BASE.search(head), _OFFSET.search(head)
                self.base_ns = int(base[1]) if base else self._base_after_events()
                self.offset_ns = int(offset[1]) if offset else None
                return text[match.end() :]
        return ""

    def _base_after_events(self) -> int:
        try:
            with gzip.open(self.path) if _is_packed(self.path) else self.path.open("rb") as file:
                return base_after_events(cast("BinaryIO", file))
        except (OSError, EOFError, zlib.error):  # truncated: its end is lost, and its events may be good
            return 0


def base_after_events(source: BinaryIO) -> int:
    """Return the `baseTimeNanoseconds` after the events, where torch 2.4 to 2.11 write it; 0 if there is none.

    kineto's events have no such line at the indentation of the file's own keys; a file without indentation is one that
    another program has rewritten. The position in the file remains.

    Raises:
        OSError, EOFError, zlib.error: The file can't be read to its end.
    """
    position = source.tell()
    size = source.seek(0, os.SEEK_END)
    source.seek(max(0, size - _TAIL))
    tail = source.read()
    source.seek(position)
    _, bracket, end = tail.rpartition(b"\n  ]" if b"\n  ]" in tail else b"]")
    bases = _BASE.findall(end.decode("utf-8", "replace")) if bracket else []
    return int(bases[-1]) if bases else 0


def _is_packed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    with gzip.open(path, "rt") if _is_packed(path) else path.open(encoding="utf-8", errors="replace") as text:
        yield text


def nanoseconds(microseconds: float) -> int:
    """Convert a time in µs to whole ns; exact up to 2^43 µs, which kineto's times stay below."""
    whole = int(microseconds)
    return whole * 1000 + round((microseconds - whole) * 1000)
