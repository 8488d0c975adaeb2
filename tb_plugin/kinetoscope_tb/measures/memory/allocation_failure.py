"""Why an allocation failed: what the device, the allocator's segments and their unused blocks were then.

A request is served from one unused block of its own pool and stream, or else from new memory of the device; before
that the allocator gives back segments that are wholly unused (c10/cuda/CUDACachingAllocator.cpp). What was reserved
at that moment follows from the segments at the end, and the history between.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...trace.model import Trace
from .snapshots import DeviceSnapshot, with_places

Ints = NDArray[np.int64]
Cause = Literal[
    "too_large",
    "limit",
    "fragmented",
    "other_stream",
    "private_pool",
    "outside",
    "leak",
    "full",
    "full_or_outside",
]

DEFAULT_POOL = "0, 0"
_ROUNDED = 512
_GIB = 1 << 30
_SLACK = 1 << 26  # what the driver needs besides
_OUTSIDE = 0.06  # of the device: more than CUDA's own context takes
_LARGEST_DEVICE = 320 * _GIB
_LEAK_CYCLES, _LEAK_SHARE, _MOSTLY = 4, 0.3, 0.75
_OF_TRAINING = r"torch/optim/|torch/autograd/|torch/_tensor\.py\(\d+\): backward"


@dataclass(frozen=True)
class Leak:
    """Memory that grows with each step.

    Args:
        place: The line that allocates it.
        alive_bytes: How much of it is alive.
        blocks: In how many blocks.
        steps: How many steps of it the history has.
    """

    place: str
    alive_bytes: int
    blocks: int
    steps: int


@dataclass(frozen=True)
class Failure:
    """An allocation that failed.

    Args:
        event: Its event in the history of the device.
        request_bytes: How much was asked for.
        stream: For which stream.
        device_free_bytes: What the device itself had free.
        reserved_bytes, active_bytes: What the allocator had reserved, and what was in use of it.
        unused_bytes: Unused memory of the request's pool and stream.
        largest_unused_bytes: The largest block of it.
        other_stream_bytes: Unused memory of other streams.
        private_bytes: Unused memory in private pools.
        device_bytes: The memory of the device; None if unknown.
        cause: Why.
        leak: What grew; None if nothing did.
    """

    event: int
    request_bytes: int
    stream: int
    device_free_bytes: int
    reserved_bytes: int
    active_bytes: int
    unused_bytes: int
    largest_unused_bytes: int
    other_stream_bytes: int
    private_bytes: int
    device_bytes: int | None
    cause: Cause
    leak: Leak | None

    @property
    def outside_bytes(self) -> int | None:
        """What neither torch has reserved nor is free; None if the device's memory is unknown."""
        if self.device_bytes is None:
            return None
        return max(0, self.device_bytes - self.device_free_bytes - self.reserved_bytes)


def failures(trace: Trace, snapshot: DeviceSnapshot, device_bytes: int | None, most: int) -> list[Failure]:
    """The last failures of a device, in order; `device_bytes` is its memory, by default what our recorder stored."""
    if device_bytes is None:
        memory = {device.get("id"): device.get("totalGlobalMem") for device in trace.meta.devices}
        device_bytes = memory.get(snapshot.device) or None
    events = np.flatnonzero((snapshot.events["action"] == "oom").to_numpy())[-most:]
    return [_failure(trace, snapshot, int(event), device_bytes) for event in events]


