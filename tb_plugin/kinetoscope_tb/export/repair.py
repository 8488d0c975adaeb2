"""Rewrites a trace file as strict JSON, so that every other tool can read it too.

The copy has the same events and metadata; unreadable parts are left out. It is written while the original is read, so a
file of any size needs little memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import IO, Any, cast

from isal import igzip

from ..errors import KinetoscopeError
from ..filesystem import atomic_write
from ..reader.input.document import EVENTS_KEY, base_ns, top_values, walk_members
from ..reader.input.source import Source
from ..reader.scan.chunk import event_texts
from ..reader.scan.damage import damage_outside_events, truncation
from ..reader.scan.ingest import default_threads, ingest, split_head
from ..reader.scan.strict_json import as_json, is_strict, strict_event, strict_value
from ..reader.scan.tokens import text_of
from ..trace.model import Diagnostic

_BLOCK_BYTES = 4 << 20
_AT_ONCE = 1000  # events that are checked at once


class RepairError(KinetoscopeError):
    """The copy can't be written."""


@dataclass
class RepairResult:
    """A repaired copy.

    Attributes:
        events: Number of events.
        rewritten: How many of them weren't strict JSON.
        diagnostics: What was repaired, tolerated or lost.
    """

    events: int = 0
    rewritten: int = 0
    diagnostics: list[Diagnostic] = field(default_factory=list)


class _Events:
    """Writes events to the file as they come."""

    def __init__(self, file: IO[bytes], result: RepairResult) -> None:
        self._file, self._result = file, result

    def append(self, texts: list[bytes]) -> None:
        """Write some events."""
        for at in range(0, len(texts), _AT_ONCE):
            batch = texts[at : at + _AT_ONCE]
            if not is_strict(b"[" + b",".join(batch) + b"]"):
                strict = [strict_event(text) for text in batch]
                self._result.rewritten += sum(1 for old, new in zip(batch, strict, strict=True) if old != new)
                batch = strict
            self._file.write((b",\n" if self._result.events else b"\n") + b",\n".join(batch))
            self._result.events += len(batch)


def repair(path: str, out: str) -> RepairResult:
    """Write the trace in `path` to the new file `out`, compressed with gzip if its name ends in .gz.

    Raises:
        TraceError: The trace can't be read.
        RepairError: The copy can't be written.
    """
    if os.path.lexists(out):
        raise RepairError(f"{out}: this file exists, and nothing is overwritten. Choose another name.")
    source, result = Source(path, _BLOCK_BYTES), RepairResult()
    with source as blocks, _write_copy(out) as file:
        stream = iter(blocks)
        head, first = split_head(stream, path)
        is_object = head.lstrip(b"\xef\xbb\xbf\0\t\n\r ").startswith(b"{")
        file.write((b"{" + _members(head, 1) + b'"traceEvents": [') if is_object else b"[")
        ingestion = ingest(
            chain([head + first], stream),
            path,
            default_threads(),
            lambda _: None,
            into=_Events(file, result),
            collect=event_texts,
        )
        file.write(b"\n]" + (_tail(ingestion.head, ingestion.tail) + b"}" if is_object else b"") + b"\n")
    lost_values = top_values(ingestion.head, ingestion.tail)[1]
    result.diagnostics = [
        *source.diagnostics,
        *truncation(ingestion.lost_bytes, ingestion.end),
        *ingestion.tally.diagnostics(ingestion.end, span_ns=0),
        *damage_outside_events(ingestion.tail, lost_values, ingestion.arrays),
    ]
    return result


def _members(text: bytes, at: int) -> bytes:
    """The members before the events, each followed by a comma."""
    at = text.find(b"{") + 1
    return b"".join(member + b", " for member in _strict_members(text, at))


def _strict_members(text: bytes, at: int) -> Iterator[bytes]:
    spans = walk_members(text, at).places
    for key_start, key_end, start, end in spans[spans[:, 3] >= 0].tolist():
        key = text[key_start:key_end]
        if key == EVENTS_KEY:
            continue
        top, lost_count = top_values(b"{" + key + b":" + text[start:end] + b"}", b"")
        if not lost_count:
            yield _member(top, key, text[start:end])


def _member(top: Mapping[str, Any], key: bytes, value: bytes) -> bytes:
    name = key if is_strict(key) else as_json(text_of(key))
    return name + b": " + (value if is_strict(value) else strict_value(as_json(next(iter(top.values())))))


def _tail(head: bytes, tail: bytes) -> bytes:
    """The members after the events; also the base time if it wasn't readable as a member."""
    members = list(_strict_members(tail, 0))
    top, _ = top_values(head, tail)
    base = base_ns(top, head, tail)
    if base and "baseTimeNanoseconds" not in top:
        members.append(b'"baseTimeNanoseconds": %d' % base)
    return b"".join(b", " + member for member in members)


@contextmanager
def _write_copy(out: str) -> Iterator[IO[bytes]]:
    """A file that appears when it is complete, compressed if its name ends in .gz."""
    try:
        with atomic_write(out) as file:
            if not out.endswith(".gz"):
                yield file
                return
            with igzip.IGzipFile(out, "wb", fileobj=file) as gzip_file:
                yield cast("IO[bytes]", gzip_file)
    except OSError as error:
        raise RepairError(f"{out}: the file can't be written: {error.strerror or error}.") from error
