"""A memory snapshot replayed: levels over time, and which blocks were alive at an event.

Sizes in the history are those that were requested; the allocator rounds each up to 512 bytes, or to a whole block. So
levels are of requested memory, and only segments and blocks at the end have the rounded sizes. The history is a ring:
it begins at some event, with a level that follows from the blocks at its end. A block is allocated from `alloc` to
`free_requested`, and active until `free_completed`, when no stream uses it any more. Memory is reserved from
`segment_alloc` or `segment_map` to `segment_free` or `segment_unmap` (c10/cuda/CUDACachingAllocator.cpp).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, map_categories
from ...names.python_frames import is_library_file, is_python_file
from ...table import ID, Column, Table
from ...trace.model import SNAPSHOT_ACTIONS, Trace
from ...trace.results import once_per_recording

Ints = NDArray[np.int64]


class OfSnapshot(Table):
    """Values of one device of a memory snapshot."""

    device = Column(ID, "Index of the device.")


HINT = "This isn't a memory snapshot. Record one with torch.cuda.memory._record_memory_history and _dump_snapshot."
UNKNOWN_PLACE = "[no stack recorded]"
_UNKNOWN_FILE = "??"  # as torch writes it, of frames in C++
BEFORE = "[allocated before the history]"
ORIGINS = ("program", "libraries", "torch", "before the history", "no stack")
_PLUMBING = r"torch::unwind|CapturedTraceback|gather_with_cpp|CachingAllocator|^c10::|^std::"
_NODE = r"^torch::autograd::(?:generated::)?(\w+)::apply\("
_OPERATOR = r"^(at::_ops::(?:[a-df-z]|e[a-ln-z])\w*)::call\("  # not those named empty…: they allocate for others
_ALLOCATOR = 5  # the rank of its own frames, the last choice for a place
_BEGINS_AND_ENDS = (  # of allocated, active and reserved memory
    (("alloc",), ("free_requested",)),
    (("alloc",), ("free_completed",)),
    (("segment_alloc", "segment_map"), ("segment_free", "segment_unmap")),
)


@dataclass(frozen=True)
class DeviceSnapshot:
    """The history and the blocks of one device.

    Args:
        device: Its index.
        events: Its events, in order.
        allocated_bytes, active_bytes, reserved_bytes: The levels after each event; as many as events.
        before: The three levels before the first event.
        lives: A row per block: address, size, stack, `begin` and `end`: the events at which it became active and was
            freed; begin is -1 if that was before the history, end is the number of events if it is alive at the end.
        segments: The segments at the end.
    """

    device: int
    events: pl.DataFrame
    allocated_bytes: Ints
    active_bytes: Ints
    reserved_bytes: Ints
    before: tuple[int, int, int]
    lives: pl.DataFrame
    segments: pl.DataFrame

    @cached_property
    def peak(self) -> int:
        """The event after which the most was allocated; -1 if that was before the first one."""
        most = int(self.allocated_bytes.max(initial=0))
        return -1 if not self.allocated_bytes.size or self.before[0] >= most else int(self.allocated_bytes.argmax())

    @property
    def least_peak_bytes(self) -> int:
        """The least that the peak can have been if the end of the history or some blocks at the end are missing.

        All levels may then be too high or too low by the same number of bytes, but none was below 0, and what the
        blocks say was allocated at the end.
        """
        levels = np.append(self.before[0], self.allocated_bytes)
        return int(max(levels[-1], levels.max() - levels.min()))

    @cached_property
    def has_times(self) -> bool:
        """Whether there are events, and the snapshot says when each was."""
        return self.events.height > 0 and bool((self.events["moment"] >= 0).all())

    @cached_property
    def times(self) -> Ints:
        """When each event was, in ns, none before the last one; their numbers if the snapshot has no times."""
        moment: Ints = self.events["moment"].to_numpy()
        return np.maximum.accumulate(moment) if self.has_times else np.arange(moment.size)

    def within(self, begin_ns: int, end_ns: int) -> tuple[int, int]:
        """The first event of a range of time, and the first one behind it."""
        first, behind = np.searchsorted(self.times, begin_ns), np.searchsorted(self.times, end_ns, side="right")
        return int(first), int(max(first, behind))

    def levels(self, event: int) -> tuple[int, int, int]:
        """Allocated, active and reserved after an event; -1 is before the first one."""
        if event < 0:
            return self.before
        return int(self.allocated_bytes[event]), int(self.active_bytes[event]), int(self.reserved_bytes[event])

    @property
    def failure(self) -> int | None:
        """The last event at which an allocation failed; None if none did."""
        oom_events = np.flatnonzero((self.events["action"] == "oom").to_numpy())
        return int(oom_events[-1]) if oom_events.size else None

    def alive(self, event: int) -> pl.DataFrame:
        """The lives of the blocks that were active after an event."""
        return self.lives.filter((pl.col("begin") <= event) & (pl.col("end") > event))


@once_per_recording
def device_snapshots(trace: Trace) -> tuple[DeviceSnapshot, ...]:
    """Each device with segments or events; segments that don't say whose they are belong to none."""
    devices = {*trace.snapshot_events["device"].unique(), *trace.snapshot_segments["device"].unique()} - {NONE}
    return tuple(_device(trace, device) for device in sorted(devices))


