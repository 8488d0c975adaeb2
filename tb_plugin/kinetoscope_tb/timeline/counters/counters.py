"""Counters: memory, how busy devices are, and the queues of streams, over time.

A curve holds a value until it changes; that of a busy device has none while this isn't in the recording. A tile of it
is 512 buckets of 2^L ns, as a tile of slices is (`pyramid.py`), and stores for each bucket the minimum and the maximum
of the value, and the last one. A share of busy time changes with every kernel, so for a fraction all three are its mean
over the bucket.

As bytes a tile is 3 × 512 numbers of 64 bits (double, little endian): all least ones, all largest, all last; NaN before
the curve begins and after it ends. A batch is one tile after the other, with nothing between them.

Counters of the file (phase C) come last (`user_counters.py`); NaN where a value is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.intervals import Intervals
from ...arrays.native import Array, Function
from ...measures.memory.levels import CPU, DeviceMemory, device_memories
from ...measures.recording.vendor import device_noun
from ...measures.time.breakdown import intervals_of
from ...measures.time.idle_causes import hidden_work
from ...measures.time.queues import queue_lengths
from ...trace import Trace
from ..core.pyramid import BUCKETS
from .user_counters import user_counters

_fill_tile = Function("fill_counter_tile")

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Counter:
    """One curve.

    Args:
        name: Display name of what it counts.
        kind: bytes, fraction (0 to 1), count or number.
        device: Display name: as torch names it if its memory was recorded, else its number.
        index: The device's number; None for the host.
        stream: The stream of that device; None for all.
        bounds: The least and the largest value, for the scale.
        end: When the recording ends.
        changes: Computes the curve: the times of its changes, and the value from each on. Several changes at one
            instant follow each other.
        is_relative: Whether it is the change since the recording began, since no totals were recorded.
        unit: Suffix of the values: `/s` after bytes, or the unit of a number.
    """

    name: str
    kind: Literal["bytes", "fraction", "count", "number"]
    device: str
    index: int | None
    stream: int | None
    bounds: tuple[float, float]
    end: int
    changes: Callable[[], tuple[Ints, Floats]]
    is_relative: bool = False
    unit: str = ""

    @cached_property
    def curve(self) -> tuple[Ints, Floats]:
        """When it changes, and what it is from then on."""
        return self.changes()

    def describe(self, number: int) -> dict[str, Any]:
        """What the page needs to list it and to choose its scale; `number` is its index in the list."""
        return {
            "id": number,
            "name": self.name,
            "kind": self.kind,
            "device": self.device,
            "device_index": self.index,
            "stream": self.stream,
            "least": self.bounds[0],
            "most": self.bounds[1],
            "is_relative": self.is_relative,
            "unit": self.unit,
        }

    def tile(self, level: int, index: int) -> Floats:
        """The least, the largest and the last value of each bucket of a tile: 3 × 512 numbers."""
        tile: Floats = _tile(*self.curve, self.end, level, index, is_mean=self.kind == "fraction")
        return tile


def counters(trace: Trace) -> tuple[Counter, ...]:
    """All counters: memory by device, how busy each device is, the queue of each stream, then the program's own."""
    return (*_memory(trace), *_busy(trace), *_queues(trace), *_user(trace))


def batch_bytes(tiles: Sequence[Floats]) -> bytes:
    """Several tiles, in their order."""
    return b"".join(tile.astype("<f8", copy=False).tobytes() for tile in tiles)


def _bounds_and_curve(at: Ints, value: Floats) -> tuple[tuple[float, float], Callable[[], tuple[Ints, Floats]]]:
    """(the bounds of a curve that is already computed, a function that returns the curve)."""
    return (float(value.min()), float(value.max())), lambda: (at, value)


def _index_of(trace: Trace, memories: Sequence[DeviceMemory]) -> dict[str, int | None]:
    """The number of the device that each memory is of, by its name; None for the host.

    ROCm may number a process's only device otherwise in its work (9) than in its memory (hip:0).
    """
    numbers = trace.device_events["device"].unique().to_list()
    of_devices = [memory for memory in memories if memory.device_type != CPU]
    is_single = len(numbers) == len(of_devices) == 1
    indexes = {memory.name: numbers[0] if is_single else memory.device for memory in of_devices}
    return {memory.name: indexes.get(memory.name) for memory in memories}


def _memory(trace: Trace) -> Iterator[Counter]:
    memories = device_memories(trace)
    indexes = _index_of(trace, memories)
    for memory in memories:
        where = (memory.name, indexes[memory.name], None)
        begin = min(trace.window[0], int(memory.time_ns[0]))
        end = max(trace.window[1], int(memory.time_ns[-1]))
        at = np.concatenate([[begin], memory.time_ns])
        bounds, curve = _bounds_and_curve(
            at, np.concatenate([[memory.before_bytes], memory.allocated_bytes]).astype(np.float64)
        )
        yield Counter("Allocated memory", "bytes", *where, bounds, end, curve, memory.is_relative)
        is_known = memory.reserved_bytes != NONE
        if is_known.any():
            bounds, curve = _bounds_and_curve(
                memory.time_ns[is_known], memory.reserved_bytes[is_known].astype(np.float64)
            )
            yield Counter("Reserved memory", "bytes", *where, bounds, end, curve)


