"""Records of a snapshot, as words of its pickle → frames.

Which device an event is of follows from the list that holds it: `device_traces` has a list for each device. Blocks of
segments without addresses (torch 1.13 to 2.0) follow one another from the address of their segment on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.constants import frame_of, per_value, repeat_value, stores_one
from ...arrays.gather import NONE
from ...trace import model
from ..pickles.machine import NAME_BITS, Kind, Machine, Words
from .decoder import Decoder, Ints, Rows
from .word_columns import WordColumn

Records = Mapping[str, Mapping[str, WordColumn]]
Values = NDArray[Any]

_EVENT, _BLOCK, _HISTORY = 1, 4, 5
_RECORD_BITS = 2 * NAME_BITS
_SETTINGS_KEY = "allocator_settings"
_RECORDER_KEYS = ("kinetoscope", "deviceProperties")


@dataclass(frozen=True)
class SnapshotFrames:
    """What a snapshot holds.

    Args:
        frames: Frames of a Trace by name.
        settings: The allocator's settings.
        recorder_keys: What our recorder adds at the top: its metadata and the devices, as in a trace.
        origin_ns: Unix time of the first event; 0 if it has no times.
        end_ns: From there to the last one.
        unread: Entries that are left out.
    """

    frames: Mapping[str, pl.DataFrame]
    settings: Mapping[str, Any]
    recorder_keys: Mapping[str, Any]
    origin_ns: int
    end_ns: int
    unread: int

    @property
    def is_empty(self) -> bool:
        """Whether it has neither segments nor events."""
        return all(self.frames[name].is_empty() for name in ("snapshot_events", "snapshot_segments"))


def frames_of(machine: Machine, records: Records) -> SnapshotFrames:
    """The frames of everything that was read; the records are freed on the way."""
    return _Builder(machine, records).frames()


@dataclass(frozen=True)
class _Fields:
    """Columns of a frame from the fields of one kind of record.

    Args:
        words: The fields.
        decoder: Decodes them.
        rows: The records that are rows of the frame, in order; None: all of them.
    """

    words: Mapping[str, WordColumn]
    decoder: Decoder
    rows: Ints | None = None

    def values(self, name: str, decode: Callable[[Words], Values]) -> Values:
        """A field, decoded."""
        return _of_rows(self.words[name].decode(decode), self.rows)

    def numbers(self, name: str) -> pl.Series:
        """Integers."""
        return _series(self.values(name, self.decoder.numbers))

    def devices(self) -> pl.Series:
        """Indices of devices."""
        return _series(self.values("device", self.decoder.devices))

    def sizes(self, name: str) -> pl.Series:
        """Sizes in bytes."""
        return _series(self.values(name, self.decoder.sizes))

    def stacks(self) -> pl.Series:
        """The numbers of stacks."""
        return _series(self.values("frames", self.decoder.stack_rows))

    def texts(self, name: str, enum: pl.Enum | None = None) -> pl.Series:
        """Texts."""
        return _enum_column(self.values(name, self.decoder.text_rows), self.decoder.texts, enum)

    def pools(self, name: str) -> pl.Series:
        """Memory pools."""
        rows = self.values(name, self.decoder.pool_rows)
        return _enum_column(rows, self.decoder.pools)


class _Builder:
    def __init__(self, machine: Machine, records: Records) -> None:
        self._machine, self._records, self._decoder = machine, records, Decoder(machine)
        self._unread = 0

    def frames(self) -> SnapshotFrames:
        top, times = self._decoder.pairs(self._machine.root), {}
        for name in ("event", "annotation"):
            times[name] = self._records[name]["time_us"].decode(self._decoder.times)
        origin, end = _first_and_last(times.values())
        segments, blocks = self._segments_and_blocks()
        frames = {
            "snapshot_events": self._events(
                top.get("device_traces", int(Kind.MISSING)), _since(times.pop("event"), origin)
            ),
            "snapshot_segments": segments,
            "snapshot_blocks": blocks,
            "snapshot_frames": self._stack_frames(),
            "snapshot_stacks": self._stacks(),
            "snapshot_annotations": self._annotations(_since(times["annotation"], origin)),
        }
        settings = self._decoder.plain(top.get(_SETTINGS_KEY, int(Kind.MISSING)))
        return SnapshotFrames(
            frames,
            settings if isinstance(settings, dict) else {},
            {key: self._decoder.plain(top[key]) for key in _RECORDER_KEYS if key in top},
            origin,
            end - origin,
            self._unread,
        )

    def _owners(self, lists: Words, kind: int, count: int) -> Rows:
        """Of each record of a kind, which of these lists holds it; NONE if none does."""
        owners = np.full(count, NONE, np.int32)
        for row, word in enumerate(lists.tolist()):
            if word & 15 in (Kind.LIST, Kind.TUPLE):
                self._unread += self._machine.set_owner(word, kind, row, owners)
        return owners

    def _owned_rows(self, owners: Rows) -> tuple[Ints | None, Values]:
        """The records that have an owner, in order of owners, and these owners; None: all records as they are."""
        if owners.size and owners.min() == owners.max() != NONE:
            return None, repeat_value(owners[:1].copy(), owners.size)
        is_read = owners != NONE
        self._unread += int((~is_read).sum())
        rows = np.flatnonzero(is_read)[np.argsort(owners[is_read], kind="stable")]
        return rows, owners[rows]

    def _events(self, traces: int, moments: Ints) -> pl.DataFrame:
        owners = self._owners(self._decoder.items(traces), _EVENT, moments.size)
        rows, devices = self._owned_rows(owners)
        fields, height = _Fields(self._records["event"], self._decoder, rows), devices.size
        columns = {
            "action": fields.texts("action", model.SNAPSHOT_ACTIONS),
            "device": _series(devices),
            "address": fields.numbers("addr"),
            "size": fields.sizes("size"),
            "stream": fields.numbers("stream"),
            "moment": _series(_of_rows(moments, rows)),
            "stack": fields.stacks(),
            "device_free": fields.sizes("device_free"),
            "pool": fields.pools("pool_id"),
            "compile_context": fields.texts("compile_context"),
            "user_metadata": fields.texts("user_metadata"),
        }
        return _frame(model.SNAPSHOT_EVENTS, columns, height)

    def _segments_and_blocks(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        fields = _Fields(self._records["segment"], self._decoder)
        height, lists = fields.words["blocks"].size, fields.words["blocks"].words()
        expandable = fields.values("is_expandable", lambda words: words == (1 << NAME_BITS | Kind.BOOL))
        sizes = ("total_size", "allocated_size", "active_size", "requested_size")
        addresses = fields.values("address", self._decoder.numbers)
        columns = {
            "device": fields.devices(),
            "address": _series(addresses),
            **{name: fields.sizes(name) for name in sizes},
            "stream": fields.numbers("stream"),
            "segment_type": fields.texts("segment_type"),
            "pool": fields.pools("segment_pool_id"),
            "is_expandable": _series(expandable),
            "stack": fields.stacks(),
        }
        return _frame(model.SNAPSHOT_SEGMENTS, columns, height), self._blocks(lists, addresses)

    def _blocks(self, lists: Words, bases: Ints) -> pl.DataFrame:
        """The blocks.

        Args:
            lists: Of each segment the list that holds its blocks.
            bases: Of each segment its address.
        """
        words = self._records["block"]
        rows, segments = self._owned_rows(self._owners(lists, _BLOCK, words["size"].size))
        fields = _Fields(words, self._decoder, rows)
        sizes = fields.values("size", self._decoder.sizes)
        stacks, requests, addresses = self._with_history(fields)
        is_first = np.diff(segments, prepend=NONE - 1) != 0
        ahead = np.cumsum(np.maximum(sizes, 0)) - np.maximum(sizes, 0)
        inside = ahead - np.repeat(ahead[is_first], np.diff(np.append(np.flatnonzero(is_first), segments.size)))
        base = bases[segments] if segments.size else np.empty(0, np.int64)
        columns = {
            "segment": _series(segments),
            "address": _series(np.where(addresses == NONE, base + inside, addresses)),
            "size": _series(sizes),
            "requested_size": _series(requests),
            "state": fields.texts("state", model.SNAPSHOT_STATES),
            "stack": _series(stacks),
        }
        return _frame(model.SNAPSHOT_BLOCKS, columns, segments.size)

    def _with_history(self, blocks: _Fields) -> tuple[Rows, Ints, Ints]:
        """(stack, requested size, address) of blocks, up to torch 2.0 of the last allocation in their history."""
        decoder, words = self._decoder, self._records["history"]
        stacks, requests, addresses = (
            blocks.values(name, decode)
            for name, decode in (
                ("frames", decoder.stack_rows),
                ("requested_size", decoder.sizes),
                ("address", decoder.numbers),
            )
        )
        histories = blocks.values("history", lambda words: words)
        with_history = np.flatnonzero((histories & 15) == Kind.LIST)
        if not with_history.size:
            return stacks, requests, addresses
        stacks, requests, addresses = (np.array(values) for values in (stacks, requests, addresses))
        of_history = _Fields(words, decoder)
        stack, size, address = (
            of_history.values("frames", decoder.stack_rows),
            of_history.values("real_size", decoder.sizes),
            of_history.values("addr", decoder.numbers),
        )
        for row in with_history.tolist():
            items = decoder.items(int(histories[row]))
            last = items[((items & 15) == Kind.RECORD) & ((items >> NAME_BITS & 15) == _HISTORY)][-1:]
            for number in (last >> _RECORD_BITS).tolist():
                stacks[row], requests[row], addresses[row] = stack[number], size[number], address[number]
        return stacks, requests, addresses

    def _stack_frames(self) -> pl.DataFrame:
        words, decoder = self._machine.frames, self._decoder
        columns = {
            "file": _enum_column(decoder.text_rows(words[:, 0]), decoder.texts),
            "line": _series(decoder.numbers(words[:, 1])),
            "function": _enum_column(decoder.text_rows(words[:, 2]), decoder.texts),
        }
        return _frame(model.SNAPSHOT_FRAMES, columns, len(words))

    def _stacks(self) -> pl.DataFrame:
        rows, ends = self._machine.stacks
        stacks = np.repeat(np.arange(ends.size, dtype=np.int32), np.diff(ends, prepend=0))
        return _frame(model.SNAPSHOT_STACKS, {"stack": _series(stacks), "frame": _series(rows)}, rows.size)

    def _annotations(self, moments: Ints) -> pl.DataFrame:
        fields = _Fields(self._records["annotation"], self._decoder)
        names, stages = (fields.texts(name).cast(pl.String).fill_null("") for name in ("name", "stage"))
        columns = {
            "name": names,
            "is_start": stages == "START",
            "device": fields.devices(),
            "moment": _series(moments),
        }
        return _frame(model.SNAPSHOT_ANNOTATIONS, columns, moments.size)


def _first_and_last(times: Iterable[Ints]) -> tuple[int, int]:
    """The first and the last of some times; (0, 0) if there is none."""
    latest = np.iinfo(np.int64).max
    first = min(int(values.min(where=values != NONE, initial=latest)) for values in times)
    return (0, 0) if first == latest else (first, max(int(values.max(initial=0)) for values in times))


def _since(times: Ints, origin: int) -> Ints:
    """The times from an origin on; in place, since they can be a large part of the memory that reading needs."""
    if stores_one(times):
        return per_value(lambda values: np.where(values == NONE, NONE, values - origin), times)
    np.subtract(times, origin, out=times, where=times != NONE)
    return times


def _of_rows(values: Values, rows: Ints | None) -> Values:
    if rows is None:
        return values
    return repeat_value(values[:1], rows.size) if stores_one(values) else values[rows]


def _series(values: Values) -> pl.Series:
    """A column; of one row, if all rows have its value."""
    return pl.Series(values[:1] if stores_one(values) else values)


def _enum_column(rows: Rows, texts: pl.Series, enum: pl.Enum | None = None) -> pl.Series:
    """Texts by their rows as an enum of those that occur, null for NONE.

    Of a given enum, the last text stands for any other text, and for NONE.
    """
    stored_rows = rows[:1] if stores_one(rows) else rows
    is_used = np.zeros(len(texts) + 1, bool)
    is_used[stored_rows] = True  # NONE is the last one
    used_rows = np.flatnonzero(is_used[:-1])
    values = texts.gather(used_rows)
    known_texts = values.unique(maintain_order=True) if enum is None else enum.categories
    if not len(known_texts):
        return pl.Series([None] * stored_rows.size, dtype=pl.Enum([]))
    kind, other = pl.Enum(known_texts), known_texts[-1]
    codes = values.replace_strict(known_texts, known_texts, default=other).cast(kind).to_physical().to_numpy()
    code_of_row = np.full(len(texts) + 1, len(known_texts) - 1, codes.dtype)
    code_of_row[used_rows] = codes
    column = pl.Series(code_of_row[stored_rows]).cat.to(kind)
    return column.set(pl.Series(stored_rows == NONE), None) if enum is None and is_used[-1] else column


def _frame(schema: Mapping[str, Any], columns: Mapping[str, pl.Series], height: int) -> pl.DataFrame:
    cast = {
        name: columns[name].alias(name) if kind is pl.Enum else columns[name].alias(name).cast(kind)
        for name, kind in schema.items()
    }
    return frame_of(cast, height)