def chosen_snapshots(trace: Trace, device: int | None) -> list[DeviceSnapshot]:
    """Those of a device, or of all if it is None."""
    return [snapshot for snapshot in device_snapshots(trace) if device is None or snapshot.device == device]


def time_range(snapshots: Iterable[DeviceSnapshot], from_ns: int | None, to_ns: int | None) -> tuple[int, int]:
    """The range of time to show: where an end isn't given, to that of the histories."""
    histories = [snapshot.times for snapshot in snapshots if snapshot.times.size]
    first = min((int(times[0]) for times in histories), default=0)
    last = max((int(times[-1]) for times in histories), default=0)
    begin = first if from_ns is None else min(max(first, from_ns), last)
    return begin, last if to_ns is None else max(begin, min(last, to_ns))


def _device(trace: Trace, device: int) -> DeviceSnapshot:
    events = trace.snapshot_events.filter(pl.col("device") == device)
    segments = trace.snapshot_segments.with_row_index("row").filter(pl.col("device") == device)
    size_of_request = pl.when(pl.col("requested_size") >= 0).then("requested_size").otherwise("size")
    blocks = trace.snapshot_blocks.filter(pl.col("segment").is_in(segments["row"].to_list())).with_columns(
        size=size_of_request
    )
    is_allocated = blocks["state"] == "active_allocated"
    is_active = is_allocated | (blocks["state"] == "active_pending_free")
    has_size = blocks["size"] != NONE
    ends = [int(blocks.filter(mask & has_size)["size"].sum()) for mask in (is_allocated, is_active)]
    ends.append(int(segments.filter(pl.col("total_size") != NONE)["total_size"].sum()))
    levels = [_levels(events, *changes, end) for changes, end in zip(_BEGINS_AND_ENDS, ends, strict=True)]
    start = levels[0][0], levels[1][0], levels[2][0]
    lives = _lives(events, blocks.filter(is_active))
    return DeviceSnapshot(device, events, levels[0][1], levels[1][1], levels[2][1], start, lives, segments)


def _levels(events: pl.DataFrame, begin: Sequence[str], end: Sequence[str], last: int) -> tuple[int, Ints]:
    """(the level before the first event, the level after each) of what some actions begin and others end."""
    levels = _signs(begin, end)[events["action"].to_physical().to_numpy()]
    levels *= np.maximum(events["size"].to_numpy(), 0)
    np.cumsum(levels, out=levels)
    start = last - (int(levels[-1]) if levels.size else 0)
    levels += start
    return start, levels


def _signs(begin: Sequence[str], end: Sequence[str]) -> Ints:
    """Of each action 1 if it begins something, -1 if it ends it, and 0 otherwise."""
    return np.array([(name in begin) - (name in end) for name in SNAPSHOT_ACTIONS.categories], np.int64)


def _lives(events: pl.DataFrame, active: pl.DataFrame) -> pl.DataFrame:
    """The lives of all blocks that the history and the end know."""
    count = events.height
    rows = (
        events.with_row_index("event")
        .filter(pl.col("action").is_in(["alloc", "free_completed"]))
        .select("event", "address", "size", "stack", is_alloc=pl.col("action") == "alloc")
        .sort("address", "event")
    )
    address = pl.col("address")
    rows = rows.with_columns(
        next_event=pl.when(address == address.shift(-1)).then(pl.col("event").shift(-1)),
        follows_alloc=((address == address.shift(1)) & pl.col("is_alloc").shift(1)).fill_null(value=False),
    )
    from_history = rows.filter(pl.col("is_alloc")).select(
        *("address", "size", "stack"),
        begin=pl.col("event").cast(pl.Int64),
        end=pl.coalesce("next_event", pl.lit(count)).cast(pl.Int64),
        is_last=pl.col("next_event").is_null(),
    )
    older_releases = rows.filter(~pl.col("is_alloc") & ~pl.col("follows_alloc")).select(
        *("address", "size"),
        stack=pl.lit(NONE, pl.Int32),
        begin=pl.lit(-1, pl.Int64),
        end=pl.col("event").cast(pl.Int64),
    )
    known_at_end = from_history.filter(pl.col("is_last") & (pl.col("end") == count))
    older = active.join(known_at_end.select("address"), "address", "anti").select(
        *("address", "size", "stack"), begin=pl.lit(-1, pl.Int64), end=pl.lit(count, pl.Int64)
    )
    return pl.concat([from_history.drop("is_last"), older_releases, older])


