"""One timeline as one file, in the format of `columns`; its arrays are mapped into memory instead of read.

The system can evict mapped pages, so many timelines take little memory. Entries are never truncated, only removed as a
whole, which leaves existing mappings intact.

Compiled functions follow its indices without bounds checks. So all indices are checked once, when an entry is opened,
which reads each array once more than its checksum does.
"""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import IO, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.native import Function
from ...timeline.core.model import CATEGORIES, FRAMES, Labels, Timeline, Track
from ...timeline.core.pyramid import Levels, Pyramid, Rows
from ...trace import Trace
from .columns import Reader, Writer
from .values import BrokenEntry, mapping, sequence, whole

_are_offsets = Function("are_offsets")
_begin_in_order = Function("begin_in_order")
_are_parents_first = Function("are_parents_first")
_have_room = Function("have_room")

MAGIC = b"kinetoscope tile2\n"
LARGEST_NS = 1 << 53  # 104 days: times of tiles and bins can be multiplied
_MOST_SHIFT = 62
Ints = NDArray[np.integer]
_DTYPES = {
    **dict.fromkeys(("start_ns", "dur_ns", "busy_ns", "first", "of_row", "shift"), "<i8"),
    **dict.fromkeys(("label", "slice", "count", "number"), "<u4"),
}
_TEXTS, _NUMBERS = ("process", "name", "part", "pid", "tid"), ("first_row", "lanes", "slices")


def write(file: IO[bytes], timeline: Timeline, source: dict[str, Any]) -> None:
    """Write the timeline to an empty file; `source` identifies the trace, as JSON values."""
    writer = Writer(file, MAGIC, is_mapped=True)
    pyramid, labels = timeline.pyramid, timeline.labels
    writer.end(
        {
            "source": source,
            "window": timeline.window,
            "frame_first": timeline.frame_first,
            "tracks": writer.json([asdict(track) for track in timeline.tracks]),
            "texts": writer.texts(pl.Series(labels.texts, dtype=pl.String)),
            "rows": _write_arrays(writer, pyramid.rows),
            "levels": _write_arrays(writer, pyramid.levels),
            "categories": writer.array(labels.categories),
            "parent": writer.array(timeline.parent),
            "event": writer.array(timeline.event),
        }
    )


def read(reader: Reader, trace: Trace) -> Timeline:
    """The timeline of the trace in the entry; its arrays are those that the reader opened.

    Raises:
        BrokenEntry: It is forged, or belongs to another trace.
    """
    head = reader.head
    texts = [text or "" for text in reader.texts(head.get("texts"))]
    window = _window(head.get("window"))
    rows = Rows(**_arrays(reader, Rows, head.get("rows"), window))
    levels = Levels(**_arrays(reader, Levels, head.get("levels"), window))
    size = rows.start_ns.size
    frame_first = tuple(np.cumsum([0, *(getattr(trace, name).height for name in FRAMES)]).tolist())
    if head.get("frame_first") != list(frame_first):
        raise BrokenEntry("it belongs to another trace")
    timeline = Timeline(
        window=window,
        tracks=_tracks(reader.json(head.get("tracks")), rows.first, trace.threads.height),
        labels=Labels(texts, reader.array(head.get("categories"), "|u1", len(texts))),
        pyramid=Pyramid(rows, levels),
        parent=reader.array(head.get("parent"), "<i4", size),
        event=reader.array(head.get("event"), "<u4", size),
        frame_first=frame_first,
    )
    _fail_if_astray(timeline)
    return timeline


def _write_arrays(writer: Writer, holder: Rows | Levels) -> dict[str, Any]:
    arrays = {field.name: getattr(holder, field.name) for field in fields(holder)}
    return {name: writer.array(array) for name, array in arrays.items() if array is not None}


def _arrays(reader: Reader, holder: type[Rows | Levels], head: Any, window: tuple[int, int]) -> dict[str, NDArray[Any]]:
    """The arrays of a holder, with consistent lengths; `first` determines the lengths of rows and levels."""
    columns = mapping(head)
    names = [field.name for field in fields(holder) if field.name != "number" or "number" in columns]
    if set(columns) != set(names):
        raise BrokenEntry("it has other arrays")
    arrays = {name: reader.array(columns[name], _DTYPES[name]) for name in names}
    size = arrays["start_ns"].size
    if any(arrays[name].size != size for name in names if name not in ("first", "of_row", "shift")):
        raise BrokenEntry("its arrays differ in length")
    if not _are_offsets(arrays["first"], size):
        raise BrokenEntry("its rows overlap")
    if not _begin_in_order(arrays["start_ns"], arrays["dur_ns"], arrays["first"], *window):
        raise BrokenEntry("its slices aren't in order")
    return arrays


def _window(bounds: Any) -> tuple[int, int]:
    begin, end = (whole(time, -LARGEST_NS, LARGEST_NS) for time in sequence(bounds, 2))
    if end < begin:
        raise BrokenEntry("it ends before it begins")
    return begin, end


def _tracks(items: Any, first: NDArray[np.int64], threads: int) -> tuple[Track, ...]:
    """The tracks, which together have all rows in order."""
    tracks, row = [], 0
    for item in sequence(items):
        track = Track(**_members(mapping(item)))
        lanes_end = track.first_row + track.lanes
        if track.first_row != row or lanes_end >= first.size or track.slices != first[lanes_end] - first[row]:
            raise BrokenEntry("its tracks have other rows")
        if track.thread is not None and not 0 <= track.thread < threads:
            raise BrokenEntry("a track has no thread")
        tracks.append(track)
        row = lanes_end
    if row != first.size - 1:
        raise BrokenEntry("its tracks have other rows")
    return tuple(tracks)


def _members(members: Any) -> dict[str, Any]:
    if set(members) != {field.name for field in fields(Track)}:
        raise BrokenEntry("a track has other members")
    for name, value in members.items():
        if name in _TEXTS and not isinstance(value, str | None):
            raise BrokenEntry(f"a track's {name} isn't text")
        if name in _NUMBERS:
            whole(value, 0)
        elif name not in _TEXTS and value is not None:
            whole(value, -(1 << 63), (1 << 63) - 1)
    return dict(members)


def _fail_if_astray(timeline: Timeline) -> None:
    """Check that each index is in range."""
    rows, levels, labels = timeline.pyramid.rows, timeline.pyramid.levels, timeline.labels
    size, texts = timeline.size, len(labels.texts)
    bounds: list[tuple[NDArray[Any], int, int]] = [
        (labels.categories, 0, len(CATEGORIES)),
        (rows.label, 0, texts),
        (levels.label, 0, texts),
        (levels.slice, 0, size),
        (levels.shift, 0, _MOST_SHIFT),
        (levels.busy_ns, 0, 2 * LARGEST_NS + 1),
        (timeline.parent, NONE, size),
        (timeline.event, 0, timeline.frame_first[-1]),
    ]
    if rows.number is not None:
        bounds.append((rows.number, 0, size))
    for values, least, end in bounds:
        if values.size and not least <= int(values.min()) <= int(values.max()) < end:
            raise BrokenEntry("an index or a duration is out of range")
    if not _are_parents_first(timeline.parent):
        raise BrokenEntry("a slice comes before the one around it")
    of_row, first = levels.of_row, levels.first
    if of_row.size != rows.first.size or not _are_offsets(of_row, levels.shift.size):
        raise BrokenEntry("its levels belong to other rows")
    if first.size != levels.shift.size + 1 or not _have_room(of_row, first, rows.first):
        raise BrokenEntry("its levels have more entries than there are slices")
