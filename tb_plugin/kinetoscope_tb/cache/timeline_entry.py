"""One timeline as one file, whose arrays are mapped into memory instead of read.

    magic · arrays · footer · length of the footer (8) · its checksum (4) · magic

The footer is JSON: what the timeline is of, its tracks and labels, and where the arrays are, with their checksums.
What isn't looked at again is given back to the system, so many timelines take little memory. Nobody cuts an entry that
others have mapped: it is removed as a whole, which leaves what is mapped as it is.
"""

from __future__ import annotations

import mmap
import zlib
from dataclasses import asdict, fields
from typing import IO, Any

import numpy as np

from ..timeline import Labels, Levels, Pyramid, Rows, Timeline, Track
from .entry import BrokenEntry, footer_of, write_footer

MAGIC = b"kinetoscope tiles\n"
_ALIGNED = 64  # bytes: a line of the processor's cache


def write(file: IO[bytes], timeline: Timeline, source: dict[str, Any]) -> None:
    """Write the timeline to an empty file; `source` is what the entry is of, as JSON values."""
    file.write(MAGIC)
    pyramid, labels = timeline.pyramid, timeline.labels
    footer = {
        "source": source,
        "window": timeline.window,
        "frame_first": timeline.frame_first,
        "tracks": [asdict(track) for track in timeline.tracks],
        "texts": labels.texts,
        "rows": _written(file, pyramid.rows),
        "levels": _written(file, pyramid.levels),
        "categories": _array(file, labels.categories),
        "parent": _array(file, timeline.parent),
        "event": _array(file, timeline.event),
    }
    write_footer(file, footer, MAGIC)


def opened(file: IO[bytes], source: dict[str, Any]) -> Timeline:
    """The timeline in the entry, mapped.

    Raises:
        BrokenEntry: It is no entry, or one of something else than `source`, or it was damaged.
        LookupError, TypeError, ValueError: It was made up.
    """
    footer = footer_of(file, MAGIC)
    if footer["source"] != source:
        raise BrokenEntry("it is of another file")
    whole = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    rows = {name: _mapped(whole, place) for name, place in footer["rows"].items()}
    levels = {name: _mapped(whole, place) for name, place in footer["levels"].items()}
    return Timeline(
        window=tuple(footer["window"]),
        tracks=tuple(Track(**track) for track in footer["tracks"]),
        labels=Labels(footer["texts"], _mapped(whole, footer["categories"])),
        pyramid=Pyramid(Rows(**rows), Levels(**levels)),
        parent=_mapped(whole, footer["parent"]),
        event=_mapped(whole, footer["event"]),
        frame_first=tuple(footer["frame_first"]),
    )


def _written(file: IO[bytes], holder: Rows | Levels) -> dict[str, Any]:
    arrays = {field.name: getattr(holder, field.name) for field in fields(holder)}
    return {name: _array(file, array) for name, array in arrays.items() if array is not None}


def _array(file: IO[bytes], array: np.ndarray) -> dict[str, Any]:
    file.write(bytes(-file.tell() % _ALIGNED))
    start, data = file.tell(), np.ascontiguousarray(array).data.cast("B")
    file.write(data)
    return {"start": start, "dtype": array.dtype.str, "size": array.size, "checksum": zlib.crc32(data)}


def _mapped(whole: mmap.mmap, place: dict[str, Any]) -> np.ndarray:
    dtype = np.dtype(place["dtype"])
    array = np.frombuffer(whole, dtype, place["size"], place["start"])
    if zlib.crc32(array.data.cast("B")) != place["checksum"]:
        raise BrokenEntry(f"what lies at byte {place['start']} was damaged")
    return array
