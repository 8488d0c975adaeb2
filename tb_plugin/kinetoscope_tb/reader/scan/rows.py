"""Events sorted into frames while they are scanned: still codes of texts and the file's times, in the file's order.

The scanning threads sort their events (`sorted_out`), the reading thread appends them (`Rows`), so a column of the
whole file exists once, in the narrowest type that fits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.constants import per_value, repeat_value
from ...arrays.gather import NONE
from ...arrays.native import Function
from .columns import ARG_AT, ARGS, EVENT_CODES, GrowingArray, narrow
from .counters import CounterLines
from .kinds import Kind, kinds
from .scanner import CODE, EVENTS, MISSING, Out

_spread = Function("spread")

OPEN, BACKWARDS, ENDLESS = -2, -3, -4
"""Durations of an event whose end isn't known, such as one of phase B until its end is found; of events that end before
they begin; of events that last longer than any recording. Frames have the first alone."""

NO_NAME = b"(no name)"
"""The name of events without one: not a JSON token."""

_ABSENT = np.array([NONE], np.int8)
_BEGINS = b'"B"'
_LATEST_NS, _EARLIEST_NS, LONGEST_NS = 2**61, -(2**60), 2**52
"""Times beyond these are damage: over 30 years from zero, and durations over 52 days."""


@dataclass(frozen=True)
class Layout:
    """The columns of one frame.

    Args:
        first, last: The kinds of events that belong to it.
        codes: The texts that every event has.
        args: The arguments, by their column.
        is_timed: Whether the events lie on the time axis.
    """

    first: Kind
    last: Kind
    codes: tuple[str, ...]
    args: tuple[str, ...] = ()
    is_timed: bool = True


_PLACE = ("name", "pid", "tid")
LAYOUTS = {
    "names": Layout(Kind.META, Kind.META, _PLACE, ("label",), is_timed=False),
    "host_events": Layout(
        Kind.OPERATOR,
        Kind.ANNOTATION,
        _PLACE,
        (
            "external_id",
            "sequence",
            "fwd_thread",
            "input_shapes",
            "input_types",
            "concrete_inputs",
            "call_stack",
            "finished",
            "merged_rank",
            "own_pid",
        ),
    ),
    "launches": Layout(
        Kind.RUNTIME, Kind.DRIVER, _PLACE, ("correlation", "external_id", "kernel", "merged_rank", "own_pid")
    ),
    "device_events": Layout(
        Kind.KERNEL,
        Kind.MEMSET,
        _PLACE,
        (
            "device",
            "stream",
            "original_stream",
            "correlation",
            "external_id",
            "bytes",
            "copy_kind",
            "source_kind",
            "target_kind",
            "memory_kind",
            "grid",
            "block",
            "registers_per_thread",
            "shared_memory_bytes",
            "blocks_per_sm",
            "occupancy_percent",
            "occupancy_limiter",
            "collective",
            "graph_id",
            "graph_node_id",
            "label",
            "from_device",
            "to_device",
            "task_type",
            "own_pid",
        ),
    ),
    "memory": Layout(
        Kind.MEMORY,
        Kind.MEMORY,
        _PLACE,
        ("memory_device_type", "memory_device", "memory_address", "memory_bytes", "total_allocated", "total_reserved"),
    ),
    "python_calls": Layout(Kind.PYTHON, Kind.PYTHON, _PLACE, ("python_id", "python_parent_id", "module_id")),
    "flows": Layout(Kind.FLOW, Kind.FLOW, ("category", "phase", "pid", "tid"), ("id",)),
    "syncs": Layout(
        Kind.SYNC,
        Kind.SYNC,
        ("name", "category", "pid", "tid"),
        (
            "device",
            "stream",
            "correlation",
            "sync_kind",
            "wait_on_stream",
            "wait_on_event",
            "wait_on_record",
            "event_id",
        ),
    ),
    "others": Layout(Kind.OTHER, Kind.UNKNOWN, ("name", "category", "phase", "pid", "tid"), ("task_type",)),
    "ends": Layout(Kind.END, Kind.END, ("pid", "tid")),
}
"""Every event belongs to one of these frames by its kind; those of kind UNTIMED to none."""

COLLECTIVES = Layout(
    Kind.META,
    Kind.META,
    (),
    (
        "collective",
        "dtype",
        "in_elements",
        "out_elements",
        "in_split",
        "out_split",
        "group_size",
        "group",
        "group_description",
        "group_ranks",
        "rank",
        "source_rank",
        "target_rank",
        "nth",
        "is_asynchronous",
    ),
    is_timed=False,
)
"""Columns that few host and device events have: a separate frame, linked to them by offset."""

_TELLING = ("collective", "in_elements", "group_size", "group")  # the others occur at other events too
_NAMES = tuple(LAYOUTS)
_HAS_COLLECTIVES = np.array([*(name in ("host_events", "device_events") for name in _NAMES), False])
"""By a frame's place in LAYOUTS; the last place is that of events in no frame."""

