"""What is kept of one recording for views of many, as one file.

    magic · frames · footer · length of the footer (8) · its checksum (4) · magic

The frames are Arrow streams: a run of a thousand ranks is a thousand entries, and Polars opens a stream of a few rows
ten times as fast as a Parquet file.
"""

from __future__ import annotations

import io
import zlib
from typing import IO, Any

import polars as pl

from ..ranks import Summary
from .entry import BrokenEntry, footer_of, write_footer

MAGIC = b"kinetoscope ranks\n"
_FRAMES = ("steps", "calls", "groups", "traffic", "legs")


def write(file: IO[bytes], summary: Summary, source: dict[str, Any]) -> None:
    """Write the summary to an empty file; `source` is what the entry is of, as JSON values."""
    file.write(MAGIC)
    places = {}
    for name in _FRAMES:
        stream = io.BytesIO()
        getattr(summary, name).write_ipc_stream(stream, compression="zstd")
        data = stream.getvalue()
        places[name] = (file.tell(), len(data), zlib.crc32(data))
        file.write(data)
    write_footer(file, {"source": source, "facts": dict(summary.facts), "frames": places}, MAGIC)


def opened(file: IO[bytes], source: dict[str, Any]) -> Summary:
    """The summary in the entry.

    Raises:
        BrokenEntry: It is no entry, or one of something else than `source`, or it was damaged.
        PolarsError, LookupError, TypeError: It was made up.
    """
    footer = footer_of(file, MAGIC)
    if footer["source"] != source:
        raise BrokenEntry("it is of another file")
    frames = {name: _frame(file, *footer["frames"][name]) for name in _FRAMES}
    return Summary(facts=footer["facts"], **frames)


def _frame(file: IO[bytes], start: int, length: int, checksum: int) -> pl.DataFrame:
    file.seek(start)
    data = file.read(length)
    if zlib.crc32(data) != checksum:
        raise BrokenEntry(f"what lies at byte {start} was damaged")
    return pl.read_ipc_stream(io.BytesIO(data))