def _failure(trace: Trace, snapshot: DeviceSnapshot, event: int, device_bytes: int | None) -> Failure:
    row = snapshot.events.row(event, named=True)
    alive = snapshot.alive(event)
    segments = _segments_at(snapshot, event)
    pool = row["pool"] or DEFAULT_POOL
    by_kind: dict[str, tuple[int, int]] = {"own": (0, 0), "other_stream": (0, 0), "private": (0, 0)}
    for segment, total, largest in zip(segments, *_unused_sizes(segments, alive), strict=True):
        is_own = segment.pool == pool and segment.stream == row["stream"]
        kind = "own" if is_own else "private" if segment.pool not in (DEFAULT_POOL, pool) else "other_stream"
        by_kind[kind] = by_kind[kind][0] + total, max(by_kind[kind][1], largest)
    request, free = max(0, row["size"]), max(0, row["device_free"])
    reserved_bytes = sum(segment.size for segment in segments)
    own, other, private = (by_kind[name][0] for name in ("own", "other_stream", "private"))
    leak = _leak(trace, snapshot, event, alive)
    if leak is not None and leak.alive_bytes + own + free < request:  # there would have been no room without it either
        leak = None
    cause = _cause(request, free, reserved_bytes, (own, other, private), device_bytes, leak)
    return Failure(
        *(event, request, row["stream"], free, reserved_bytes, snapshot.levels(event)[1], own, by_kind["own"][1]),
        *(other, private, device_bytes, cause, leak),
    )


def _cause(
    request: int,
    free: int,
    reserved_bytes: int,
    unused_bytes: tuple[int, int, int],
    device_bytes: int | None,
    leak: Leak | None,
) -> Cause:
    """Why, by what would have made room."""
    own, other, private = unused_bytes
    most = device_bytes or max(_LARGEST_DEVICE, free + reserved_bytes)
    if request > most or (device_bytes is None and request > 2 * (free + reserved_bytes) and free > reserved_bytes):
        return "too_large"
    if free > request + _SLACK:
        return "limit"
    by_kind: list[tuple[int, Cause]] = [(own, "fragmented"), (other, "other_stream"), (private, "private_pool")]
    for size, cause in by_kind:
        if size and size + free >= request:
            return cause
    if own + other + private + free >= request:
        return max(by_kind, key=lambda kind: kind[0])[1]
    if device_bytes is None:
        return "leak" if leak is not None else "full_or_outside"
    if device_bytes - free - reserved_bytes > max(2 * _GIB, int(_OUTSIDE * device_bytes)):
        return "outside"
    return "leak" if leak is not None else "full"


@dataclass(frozen=True)
class _Segment:
    address: int
    size: int
    stream: int
    pool: str


def _segments_at(snapshot: DeviceSnapshot, event: int) -> list[_Segment]:
    """The segments after an event: those at the end, with the changes since then undone; in order of addresses."""
    rows = snapshot.segments.select("address", "total_size", "stream", pool=pl.col("pool").cast(pl.String))
    segments = {
        address: _Segment(address, max(0, size), stream, pool or DEFAULT_POOL)
        for address, size, stream, pool in rows.iter_rows()
    }
    starts = sorted(segments)
    later = snapshot.events.slice(event + 1).with_columns(action=pl.col("action").cast(pl.String))
    changes = later.filter(pl.col("action").str.starts_with("segment_")).select(
        "action", "address", "size", "stream", "pool"
    )
    for action, address, size, stream, pool in reversed(changes.rows()):
        if action in ("segment_free", "segment_unmap"):
            _add(segments, starts, _Segment(address, max(0, size), stream, pool or DEFAULT_POOL))
        else:
            _remove(segments, starts, address, max(0, size))
    return [segments[start] for start in starts]


def _add(segments: dict[int, _Segment], starts: list[int], segment: _Segment) -> None:
    if segment.address not in segments:
        insort(starts, segment.address)
        segments[segment.address] = segment


def _remove(segments: dict[int, _Segment], starts: list[int], address: int, size: int) -> None:
    """Remove a range from the segment that holds it; what is before and behind it stays."""
    at = bisect_right(starts, address) - 1
    whole = segments.get(starts[at]) if at >= 0 else None
    if whole is None or address >= whole.address + whole.size:
        return
    del segments[whole.address], starts[at]
    end, behind = address + size, whole.address + whole.size - address - size
    if address > whole.address:
        _add(segments, starts, _Segment(whole.address, address - whole.address, whole.stream, whole.pool))
    if behind > 0:
        _add(segments, starts, _Segment(end, behind, whole.stream, whole.pool))


