"""The first bytes of a file: whether it is a trace, and which process recorded it.

A trace in JSON begins with metadata about the machine and the job, or directly with events. Traces recorded on demand
have rank and host after the events (kineto's `output_json.cpp`): they are named by their file name alone.
"""

from __future__ import annotations

import json
import re
import zlib
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ..errors import TraceError
from ..filesystem import (
    DamagedDatabase,
    Database,
    Entry,
    begins_database,
    begins_snapshot,
    begins_speedscope,
    is_url,
    stored_bytes,
)
from ..names.regex import regex

HEAD_BYTES = 64 << 10
MOST_HEADS = 1 << 14  # that are cached, at about 500 bytes each
MOST_REMOTE = 32  # that are fetched for one listing: the others must wait for the next
MOST_NAME = 128

_FIRST_READ = 4 << 10
_MOST_FIELDS = 16
_FIXED = {1: 8, 5: 4}  # protobuf's types of fixed length, in bytes
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}

_NSIGHT_TEXTS = "StringIds"
_NSIGHT_EVENTS = frozenset(
    {
        "NVTX_EVENTS",
        *(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "RUNTIME")),
    }
)
"""Tables of Nsight Systems' SQLite export; the reader has more of them."""

_EVENTS = regex(r'"traceEvents"\s*:')
_SCHEMA = regex(r'\s*\{\s*"schemaVersion"\s*:')
_TORCH_KEY = regex(r'"(deviceProperties|distributedInfo|baseTimeNanoseconds|displayTimeUnit|trace_id)"\s*:')
_EVENT_ARRAY = regex(  # whatever the arguments are, and wherever in an event
    r'\s*\[[\s,]*\{(?:[^{}]*?"ph"\s*:|(?=.{0,4096}?"(?:ts|pid)"\s*:).{0,4096}?"ph"\s*:\s*"[A-Za-z]")', re.DOTALL
)
_RANKS = (
    regex(r'"kinetoscope"\s*:\s*\{.{0,4096}?"global_rank"\s*:\s*(\d{1,9})', re.DOTALL),
    regex(r'"distributedInfo"\s*:\s*\{[^{}\[\]]*?"rank"\s*:\s*"?(\d{1,9})'),
    regex(r'"global_rank"\s*:\s*"?(\d{1,9})'),
)
_STARTED = regex(r'"kinetoscope"\s*:\s*\{[^{}]{0,4096}?"started_ns"\s*:\s*(\d{19})')
_MERGED_WORKERS = regex(r'"mergedWorkers"\s*:\s*(\[(?:\s*"(?:[^"\\]|\\.)*"\s*,?)*\])')
_LABELED_PID = regex(r'"pid"\s*:\s*"\[[A-Z]{2,3}\d{2,6}(?:-[A-Z]{2,3}\d{2,6})*\] |"pid_raw"\s*:')
"""Events of a file that SGLang's merger or TraceLens' TraceFuse wrote."""
_HOST = regex(rf'"host_name"\s*:\s*"([\w.:-]{{1,{MOST_NAME}}})"')


@dataclass(frozen=True)
class Head:
    """What is known from the first bytes of a file; None is unknown.

    Args:
        is_trace: Whether it is a trace.
        rank: The rank over the whole job.
        host: The machine that recorded it.
        workers: The workers whose files our own `merge` merged into it.
        is_merged: Whether another tool merged it.
        problem: Why it can't be read.
        started_ns: When our recorder began the recording, in ns since 1970; 0: unknown.
        is_snapshot: Whether it is a memory snapshot.
    """

    is_trace: bool | None = None
    rank: int | None = None
    host: str | None = None
    workers: tuple[str, ...] = ()
    is_merged: bool = False
    problem: str = ""
    started_ns: int = 0
    is_snapshot: bool = False

    @property
    def has_own_run(self) -> bool:
        """Whether the file is a run by itself."""
        return self.is_merged or self.is_snapshot or bool(self.workers)


UNKNOWN = Head()


class Heads:
    """The heads of files, each read once until its file changes.

    Their number is limited; files beyond it are known by their name alone. Only some remote files are read per listing,
    so that the first listing isn't delayed.
    """

    def __init__(self, most: int = MOST_HEADS, most_remote: int = MOST_REMOTE) -> None:
        self._most, self._most_remote = most, most_remote
        self._cached: dict[str, tuple[Any, Head]] = {}
        self._listed: set[str] = set()
        self._left = most_remote

    def begin(self) -> None:
        """Begin a listing: drop files that the last one no longer contained."""
        self._cached = {path: head for path, head in self._cached.items() if path in self._listed}
        self._listed, self._left = set(), self._most_remote

    def head(self, entry: Entry) -> Head:
        """The head of a file; `UNKNOWN` if it has to wait for a later listing."""
        self._listed.add(entry.path)
        stamp, head = self._cached.get(entry.path, (None, UNKNOWN))
        if entry.path not in self._cached or stamp != entry.stamp:
            if is_url(entry.path) and self._left <= 0:
                return head
            if len(self._cached) >= self._most and entry.path not in self._cached:
                return UNKNOWN
            self._left -= is_url(entry.path)
            try:
                head = _head_of(entry.path)
            except TraceError as error:
                return _unread(entry.path, error)
            self._cached[entry.path] = entry.stamp, head
        return head


