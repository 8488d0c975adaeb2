"""Summaries of many recordings as one file, which is stored next to them and may come from another machine.

    magic · summaries · index · length of the index (8) · magic

The index has the format of `columns`: the version that computed the summaries, and for each recording its name, size,
stamp and key, and the position of its summary. A recording's stamp changes when the file is touched; its key is the
same even for a copy. The file is untrusted: positions are checked against its size before anything is read.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import polars as pl

from ...errors import TraceError
from ...filesystem import StoredFile, entry_at, stored_bytes
from .columns import Reader, Writer
from .summary_entry import MOST_BYTES, ImpossibleSummary, PackedSummary
from .values import BrokenEntry, mapping, whole
from .version import sources_version

MAGIC = b"kinetoscope packs\n"
FILE_NAME = "kinetoscope.summaries"
_INDEX_MAGIC = b"kinetoscope index\n"
_TAIL = struct.Struct(f"<Q{len(MAGIC)}s")
_MOST_INDEX_BYTES = 1 << 26
_SKIPPED_BYTES = 1 << 20  # a longer gap is skipped by opening the file again after it
_ENDS = 1 << 16  # bytes of a recording's start and end that its key is computed from


@dataclass(frozen=True)
class Record:
    """A summary in a pack.

    Args:
        name: Of its recording, which is in the same folder.
        bytes: The recording's size.
        stamp: The recording's stamp, as JSON.
        key: The recording's `content_key`.
        start: The offset of the summary in the pack.
        length: The summary's length.
        checksum: The summary's CRC-32.
    """

    name: str
    bytes: int
    stamp: str
    key: str
    start: int
    length: int
    checksum: int


def content_key(path: str, size: int) -> str:
    """A digest of a recording's start and end: equal for two recordings of one size only if they are copies.

    The start of a recording identifies its process and time, and a compressed one ends with a checksum of all of it.

    Raises:
        TraceError: The file can't be read.
    """
    last = max(0, size - _ENDS)
    digest = hashlib.sha256(f"{size} ".encode())
    digest.update(stored_bytes(path, 0, _ENDS))
    digest.update(stored_bytes(path, last, size - last))
    return digest.hexdigest()


_TEXTS, _NUMBERS = ("name", "stamp", "key"), ("bytes", "start", "length", "checksum")


def write_end(file: IO[bytes], records: Sequence[Record], patterns: str = "") -> None:
    """End a pack; `patterns` is the digest of the communication patterns of its summaries."""
    begin = file.tell()
    writer = Writer(file, _INDEX_MAGIC)
    columns: dict[str, Any] = {}
    for name in _TEXTS:
        columns[name] = writer.texts(pl.Series([getattr(record, name) for record in records], dtype=pl.String))
    for name in _NUMBERS:
        columns[name] = writer.integers(np.array([getattr(record, name) for record in records], np.int64))
    head = {"version": sources_version(), "patterns": patterns, "places": len(records), "columns": columns}
    writer.end(head)
    file.write(_TAIL.pack(file.tell() - begin, MAGIC))


def records_in(path: str, patterns: str = "") -> dict[str, Record] | None:
    """The summaries of a pack by the names of their recordings; None if there is no pack.

    `patterns` is the digest of the communication patterns that its summaries must have been computed with.

    Raises:
        BrokenEntry: It isn't a pack, is damaged, or was written by another version or with other patterns.
        TraceError: It can't be read.
    """
    entry = entry_at(path)
    if entry is None:
        return None
    size = entry.bytes or 0
    if size < len(MAGIC) + _TAIL.size:
        raise BrokenEntry("it is too short")
    tail = stored_bytes(path, size - _TAIL.size, _TAIL.size)
    length, magic = _TAIL.unpack(tail) if len(tail) == _TAIL.size else (0, b"")
    begin = size - _TAIL.size - length
    if magic != MAGIC or length > _MOST_INDEX_BYTES or begin < len(MAGIC):
        raise BrokenEntry("it has no index")
    index = Reader.of(stored_bytes(path, begin, length), _INDEX_MAGIC)
    if index.head.get("version") != sources_version():
        raise BrokenEntry("another version of Kinetoscope wrote it")
    if index.head.get("patterns") != patterns:
        raise BrokenEntry("it was written with other communication patterns")
    records = _records(index)
    at = len(MAGIC)
    for record in sorted(records, key=lambda record: record.start):
        if record.start < at or not 0 <= record.length <= min(MOST_BYTES, begin - record.start):
            raise BrokenEntry("its summaries are beyond its end, or overlap")
        at = record.start + record.length
    return {record.name: record for record in records}


def _records(index: Reader) -> list[Record]:
    count = whole(index.head.get("places"), 0, 1 << 31)
    columns = mapping(index.head.get("columns"))
    texts = {name: index.texts(columns.get(name), count) for name in _TEXTS}
    numbers = {name: index.integers(columns.get(name), 8, count).tolist() for name in _NUMBERS}
    if len(set(texts["name"])) != count or any(None in column for column in texts.values()):
        raise BrokenEntry("its recordings aren't distinct")
    rows = zip(*texts.values(), *numbers.values(), strict=True)
    return [Record(**dict(zip((*_TEXTS, *_NUMBERS), row, strict=True))) for row in rows]


def summaries_in(path: str, records: Iterable[Record]) -> Iterator[tuple[Record, PackedSummary | ImpossibleSummary]]:
    """Some summaries of a pack, in the order of the file, or why one can't be used.

    Args:
        path: The pack.
        records: Some of `records_in` it.

    Raises:
        BrokenEntry: One is damaged or forged.
        TraceError: The file can't be read.
    """
    file, at = StoredFile(path), 0
    try:
        for record in sorted(records, key=lambda record: record.start):
            if record.start - at > _SKIPPED_BYTES:
                file.close()
                file, at = StoredFile(path, record.start), record.start
            _read(file, record.start - at)
            entry = PackedSummary(_read(file, record.length))
            at = record.start + record.length
            if zlib.crc32(entry.data) != record.checksum:
                raise BrokenEntry(f"the summary of {record.name} is damaged")
            try:
                _ = entry.summary  # raises here if it can't be used
            except ImpossibleSummary as error:
                yield record, error
            else:
                yield record, entry
    finally:
        file.close()


def _read(file: StoredFile, count: int) -> bytes:
    parts = []
    while count > 0:
        data = file.read(min(count, 1 << 20))
        if not data:
            raise TraceError(file.path, "the file ends too early.")
        parts.append(data)
        count -= len(data)
    return b"".join(parts)


def as_stored(stamp: Any) -> str:
    """A stamp as a pack stores it."""
    return json.dumps(stamp, default=str)