def _unused_sizes(segments: list[_Segment], alive: pl.DataFrame) -> tuple[list[int], list[int]]:
    """Of each segment, how much of it is in no block, and the largest part of that without a block in between."""
    begin = np.array([segment.address for segment in segments], np.int64)
    end = begin + np.array([segment.size for segment in segments], np.int64)
    blocks = alive.select("address", "size").sort("address")
    address, size = blocks["address"].to_numpy(), -(-blocks["size"].to_numpy() // _ROUNDED) * _ROUNDED
    owner = np.searchsorted(begin, address, side="right") - 1
    is_inside = (owner >= 0) & (address < end[np.maximum(owner, 0)]) if begin.size else np.zeros(0, bool)
    owner, address, size = (
        values[is_inside[: values.size]] if begin.size else values[:0] for values in (owner, address, size)
    )
    first, behind = (
        np.searchsorted(owner, np.arange(begin.size)),
        np.searchsorted(owner, np.arange(begin.size), side="right"),
    )
    gaps_end = np.append(address, 0)
    totals, largest = [], []
    for nth in range(begin.size):
        edges = np.concatenate([gaps_end[first[nth] : behind[nth]], [end[nth]]])
        starts = np.concatenate([[begin[nth]], address[first[nth] : behind[nth]] + size[first[nth] : behind[nth]]])
        gaps = np.maximum(edges - starts, 0)
        totals.append(int(gaps.sum()))
        largest.append(int(gaps.max(initial=0)))
    return totals, largest


def _leak(trace: Trace, snapshot: DeviceSnapshot, event: int, alive: pl.DataFrame) -> Leak | None:
    """The line whose blocks stay from one training step to the next, if it has a good part of the memory.

    Layers of a forward pass keep their activations too. So a step counts only if a backward pass or an optimizer ran
    between two such blocks, and if much of what was allocated in between was freed again.
    """
    rows_of_history = with_places(trace, alive.filter(pl.col("begin") >= 0))
    by_place = rows_of_history.group_by("place").agg(pl.col("size").sum(), pl.len(), begins=pl.col("begin").sort())
    rows = by_place.sort("size", "place", descending=[True, False]).head(1).rows()
    if not rows or rows[0][1] < _LEAK_SHARE * max(1, snapshot.levels(event)[1]) or rows[0][2] < _LEAK_CYCLES:
        return None
    line, size, count, begins = rows[0]
    steps = _steps_between(trace, snapshot, np.array(begins, np.int64))
    return Leak(line, size, count, steps) if steps >= _LEAK_CYCLES else None


def _steps_between(trace: Trace, snapshot: DeviceSnapshot, begins: Ints) -> int:
    """How many training steps passed between allocations: those with a backward pass or an optimizer in between."""
    stacks = with_places(trace, snapshot.events.select("stack", begin=pl.lit(0)))
    is_training = stacks["text"].str.contains(_OF_TRAINING).fill_null(value=False).to_numpy()
    action, size = snapshot.events["action"].cast(pl.String).to_numpy(), snapshot.events["size"].to_numpy()
    training_events, freed_bytes, allocated_bytes = (
        np.concatenate([[0], np.cumsum(values)])
        for values in (is_training, np.where(action == "free_completed", size, 0), np.where(action == "alloc", size, 0))
    )
    first, last = begins[:-1] + 1, begins[1:]
    has_step = (training_events[last] - training_events[first] > 0) & (freed_bytes[last] - freed_bytes[first] > 0)
    is_balanced = freed_bytes[last] - freed_bytes[first] >= 0.5 * (allocated_bytes[last] - allocated_bytes[first])
    steps = int((has_step & is_balanced).sum())
    in_all = int(has_step.sum())
    return steps + 1 if in_all and steps >= _MOSTLY * in_all else 0
