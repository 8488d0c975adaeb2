"""Reads the Chrome JSON of another profiler, event by event. This module never imports torch."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_BLOCK = 1 << 20
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
        base_ns: Unix time of its zero.
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
                self.base_ns = int(base[1]) if base else 0
                self.offset_ns = int(offset[1]) if offset else None
                return text[match.end() :]
        return ""


@contextmanager
def _open_text(path: Path) -> Iterator[IO[str]]:
    with path.open("rb") as file:
        is_packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rt") if is_packed else path.open(encoding="utf-8", errors="replace") as text:
        yield text


def nanoseconds(microseconds: float) -> int:
    """Convert a time in µs to whole ns; exact up to 2^43 µs, which kineto's times stay below."""
    whole = int(microseconds)
    return whole * 1000 + round((microseconds - whole) * 1000)
