"""Records of a snapshot, as words of its pickle → frames.

Which device an event is of follows from the list that holds it: `device_traces` has a list for each device. Blocks of
segments without addresses (torch 1.13 to 2.0) follow one another from the address of their segment on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...trace import model
from ..pickles.machine import NAME_BITS, Kind, Machine, Words

Ints = NDArray[np.int64]
Records = Mapping[str, Mapping[str, Words]]

_EVENT, _ANNOTATION, _SEGMENT, _BLOCK, _HISTORY = 1, 2, 3, 4, 5
_RECORD_BITS = 2 * NAME_BITS
_NS_PER_US = 1000
_LATEST_US = 2**62 // _NS_PER_US
_NUMBERS = (Kind.INTEGER, Kind.BOOL)
_SETTINGS_KEY = "allocator_settings"


@dataclass(frozen=True)
class SnapshotFrames:
    """What a snapshot holds.

    Args:
        frames: Frames of a Trace by name.
        settings: The allocator's settings.
        origin_ns: Unix time of the first event; 0 if it has no times.
        end_ns: From there to the last one.
        unread: Entries that are left out.
    """

    frames: Mapping[str, pl.DataFrame]
    settings: Mapping[str, Any]
    origin_ns: int
    end_ns: int
    unread: int

    @property
    def is_empty(self) -> bool:
        """Whether it has neither segments nor events."""
        return all(self.frames[name].is_empty() for name in ("snapshot_events", "snapshot_segments"))


def frames_of(machine: Machine, records: Records) -> SnapshotFrames:
    """The frames of everything that was read."""
    builder = _Builder(machine, records)
    return builder.frames()


class _Builder:
    def __init__(self, machine: Machine, records: Records) -> None:
        self._machine, self._records, self._wide = machine, records, machine.wide
        self._texts = pl.Series(machine.texts(), dtype=pl.String)
        self._unread = 0

    def frames(self) -> SnapshotFrames:
        root, top = self._machine.root, dict[str, int]()
        if root & 15 == Kind.DICT:
            items = self._machine.items(root).tolist()
            top = {
                self._texts[key >> NAME_BITS]: value
                for key, value in zip(items[::2], items[1::2], strict=True)
                if key & 15 == Kind.TEXT
            }
        events, annotations = self._records["event"], self._records["annotation"]
        times = np.concatenate([self._times(events["time_us"]), self._times(annotations["time_us"])])
        real_times = times[times != NONE]
        origin = int(real_times.min()) if real_times.size else 0
        segments = self._segments(top.get("segments", root))
        frames = {
            "snapshot_events": self._events(top.get("device_traces", int(Kind.MISSING)), origin),
            "snapshot_segments": segments,
            "snapshot_blocks": self._blocks(),
            "snapshot_frames": self._stack_frames(),
            "snapshot_stacks": self._stacks(),
            "snapshot_annotations": self._annotations(origin),
        }
        settings = self._plain(top.get(_SETTINGS_KEY, int(Kind.MISSING)), 0)
        end = int(real_times.max()) - origin if real_times.size else 0
        return SnapshotFrames(frames, settings if isinstance(settings, dict) else {}, origin, end, self._unread)

    # ---- values of words ----

    def _numbers(self, words: Words) -> Ints:
        """The integers; NONE where there is none."""
        kind, value = words & 15, words >> NAME_BITS
        numbers = np.where(np.isin(kind, _NUMBERS), value, NONE)
        is_wide = (kind == Kind.SIGNED) | (kind == Kind.UNSIGNED)
        numbers[is_wide] = self._wide[value[is_wide]]
        return numbers

    def _sizes(self, words: Words) -> Ints:
        """Sizes in bytes; NONE where there is none, or where no memory is so large."""
        numbers = self._numbers(words)
        return np.where((numbers < 0) | (numbers > 1 << 52), NONE, numbers)

    def _times(self, words: Words) -> Ints:
        """Unix times in ns; NONE where there is none."""
        numbers = self._numbers(words)
        return np.where((numbers <= 0) | (numbers > _LATEST_US), NONE, numbers * _NS_PER_US)

    def _texts_of(self, words: Words) -> pl.Series:
        """The texts as an enum; null where there is none."""
        rows = np.where((words & 15) == Kind.TEXT, words >> NAME_BITS, NONE)
        return _enum(rows, self._texts)

    def _pools(self, words: Words) -> pl.Series:
        """The texts of pairs of integers, such as `0, 1`; null where there is none."""
        distinct, rows = np.unique(words, return_inverse=True)
        names = [self._pool(int(word)) for word in distinct]
        texts = sorted({name for name in names if name is not None})
        code_of = {name: code for code, name in enumerate(texts)}
        codes = np.array([NONE if name is None else code_of[name] for name in names], np.int64)
        return _enum(codes[rows] if codes.size else np.empty(0, np.int64), pl.Series(texts, dtype=pl.String))

    def _pool(self, word: int) -> str | None:
        if word & 15 not in (Kind.TUPLE, Kind.LIST):
            return None
        numbers = self._numbers(self._machine.items(word)[:2])
        return ", ".join(map(str, numbers.tolist()))

    def _stack_rows(self, words: Words) -> NDArray[np.int32]:
        return np.where((words & 15) == Kind.STACK, words >> NAME_BITS, NONE).astype(np.int32)

    def _plain(self, word: int, depth: int) -> Any:
        """A small value as JSON has it; None for what is larger or deeper than settings are."""
        kind = word & 15
        if kind == Kind.TEXT:
            return self._texts[word >> NAME_BITS]
        if kind == Kind.BOOL:
            return bool(word >> NAME_BITS)
        if kind == Kind.FLOAT:
            number = float(self._wide[word >> NAME_BITS : (word >> NAME_BITS) + 1].view(np.float64)[0])
            return number if np.isfinite(number) else None
        if kind in (Kind.INTEGER, Kind.SIGNED):
            return int(self._numbers(np.array([word]))[0])
        if kind != Kind.DICT or depth > 2:
            return None
        items = self._machine.items(word)[:512].tolist()
        pairs = zip(items[::2], items[1::2], strict=True)
        return {self._texts[k >> NAME_BITS]: self._plain(v, depth + 1) for k, v in pairs if k & 15 == Kind.TEXT}

    # ---- owners ----

    def _owners(self, lists: Words, kind: int, count: int) -> NDArray[np.int32]:
        """Of each record of a kind, which of these lists holds it; NONE if none does."""
        owner = np.full(count, NONE, np.int32)
        for row, word in enumerate(lists.tolist()):
            if word & 15 in (Kind.LIST, Kind.TUPLE):
                items = self._machine.items(word)
                is_it = ((items & 15) == Kind.RECORD) & ((items >> NAME_BITS & 15) == kind)
                owner[items[is_it] >> _RECORD_BITS] = row
                self._unread += int((~is_it).sum())
        return owner

    # ---- frames ----

    def _events(self, traces: int, origin: int) -> pl.DataFrame:
        columns = self._records["event"]
        count = columns["action"].size
        lists = self._machine.items(traces) if traces & 15 in (Kind.LIST, Kind.TUPLE) else np.empty(0, np.int64)
        device = self._owners(lists, _EVENT, count)
        is_read = device >= 0
        self._unread += int((~is_read).sum())
        order = np.argsort(device[is_read], kind="stable")
        rows = np.flatnonzero(is_read)[order]
        c = {name: words[rows] for name, words in columns.items()}
        return _frame(
            model.SNAPSHOT_EVENTS,
            action=_of_enum(self._texts_of(c["action"]), model.SNAPSHOT_ACTIONS),
            device=device[rows],
            address=self._numbers(c["addr"]),
            size=self._sizes(c["size"]),
            stream=self._numbers(c["stream"]),
            moment=_since(self._times(c["time_us"]), origin),
            stack=self._stack_rows(c["frames"]),
            device_free=np.where(self._sizes(c["device_free"]) != NONE, self._sizes(c["device_free"]), NONE),
            pool=self._pools(c["pool_id"]),
            compile_context=self._texts_of(c["compile_context"]),
            user_metadata=self._texts_of(c["user_metadata"]),
        )

    def _segments(self, _segments: int) -> pl.DataFrame:
        c = self._records["segment"]
        expandable = (c["is_expandable"] & 15 == Kind.BOOL) & (c["is_expandable"] >> NAME_BITS == 1)
        return _frame(
            model.SNAPSHOT_SEGMENTS,
            device=self._numbers(c["device"]),
            address=self._numbers(c["address"]),
            **{
                name: self._sizes(c[name]) for name in ("total_size", "allocated_size", "active_size", "requested_size")
            },
            stream=self._numbers(c["stream"]),
            segment_type=self._texts_of(c["segment_type"]),
            pool=self._pools(c["segment_pool_id"]),
            is_expandable=expandable,
            stack=self._stack_rows(c["frames"]),
        )

    def _blocks(self) -> pl.DataFrame:
        c, segments = self._records["block"], self._records["segment"]
        segment = self._owners(segments["blocks"], _BLOCK, c["size"].size)
        is_read = segment >= 0
        self._unread += int((~is_read).sum())
        c = {name: words[is_read] for name, words in c.items()}
        segment, size = segment[is_read], self._sizes(c["size"])
        stack, request, address = self._with_history(c)
        is_first = np.diff(segment, prepend=NONE - 1) != 0
        ahead = np.cumsum(np.maximum(size, 0)) - np.maximum(size, 0)
        inside = ahead - np.repeat(ahead[is_first], np.diff(np.append(np.flatnonzero(is_first), segment.size)))
        base = self._numbers(segments["address"])[segment] if segment.size else np.empty(0, np.int64)
        address = np.where(address == NONE, base + inside, address)
        state = _of_enum(self._texts_of(c["state"]), model.SNAPSHOT_STATES)
        return _frame(
            model.SNAPSHOT_BLOCKS,
            segment=segment,
            address=address,
            size=size,
            requested_size=request,
            state=state,
            stack=stack,
        )

    def _with_history(self, c: Mapping[str, Words]) -> tuple[NDArray[np.int32], Ints, Ints]:
        """(stack, requested size, address) of blocks, up to torch 2.0 of the last allocation in their history."""
        stack, request, address = (
            self._stack_rows(c["frames"]),
            self._sizes(c["requested_size"]),
            self._numbers(c["address"]),
        )
        history = self._records["history"]
        for row in np.flatnonzero((c["history"] & 15) == Kind.LIST).tolist():
            items = self._machine.items(int(c["history"][row]))
            last = items[((items & 15) == Kind.RECORD) & ((items >> NAME_BITS & 15) == _HISTORY)][-1:]
            for number in (last >> _RECORD_BITS).tolist():
                stack[row] = self._stack_rows(history["frames"][number : number + 1])[0]
                request[row] = self._sizes(history["real_size"][number : number + 1])[0]
                address[row] = self._numbers(history["addr"][number : number + 1])[0]
        return stack, request, address

    def _stack_frames(self) -> pl.DataFrame:
        words = self._machine.frames
        return _frame(
            model.SNAPSHOT_FRAMES,
            file=self._texts_of(words[:, 0]),
            line=self._numbers(words[:, 1]),
            function=self._texts_of(words[:, 2]),
        )

    def _stacks(self) -> pl.DataFrame:
        rows, ends = self._machine.stacks
        return _frame(
            model.SNAPSHOT_STACKS, stack=np.repeat(np.arange(ends.size), np.diff(ends, prepend=0)), frame=rows
        )

    def _annotations(self, origin: int) -> pl.DataFrame:
        c = self._records["annotation"]
        names, stages = (self._texts_of(c[name]).cast(pl.String).fill_null("") for name in ("name", "stage"))
        return _frame(
            model.SNAPSHOT_ANNOTATIONS,
            name=names,
            is_start=stages == "START",
            device=self._numbers(c["device"]),
            moment=_since(self._times(c["time_us"]), origin),
        )


def _since(times: Ints, origin: int) -> Ints:
    return np.where(times == NONE, NONE, times - origin)


def _enum(rows: Ints, texts: pl.Series) -> pl.Series:
    """The texts of rows as an enum of those that occur; null for NONE."""
    distinct, codes = np.unique(rows, return_inverse=True)
    has_none = bool(distinct.size and distinct[0] == NONE)
    values = texts.gather(distinct[1:] if has_none else distinct)
    names = values.unique(maintain_order=True)
    enum = pl.Enum(names)
    column = values.cast(enum)
    category = codes.astype(np.int64) - has_none
    return (
        column.gather(pl.Series(category).replace(NONE, None))
        if len(column)
        else pl.Series([None] * rows.size, dtype=enum)
    )


def _of_enum(texts: pl.Series, enum: pl.Enum) -> pl.Series:
    """Texts of an enum; any other is the last of it."""
    categories = enum.categories.to_list()
    values = texts.dtype.categories.to_list() if isinstance(texts.dtype, pl.Enum) else []
    values_of_enum = pl.Series([value if value in categories else categories[-1] for value in values], dtype=enum)
    codes = texts.to_physical().cast(pl.Int64)
    return (
        values_of_enum.gather(codes) if len(values_of_enum) else pl.Series([None] * len(texts), dtype=enum)
    ).fill_null(categories[-1])


def _frame(schema: Mapping[str, Any], **columns: Any) -> pl.DataFrame:
    series = []
    for name, kind in schema.items():
        values = columns[name]
        column = pl.Series(name, values) if not isinstance(values, pl.Series) else values.alias(name)
        series.append(column if kind is pl.Enum or isinstance(kind, pl.Enum) else column.cast(kind))
    return pl.DataFrame(series)
