"""What is kept of one recording for views of many, as bytes, and as one file of the cache.

    magic · summary · footer · length of the footer (8) · its checksum (4) · magic

A summary's bytes are the length of a head (8), the head, and the frames. They don't say of which file they are: whoever
reads a recording makes them, in a process of its own or far away, and whoever keeps them says what they are of. The
frames are Arrow streams: a run of a thousand ranks is a thousand of them, and Polars opens a stream of a few rows ten
times as fast as a Parquet file.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import polars as pl
from polars.exceptions import PanicException, PolarsError

from ..ranks import FRAMES, Summary
from .entry import BrokenEntry, footer_of, write_footer

MAGIC = b"kinetoscope ranks\n"
_LENGTH = struct.Struct("<Q")
_LARGEST = 1 << 62
_SCHEMAS = {name: pl.Schema(schema) for name, schema in FRAMES.items()}
_NUMBERS = {name: [column for column, kind in of.items() if kind != pl.String] for name, of in _SCHEMAS.items()}
_LISTS = {name: [column for column, kind in of.items() if isinstance(kind, pl.Array)] for name, of in _SCHEMAS.items()}


@dataclass(frozen=True)
class PackedSummary:
    """A summary as bytes, which may come from anybody who can write to a logdir."""

    data: bytes

    @cached_property
    def summary(self) -> Summary:
        """What they say.

        Raises:
            BrokenEntry: They were made up, or by another version.
        """
        try:
            (length,) = _LENGTH.unpack_from(self.data)
            first = _LENGTH.size + length
            head = json.loads(self.data[_LENGTH.size : first])
            frames = {}
            for name in FRAMES:
                start, size = head["frames"][name]
                frames[name] = _frame(self.data[first + start : first + start + size], name)
            summary = Summary(facts=head["facts"], **frames)
            _fail_if_unsound(summary)
        except (ValueError, LookupError, TypeError, AttributeError, struct.error, PolarsError, PanicException) as error:
            raise BrokenEntry(str(error) or type(error).__name__) from error
        return summary


def _frame(data: bytes, name: str) -> pl.DataFrame:
    frame = pl.read_ipc_stream(io.BytesIO(data))
    if frame.schema != _SCHEMAS[name]:
        raise BrokenEntry("its columns are others")
    # column by column: a query for this takes longer than reading
    lists = [frame.get_column(column).explode() for column in _LISTS[name]]
    if any(column.null_count() for column in [*map(frame.get_column, _NUMBERS[name]), *lists]):
        raise BrokenEntry("numbers are missing")
    return frame


def packed(summary: Summary) -> PackedSummary:
    """The summary as bytes."""
    streams, places, at = [], {}, 0
    for name in FRAMES:
        stream = io.BytesIO()
        getattr(summary, name).write_ipc_stream(stream, compression="zstd")
        streams.append(stream.getvalue())
        places[name] = (at, len(streams[-1]))
        at += len(streams[-1])
    head = json.dumps({"facts": dict(summary.facts), "frames": places}).encode()
    return PackedSummary(b"".join([_LENGTH.pack(len(head)), head, *streams]))


def _fail_if_unsound(summary: Summary) -> None:
    """See that rows are told of by numbers of rows that there are, and facts are what they are taken for."""
    steps, calls, legs, facts = summary.steps.height, summary.calls, summary.legs, summary.facts
    told = [(calls["group"], summary.groups.height), (calls["step"], steps), (legs["step"], steps)]
    told += [(legs[name], calls.height) for name in ("meeting", "since")]
    for column, rows in told:
        if column.len() and not -1 <= column.min() <= column.max() < rows:  # type: ignore[operator]
            raise BrokenEntry(f"a row tells of a {column.name} that there isn't")
    if not all(_is_number(facts.get(name)) for name in ("origin_ns", "rank", "world_size")):
        raise BrokenEntry("its facts are none")
    devices = facts.get("devices")
    if not isinstance(devices, list) or not all(isinstance(one, list) and len(one) == 2 for one in devices):
        raise BrokenEntry("its devices are none")


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST)


def write(file: IO[bytes], kept: PackedSummary, source: dict[str, Any]) -> None:
    """Write the summary to an empty file; `source` is what the entry is of, as JSON values."""
    file.write(MAGIC)
    file.write(kept.data)
    write_footer(file, {"source": source, "length": len(kept.data), "checksum": zlib.crc32(kept.data)}, MAGIC)


def opened(file: IO[bytes], source: dict[str, Any]) -> PackedSummary:
    """The summary in the entry.

    Raises:
        BrokenEntry: It is no entry, or one of something else than `source`, or it was damaged.
        LookupError, TypeError: It was made up.
    """
    footer = footer_of(file, MAGIC)
    if footer["source"] != source:
        raise BrokenEntry("it is of another file")
    file.seek(len(MAGIC))
    kept = PackedSummary(file.read(footer["length"]))
    if zlib.crc32(kept.data) != footer["checksum"]:
        raise BrokenEntry("it was damaged")
    _ = kept.summary  # what can't be used is told here
    return kept