def _busy(trace: Trace) -> Iterator[Counter]:
    kernels = trace.device_events.lazy().filter(pl.col("kind") == "kernel")
    begin, end = pl.col("start_ns").min(), (pl.col("start_ns") + pl.col("dur_ns")).max()
    devices = kernels.group_by("device").agg(begin, end.alias("end"), pl.col("blocks_per_sm").is_finite().any())
    noun = device_noun(trace)
    for device, first, last, tells_blocks in devices.sort("device").collect().iter_rows():
        span = (min(trace.window[0], first), max(trace.window[1], last))
        where = (f"{noun} {device}", device, None, (0.0, 1.0), span[1])
        of_device = (trace.device_events, device, span[0]), _gaps(trace, device, span)
        yield Counter(f"{noun} utilization", "fraction", *where, partial(_with_gaps, _busy_curve, *of_device))
        if tells_blocks:
            yield Counter("SM efficiency", "fraction", *where, partial(_with_gaps, _fill_curve, *of_device))


def _gaps(trace: Trace, device: int, span: tuple[int, int]) -> Intervals:
    """When it isn't in the recording whether a device is busy; what is so at an end of the steps is so beyond it."""
    start, end = hidden_work(trace, device)
    first, last = trace.steps["start_ns"][0], trace.steps["end_ns"][-1]
    return np.where(start == first, min(first, span[0]), start), np.where(end == last, max(last, span[1]), end)


def _with_gaps(
    curve_of: Callable[..., tuple[Ints, Floats]], of_device: tuple[pl.DataFrame, int, int], gaps: Intervals
) -> tuple[Ints, Floats]:
    """The curve of a device, without a value while it isn't in the recording; then it has no kernel either."""
    (at, value), (start, end) = curve_of(*of_device), gaps
    is_hidden = np.searchsorted(start, at, "right") > np.searchsorted(end, at, "right")
    turns = np.concatenate([end, at, start])
    values = np.concatenate([np.zeros(end.size), np.where(is_hidden, np.nan, value), np.full(start.size, np.nan)])
    order = np.argsort(turns, kind="stable")
    return turns[order], values[order]


def _kernels(device_events: pl.DataFrame, device: int) -> pl.DataFrame:
    kernels = device_events.lazy().filter(pl.col("kind") == "kernel", pl.col("device") == device)
    return kernels.select("start_ns", "dur_ns", "blocks_per_sm").collect()


def _busy_curve(device_events: pl.DataFrame, device: int, begin: int) -> tuple[Ints, Floats]:
    """The curve that is 1 while any kernel runs on the device, and 0 elsewhere from `begin` on."""
    at = np.concatenate([[begin], np.column_stack(intervals_of(_kernels(device_events, device))).ravel()])
    value = np.zeros(at.size)
    value[1::2] = 1.0
    return at, value


def _fill_curve(device_events: pl.DataFrame, device: int, begin: int) -> tuple[Ints, Floats]:
    """The multiprocessors' share with work: the blocks per SM of all kernels that run, at most 1."""
    kernels = _kernels(device_events, device)
    start, blocks = kernels["start_ns"].to_numpy(), np.nan_to_num(kernels["blocks_per_sm"].to_numpy())
    turns = np.concatenate([[begin], start, start + kernels["dur_ns"].to_numpy()])
    order = np.argsort(turns, kind="stable")
    level = np.cumsum(np.concatenate([[0.0], blocks, -blocks])[order])
    return turns[order], np.clip(level, 0.0, 1.0)


def _queues(trace: Trace) -> Iterator[Counter]:
    noun = device_noun(trace)
    for device, stream, at, length in queue_lengths(trace):
        begin, end = min(trace.window[0], int(at[0]) - 1), max(trace.window[1], int(at[-1]))
        values = np.concatenate([[0.0], length.astype(np.float64)])
        bounds, curve = _bounds_and_curve(np.concatenate([[begin], at]), values)
        yield Counter("Queue length", "count", f"{noun} {device}", device, stream, bounds, end, curve)


def _user(trace: Trace) -> Iterator[Counter]:
    for series in user_counters(trace):
        end = max(trace.window[1], int(series.curve[0][-1]))
        _, curve = _bounds_and_curve(*series.curve)
        where = (series.process, series.device, None)
        yield Counter(series.name, series.kind, *where, series.bounds, end, curve, unit=series.unit)


def _tile(at: Array, value: Array, end: int, level: int, index: int, *, is_mean: bool) -> Array:
    """Return the least, the largest and the last value, or three times the mean, of each bucket."""
    tile = np.full((3, BUCKETS), np.nan)
    begin = (index * BUCKETS) << level
    first = np.searchsorted(at, begin)  # the first change in the bucket
    _fill_tile(at, value, first, end, level, begin, is_mean, np.array([np.nan]), tile)
    return tile
