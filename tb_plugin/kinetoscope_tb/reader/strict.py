"""A trace file written anew as strict JSON, so that every other tool can read it too.

The copy holds the same events and the same values beside them; what couldn't be read isn't in it. It is written while
the original is read, so a file of any size needs little memory.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from isal import igzip
from numpy.typing import NDArray

from ..errors import KinetoscopeError
from ..storage import check_replaceable
from ..trace.model import Finding
from .damage import damage_beside, truncation
from .document import base_ns, top_values, values
from .encodings import decoded, whole_characters
from .ingest import default_threads, ingested, split_head
from .piece import event_texts
from .scan import value_end
from .source import Source
from .tokens import text_of

_BLOCK_BYTES = 4 << 20
_AT_ONCE = 1000  # events that are checked in one go
_OBJECTS = {(0, b'"args"'), (1, b'"occupancy"')}  # whose members the scanner reads one by one
_BETWEEN = re.compile(rb"[\0- ,]*")
_COLON = re.compile(rb"[\0- ]*:[\0- ]*")


class RepairError(KinetoscopeError):
    """The copy can't be written."""


def _refused(constant: str) -> None:
    raise ValueError(constant)


def is_strict(text: bytes) -> bool:
    """Whether the text is JSON by the book: in UTF-8, without NaN, Infinity and control characters."""
    try:
        json.loads(text.decode(), parse_constant=_refused)
    except (ValueError, RecursionError):
        return False
    return True


def strict_value(token: bytes) -> bytes:
    """A JSON value that this reader takes for the same as the token."""
    if is_strict(token):
        return token
    if not token or token[:1] in b"nNiI":  # nan, inf, N/A, None
        return b"null"
    if token[:1] in b"[{":
        try:
            return _dumped(json.loads(decoded(token), strict=False, parse_constant=_refused))
        except (ValueError, RecursionError):
            return _dumped(text_of(token))
    return _dumped(text_of(token))


def _dumped(value: Any) -> bytes:
    return whole_characters(json.dumps(value, ensure_ascii=False)).encode()


def strict_event(text: bytes) -> bytes:
    """The event as strict JSON; the scanner has accepted it."""
    return text if is_strict(text) else _object(text, np.frombuffer(text, np.uint8), 0, 0)[0]


def _object(text: bytes, data: NDArray[np.uint8], i: int, level: int) -> tuple[bytes, int]:
    """(the object at i as strict JSON, index after it), read member by member as the scanner does."""
    members: list[bytes] = []
    i += 1
    while True:
        i = _BETWEEN.match(text, i).end()  # type: ignore[union-attr]  # matches nothing too
        if text[i : i + 1] != b'"':
            return b"{" + b", ".join(members) + b"}", i + 1
        key_end = value_end(data, i, len(text))
        key, start = text[i:key_end], _COLON.match(text, key_end).end()  # type: ignore[union-attr]
        if (level, key) in _OBJECTS and text[start : start + 1] == b"{":
            value, i = _object(text, data, start, level + 1)
        else:
            i = value_end(data, start, len(text))
            value = strict_value(text[start:i])
        members.append((key if is_strict(key) else _dumped(text_of(key))) + b": " + value)


@dataclass
class Repaired:
    """What a copy holds.

    Attributes:
        events: How many.
        rewritten: How many of them weren't strict JSON.
        findings: What was repaired, tolerated or lost.
    """

    events: int = 0
    rewritten: int = 0
    findings: list[Finding] = field(default_factory=list)


class _Events:
    """Where the events go: into the file, as they come."""

    def __init__(self, file: IO[bytes], result: Repaired) -> None:
        self._file, self._result = file, result

    def append(self, texts: list[bytes]) -> None:
        """Write some events."""
        for at in range(0, len(texts), _AT_ONCE):
            some = texts[at : at + _AT_ONCE]
            if not is_strict(b"[" + b",".join(some) + b"]"):
                kept = [strict_event(text) for text in some]
                self._result.rewritten += sum(1 for old, new in zip(some, kept, strict=True) if old != new)
                some = kept
            self._file.write((b",\n" if self._result.events else b"\n") + b",\n".join(some))
            self._result.events += len(some)


def repair(path: str, out: str) -> Repaired:
    """Write the trace in `path` to the new file `out`, packed with gzip if its name ends in .gz.

    Raises:
        TraceError: The trace can't be read.
        RepairError: The copy can't be written.
    """
    if os.path.lexists(out):
        raise RepairError(f"{out}: there is a file of that name already; name another, since nothing is overwritten.")
    source, result = Source(path, _BLOCK_BYTES), Repaired()
    with source as blocks, _published(out) as file:
        stream = iter(blocks)
        head, first = split_head(stream, path)
        is_object = head.lstrip(b"\xef\xbb\xbf\0\t\n\r ").startswith(b"{")
        file.write((b"{" + _members(head, 1) + b'"traceEvents": [') if is_object else b"[")
        found = ingested(
            chain([head + first], stream),
            path,
            default_threads(),
            lambda _: None,
            into=_Events(file, result),
            taken=event_texts,
        )
        file.write(b"\n]" + (_tail(found.head, found.tail) + b"}" if is_object else b"") + b"\n")
    lost_values = top_values(found.head, found.tail)[1]
    result.findings = [
        *source.findings,
        *truncation(found.lost_bytes, found.end),
        *found.tally.findings(),
        *damage_beside(found.tail, lost_values),
    ]
    return result


def _members(text: bytes, at: int) -> bytes:
    """The members before the events, each with a comma behind."""
    at = text.find(b"{") + 1
    return b"".join(member + b", " for member in _strict_members(text, at))


def _strict_members(text: bytes, at: int) -> Iterator[bytes]:
    for key, start, end in values(text, at):
        if end < 0:
            return
        top, lost = top_values(b"{" + key + b":" + text[start:end] + b"}", b"")
        if not lost:
            yield _member(top, key, text[start:end])


def _member(top: Mapping[str, Any], key: bytes, value: bytes) -> bytes:
    name = key if is_strict(key) else _dumped(text_of(key))
    return name + b": " + (value if is_strict(value) else strict_value(_dumped(next(iter(top.values())))))


def _tail(head: bytes, tail: bytes) -> bytes:
    """The members after the events; the base time too if it stood where it can't be read as a member."""
    members = list(_strict_members(tail, 0))
    top, _ = top_values(head, tail)
    base = base_ns(top, head, tail)
    if base and "baseTimeNanoseconds" not in top:
        members.append(b'"baseTimeNanoseconds": %d' % base)
    return b"".join(b", " + member for member in members)


@contextmanager
def _published(out: str) -> Iterator[IO[bytes]]:
    """A file that gets its name when it is complete, or goes away."""
    unfinished = Path(f"{out}.tmp-{os.getpid()}")
    try:
        check_replaceable(out)
        with igzip.open(unfinished, "wb") if out.endswith(".gz") else unfinished.open("wb") as file:  # type: ignore[no-untyped-call]
            yield file
        unfinished.rename(out)
    except OSError as error:
        raise RepairError(f"{out}: the file can't be written: {error.strerror or error}.") from error
    finally:
        unfinished.unlink(missing_ok=True)