def _unread(path: str, error: TraceError) -> Head:
    """A file without read permission; not cached, because its stamp doesn't change with its permissions."""
    may_come = is_url(path) or isinstance(error.__cause__, FileNotFoundError)  # try again in the next listing
    return UNKNOWN if may_come else Head(problem=error.problem)


def _head_of(path: str) -> Head:
    """Read as much as is needed."""
    if not is_url(path):
        data = stored_bytes(path, 0, _FIRST_READ)
        if begins_database(data):
            return _head_of_database(path)
        head, is_whole = head_in(data)
        if is_whole or len(data) < _FIRST_READ:
            return head
    return head_in(stored_bytes(path, 0, HEAD_BYTES, tries=1))[0]


def _head_of_database(path: str) -> Head:
    """Whether a local SQLite database is an export of Nsight Systems with events."""
    with closing(Database(path)) as database:
        try:
            schema = database.schema()
        except DamagedDatabase as error:
            problem = f"The schema of this SQLite database can't be read: {error}. Copy or export the file again."
            return Head(is_trace=True, problem=problem)  # it may be one: an export has any name
    names = schema.tables.keys() | schema.unreadable.keys()
    return Head(is_trace=_NSIGHT_TEXTS in names and bool(_NSIGHT_EVENTS & names))


def head_in(data: bytes) -> tuple[Head, bool]:
    """The head in these first bytes of a file, and whether more bytes would not add to it."""
    if data.startswith(_ZSTD):
        return UNKNOWN, True
    try:
        start = _first_text(data) if data.startswith(_GZIP) else data
        start = _first_text(start) if start.startswith(_GZIP) else start  # compressed twice
    except zlib.error as error:
        return Head(problem=f"The gzip data is damaged from the start ({error}). Copy the file again."), True
    if begins_snapshot(start):
        return Head(is_trace=True, is_snapshot=True), True
    if begins_speedscope(start):
        return Head(is_trace=True), True
    if _is_perfetto(start):
        return Head(is_trace=True), True
    text = _text(start)
    if _EVENT_ARRAY.match(text):
        return Head(is_trace=True), True
    events = _EVENTS.search(text)
    if not events and not (_SCHEMA.match(text) and _TORCH_KEY.search(text)):
        return Head(is_trace=False), False
    before = text[: events.start()] if events else text
    rank = next((int(match[1]) for match in (form.search(before) for form in _RANKS) if match), None)
    host = _HOST.search(before)
    start_time = _STARTED.search(before)
    return (
        Head(
            is_trace=True,
            rank=rank,
            host=host[1] if host else None,
            workers=_merged_workers(before),
            is_merged=bool(_LABELED_PID.search(text)),
            started_ns=int(start_time[1]) if start_time else 0,
        ),
        events is not None,
    )


def _merged_workers(before: str) -> tuple[str, ...]:
    """The workers that our own `merge` names before the events."""
    match = _MERGED_WORKERS.search(before)
    try:
        names = json.loads(match[1]) if match else []
    except ValueError:
        names = []
    return tuple(names) if len(names) > 1 and len(set(names)) == len(names) else ()


def _is_perfetto(data: bytes) -> bool:
    """Whether Perfetto's protobuf begins here: a packet (field 1), whose own fields follow one another.

    It names neither rank nor host.
    """
    if not data.startswith(b"\n") or data.lstrip()[:1] in (b"{", b"[", b"<", b""):
        return False
    try:
        length, at = _varint(data, 1)
        end = min(at + length, len(data))
        for _ in range(_MOST_FIELDS):
            if at >= end:
                break
            tag, at = _varint(data, at)
            size, at = (_FIXED.get(tag & 7), at) if tag & 7 != 2 else _varint(data, at)
            if tag & 7 == 0:
                at = _varint(data, at)[1]
            elif size is None or tag < 8:
                return False
            else:
                at += size
    except IndexError:
        return True  # the data ends within the packet
    return length > 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] > 127 and shift < 63:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
    return value | data[at] << shift, at + 1


def _first_text(data: bytes) -> bytes:
    """The text of the first gzip member; if it is damaged, the text before the damage.

    Raises:
        zlib.error: None of it can be inflated.
    """
    try:
        return zlib.decompressobj(wbits=31).decompress(data, HEAD_BYTES)
    except zlib.error:
        return _before_damage(data)


def _before_damage(data: bytes) -> bytes:
    inflater, text = zlib.decompressobj(wbits=31), bytearray()
    try:
        for at in range(len(data)):
            text += inflater.decompress(data[at : at + 1])
    except zlib.error:
        if not text:
            raise
    return bytes(text[:HEAD_BYTES])


def _text(data: bytes) -> str:
    encoding = next((name for mark, name in _UTF16.items() if data.startswith(mark)), "utf-8")
    return data.decode(encoding, "replace").lstrip("\ufeff")