_AT = {arg.column: at for at, arg in ARG_AT.items()}
_CODES = frozenset({*EVENT_CODES, *(arg.column for arg in ARGS if arg.kind == CODE)})
_FRAME_OF_KIND = np.full(len(Kind), NONE, np.int8)
for _nth, _layout in enumerate(LAYOUTS.values()):
    _FRAME_OF_KIND[_layout.first : _layout.last + 1] = _nth


@dataclass
class Occurrences:
    """A number of events, and the offset of the first."""

    count: int = 0
    first: int | None = None

    def add(self, count: int, first: int | None) -> None:
        """Count later ones."""
        self.count += count
        if self.first is None:
            self.first = first

    def add_where(self, where: NDArray[np.bool_], offsets: NDArray[np.int64]) -> None:
        """Count the events at these offsets."""
        rows = np.flatnonzero(where)
        if rows.size:
            self.add(int(rows.size), int(offsets[rows[0]]))


@dataclass(frozen=True)
class Part:
    """The events of one scan; codes count within `tokens`. A frame without events is left out."""

    events: int
    tokens: list[bytes]
    frames: dict[str, dict[str, NDArray[Any]]]
    untimed: Occurrences
    begun: Occurrences
    counters: CounterLines


def sorted_out(out: Out, tokens: list[bytes], offset: int, counters: CounterLines) -> Part:
    """Sort the events of a scan into frames.

    Args:
        out: What the scanner wrote.
        tokens: The text of each code.
        offset: Of the scanned text in the file.
        counters: The text of the counters among them.
    """
    n = int(out.state[EVENTS])
    codes = dict(zip(EVENT_CODES, out.codes[:, :n], strict=True))
    kind = kinds(codes["phase"], codes["category"], codes["name"], codes["pid"], tokens)
    _name_nameless(codes["name"], kind, tokens)
    offsets = out.offsets[:n] + offset
    ts, dur = out.times[0, :n], out.times[1, :n]
    without_time, open_begins = Occurrences(), Occurrences()
    untimed_rows = (kind != Kind.META) & ((ts < _EARLIEST_NS) | (ts > _LATEST_NS))
    is_end = (kind == Kind.END) & (ts != MISSING)  # an end of an impossible time still ends something
    ts = np.where(is_end, np.clip(ts, _EARLIEST_NS, _LATEST_NS), ts)
    untimed_rows &= ~is_end
    without_time.add_where(untimed_rows, offsets)
    kind[untimed_rows] = Kind.UNTIMED
    dur = np.where(dur < 0, np.where(dur == MISSING, NONE, BACKWARDS), dur)
    dur[dur > LONGEST_NS] = ENDLESS
    if _BEGINS in tokens:
        begins = codes["phase"] == tokens.index(_BEGINS)
        open_begins.add_where(begins, offsets)
        dur[begins] = OPEN
    frames = _frames(out, codes, kind, ts, dur, offsets)
    return Part(n, tokens, frames, without_time, open_begins, counters)