_FRAME_TEXT = (
    pl.when(pl.col("file") == _UNKNOWN_FILE)
    .then("function")
    .otherwise(pl.format("{}({}): {}", "file", "line", "function"))
)


@once_per_recording
def stack_places(trace: Trace) -> pl.DataFrame:
    """Of each stack: its text, one frame per line as in traces, the innermost first, and the program's own line.

    The text begins below the allocator's own frames, which are the same in every stack.

    That is the innermost frame in Python that is neither torch's nor an installed package's, or else the innermost one
    in Python. Threads of autograd have none: there it is the node of the backward pass, or else the innermost operator,
    or else the innermost frame that isn't the allocator's own.
    """
    frames = trace.snapshot_frames.select(
        file=pl.col("file").cast(pl.String).fill_null(_UNKNOWN_FILE),
        line="line",
        function=pl.col("function").cast(pl.String).fill_null("??"),
    ).with_row_index("frame")
    file = trace.snapshot_frames["file"]
    is_python = pl.lit(pl.Series(map_categories(file, is_python_file)))
    is_own = is_python & ~pl.lit(pl.Series(map_categories(file, is_library_file, missing=True)))
    is_plumbing = pl.col("function").str.contains(_PLUMBING)
    name = pl.col("file").str.split("/").list.tail(2).list.join("/")
    line = pl.when(is_python).then(pl.format("{}({}): {}", name, "line", "function"))
    node, operator = (pl.col("function").str.extract(pattern) for pattern in (_NODE, _OPERATOR))
    frames = frames.select(
        "frame",
        text=_FRAME_TEXT,
        place=pl.coalesce(line, node, operator, "function"),
        rank=pl.when(is_own)
        .then(0)
        .when(is_python)
        .then(1)
        .when(node.is_not_null())
        .then(2)
        .when(operator.is_not_null())
        .then(3)
        .when(~is_plumbing)
        .then(4)
        .otherwise(_ALLOCATOR),
    )
    rows = trace.snapshot_stacks.join(
        frames.with_columns(pl.col("frame").cast(pl.Int32)), "frame", maintain_order="left"
    )
    is_below = (pl.col("rank") < _ALLOCATOR).cast(pl.UInt8).cum_max() == 1
    return rows.group_by("stack", maintain_order=True).agg(
        text=pl.col("text").filter(is_below | (pl.col("rank") == _ALLOCATOR).all()).str.join("\n"),
        place=pl.col("place").sort_by("rank", maintain_order=True).first(),
        origin=pl.lit(pl.Series(ORIGINS)).gather(pl.min_horizontal(pl.col("rank").min(), 2)).first(),
    )


def with_places(trace: Trace, lives: pl.DataFrame) -> pl.DataFrame:
    """Lives with the text, the place and the origin of their stack.

    The origin is one of ORIGINS: the place is a line of the program, or of an installed package or torch's Python, or
    the stack has no Python; or the block is older than the history, or its stack wasn't recorded.
    """
    of_stacks = stack_places(trace)
    substitute = pl.when(pl.col("begin") < 0).then(pl.lit(BEFORE)).otherwise(pl.lit(UNKNOWN_PLACE))
    rows = lives.join(of_stacks, "stack", "left", maintain_order="left")
    older = pl.when(pl.col("begin") < 0).then(pl.lit(ORIGINS[3])).otherwise(pl.lit(ORIGINS[4]))
    return rows.with_columns(place=pl.coalesce("place", substitute), origin=pl.coalesce("origin", older))


def holders(trace: Trace, snapshot: DeviceSnapshot, event: int) -> list[tuple[str, int]]:
    """The places whose memory was alive after an event, each with its bytes, the most first."""
    alive = with_places(trace, snapshot.alive(event))
    rows: list[tuple[str, int]] = alive.group_by("place").agg(pl.col("size").sum()).rows()
    return sorted(rows, key=lambda row: (-row[1], row[0]))