def _frames(
    out: Out,
    codes: dict[str, NDArray[np.int32]],
    kind: NDArray[np.int8],
    ts: NDArray[np.int64],
    dur: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> dict[str, dict[str, NDArray[Any]]]:
    """The columns of the events of a scan, by the frame that each kind belongs to."""
    frame_of = _FRAME_OF_KIND[kind]
    position = np.empty(kind.size, np.int32)
    frames = {}
    for nth in np.flatnonzero(np.bincount(frame_of + 1, minlength=len(LAYOUTS) + 1)[1:]).tolist():
        rows = np.flatnonzero(frame_of == nth)
        position[rows] = np.arange(rows.size, dtype=np.int32)
        layout = LAYOUTS[_NAMES[nth]]
        columns: dict[str, NDArray[Any]] = {name: codes[name][rows] for name in layout.codes}
        if layout.is_timed:
            columns["ts"], columns["dur"] = ts[rows], narrow(dur[rows])
            columns["offset"], columns["length"] = narrow(offsets[rows]), out.lengths[: kind.size][rows]
            columns["kind"] = kind[rows]
        else:
            columns["offset"] = narrow(offsets[rows])
        for name in layout.args:
            columns[name] = _dense(out, name, frame_of, position, nth, rows.size)
        frames[_NAMES[nth]] = columns
    if any(out.arg_counts[_AT[name]] for name in _TELLING):
        collectives = _collectives(out, frame_of, offsets)
        if collectives["offset"].size:
            frames["collectives"] = collectives
    return frames


def _name_nameless(name: NDArray[np.int32], kind: NDArray[np.int8], tokens: list[bytes]) -> None:
    """Give events without a name the default one."""
    nameless = np.flatnonzero((name < 0) & (kind != Kind.META))
    if nameless.size:
        name[nameless] = len(tokens)
        tokens.append(NO_NAME)


def _collectives(out: Out, frame_of: NDArray[np.int8], offsets: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """The columns of COLLECTIVES, for the events that take part in one."""
    counts = {name: int(out.arg_counts[_AT[name]]) for name in COLLECTIVES.args}
    takes_part = np.zeros(frame_of.size, bool)
    for name in _TELLING:
        takes_part[out.arg_rows[_AT[name], : counts[name]]] = True
    takes_part &= _HAS_COLLECTIVES[frame_of]
    rows = np.flatnonzero(takes_part)
    position = np.full(frame_of.size, NONE, np.int32)
    position[rows] = np.arange(rows.size, dtype=np.int32)
    columns: dict[str, NDArray[Any]] = {"offset": narrow(offsets[rows])}
    for name, count in counts.items():
        at, value = position[out.arg_rows[_AT[name], :count]], out.arg_values[_AT[name], :count]
        ours = np.flatnonzero(at >= 0)[::-1]  # a kernel's mark may repeat a key: its first value counts
        columns[name] = np.full(rows.size, NONE, np.int64)
        columns[name][at[ours]] = value[ours]
    return columns


def _dense(
    out: Out, arg: str, frame_of: NDArray[np.int8], position: NDArray[np.int32], frame: int, size: int
) -> NDArray[Any]:
    """One value per event of the frame, NONE where it is missing."""
    column = _AT[arg]
    count = int(out.arg_counts[column])
    if not count:
        return repeat_value(_ABSENT, size)
    values = np.full(size, NONE, np.int64)
    rows, numbers = out.arg_rows[column, :count], out.arg_values[column, :count]
    _spread(rows, numbers, frame_of, position, frame, arg == "correlation", values)
    return values if arg in _CODES else narrow(values)


def _map(code_of: NDArray[np.signedinteger[Any]], codes: NDArray[Any]) -> NDArray[Any]:
    """The file's codes for a part's, in two bytes or less where they fit."""
    is_wide = code_of.itemsize > np.dtype(np.int16).itemsize
    return per_value(lambda part: narrow(code_of[part]) if is_wide else code_of[part], codes)


class Rows:
    """The events of one frame, column by column."""

    def __init__(self, layout: Layout) -> None:
        names = (*layout.codes, *layout.args, *(("ts", "dur", "length", "kind") if layout.is_timed else ()), "offset")
        self._columns = {name: GrowingArray(np.int64 if name == "ts" else np.int8) for name in names}

    def append(self, part: dict[str, NDArray[Any]], code_of: NDArray[np.signedinteger[Any]]) -> None:
        """Append a part's events; `code_of` turns its codes into the file's, its last place is for -1."""
        for name, values in part.items():
            self._columns[name].append(_map(code_of, values) if name in _CODES else values)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name].array()

    def __contains__(self, name: str) -> bool:
        return name in self._columns

    def codes(self) -> Iterator[NDArray[Any]]:
        """The columns that hold codes of texts."""
        return (column.array() for name, column in self._columns.items() if name in _CODES)

    def gather(self, name: str) -> NDArray[Any]:
        """Remove and return the column, so that its memory is freed after the caller's last use."""
        return self._columns.pop(name).array()

    def put(self, name: str, rows: NDArray[Any], values: NDArray[np.int64]) -> None:
        """Set a column's numbers at some rows."""
        if not rows.size:
            return
        column = self.gather(name).astype(np.int64)
        column[rows] = values
        self._columns[name] = GrowingArray()
        self._columns[name].append(narrow(column))

    def select(self, mask: NDArray[np.bool_]) -> Rows:
        """The events of a mask, as rows of their own."""
        selection = copy(self)
        selection._columns = {name: column.select(mask) for name, column in self._columns.items()}
        return selection

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Drop the other events."""
        for column in self._columns.values():
            column.keep(mask)


@dataclass
class SortedEvents:
    """All events of a file by frame.

    Attributes:
        events: How many there are, including those in no frame.
        untimed: Events without a usable time.
        begun: Events that only begin a range.
        counters: The text of counters.
    """

    events: int = 0
    frames: dict[str, Rows] = field(
        default_factory=lambda: {
            name: Rows(layout) for name, layout in (*LAYOUTS.items(), ("collectives", COLLECTIVES))
        }
    )
    untimed: Occurrences = field(default_factory=Occurrences)
    begun: Occurrences = field(default_factory=Occurrences)
    counters: list[CounterLines] = field(default_factory=list)
    _codes: dict[bytes, int] = field(default_factory=lambda: {NO_NAME: 0})  # wherever a block ends, it comes first

    @property
    def tokens(self) -> list[bytes]:
        """The text of each code."""
        return list(self._codes)

    def append(self, part: Part) -> None:
        """Append a part's events."""
        codes = self._codes
        code_of = narrow(np.array([*(codes.setdefault(token, len(codes)) for token in part.tokens), NONE]))
        for name, columns in part.frames.items():
            self.frames[name].append(columns, code_of)
        self.events += part.events
        self.untimed.add(part.untimed.count, part.untimed.first)
        self.begun.add(part.begun.count, part.begun.first)
        if part.counters.offset.size:
            self.counters.append(part.counters)

    def select(self, masks: Mapping[str, NDArray[np.bool_]]) -> SortedEvents:
        """Some events of each frame; what was counted of all is that of all."""
        frames = {name: rows.select(masks[name]) for name, rows in self.frames.items()}
        timed_masks = (mask for name, mask in masks.items() if name != "collectives")
        events = sum(int(mask.sum()) for mask in timed_masks)
        return replace(self, events=events, frames=frames, untimed=copy(self.untimed), begun=copy(self.begun))

    def code(self, token: bytes) -> int:
        """The code of a token, a new one if there is none."""
        return self._codes.setdefault(token, len(self._codes))

    def timed_frames(self) -> Iterator[Rows]:
        """The frames whose events lie on the time axis."""
        return (self.frames[name] for name, layout in LAYOUTS.items() if layout.is_timed)
