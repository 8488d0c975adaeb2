"""Memory levels: how much each device had allocated and reserved after each record, and the peak.

A record has the allocated (or, if negative, released) bytes and, since torch 1.10, the totals afterwards, from the
allocator itself. On the host the total starts with the process, counts only allocations made while a profiler records
memory, and includes memory whose release wasn't recorded (ProfiledCPUMemoryReporter in c10/core/CPUAllocator.cpp).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.native import Array, Function
from ...table import TEXT, Column, Table
from ...trace.model import Trace

_chain_totals = Function("chain_totals")

OUT_OF_MEMORY = "[OutOfMemory]"
CPU = 0  # c10's number of the device type
_LOOK_AHEAD = 64  # number of records with the same time among which the next one is searched

_TYPES = {  # by c10's number (c10/core/DeviceType.h), as torch.device spells those that have memory of their own
    0: "cpu",
    1: "cuda",
    6: "hip",
    9: "xla",
    12: "xpu",
    13: "mps",
    15: "hpu",
    19: "mtia",
    20: "privateuseone",
}

Ints = NDArray[np.int64]


class OfDevice(Table):
    """Values of one device."""

    device = Column(TEXT, "Device as torch names it; cpu is the host.")


IS_RELATIVE = "Whether the trace has no totals, so that allocated memory is the change since the recording began."
HINT = "No memory was recorded. Pass profile_memory=True to the profiler."
NO_ADDRESSES = (
    "No memory was recorded with addresses (torch 1.10 and later have them), which match releases with allocations. "
    "Pass profile_memory=True to the profiler."
)


@dataclass(frozen=True)
class DeviceMemory:
    """The records of one device's memory in order; all arrays are as long as there are records.

    Args:
        name: As torch writes it: cuda:0; cpu for the host.
        device_type: c10's number.
        device: Its index; 0 for the host.
        row: The record's row of `trace.memory`.
        time_ns: Time of each record.
        address: Address; NONE if not recorded.
        change_bytes: Allocated bytes, or released if negative; 0 if a request failed.
        requested_bytes: The same, but for a failed request the requested size.
        is_failure: Whether it is a failed request (out of memory).
        allocated_bytes: The allocated level after it.
        reserved_bytes: The reserved level after it; NONE if unknown.
        before_bytes: The allocated level before the first record.
        is_relative: Whether no record has a total, so that the levels are changes since the recording began.
    """

    name: str
    device_type: int
    device: int
    row: Ints
    time_ns: Ints
    address: Ints
    change_bytes: Ints
    requested_bytes: Ints
    is_failure: NDArray[np.bool_]
    allocated_bytes: Ints
    reserved_bytes: Ints
    before_bytes: int
    is_relative: bool

    def within(self, from_ns: int | None, to_ns: int | None) -> slice:
        """The records from `from_ns` up to, not including, `to_ns`."""
        first = 0 if from_ns is None else int(np.searchsorted(self.time_ns, from_ns))
        last = self.time_ns.size if to_ns is None else int(np.searchsorted(self.time_ns, to_ns))
        return slice(first, max(first, last))

    def level_before(self, record: int) -> int:
        """The allocated level before a record."""
        return int(self.allocated_bytes[record - 1]) if record else self.before_bytes

    def peak(self, from_ns: int | None = None, to_ns: int | None = None) -> int:
        """The first record with the highest allocated level; -1 if that was before the first record.

        For a range it may be the record before it, whose level the range begins with.
        """
        inside = self.within(from_ns, to_ns)
        levels = self.allocated_bytes[inside]
        if not levels.size or self.level_before(inside.start) >= levels.max():
            return int(inside.start) - 1
        return int(inside.start) + int(np.argmax(levels))


def device_memories(trace: Trace, device: str | None = None) -> list[DeviceMemory]:
    """Each device that has records, or the named one: accelerators first, then the host."""
    index = pl.when(pl.col("device_type") == CPU).then(0).otherwise(pl.col("device").clip(lower_bound=0))
    rows = trace.memory.with_row_index("row").with_columns(device=index)
    groups = rows.group_by("device_type", "device", maintain_order=True)
    memories = [_memory(int(kind), int(number), records) for (kind, number), records in groups]
    matches = [memory for memory in memories if device in (None, memory.name)]
    return sorted(matches, key=lambda memory: (memory.device_type == CPU, memory.device_type, memory.device))


def time_range(trace: Trace, memories: list[DeviceMemory], from_ns: int | None, to_ns: int | None) -> tuple[int, int]:
    """The time to draw: the recording with all records, or the part of it from `from_ns` to `to_ns`."""
    first = min([trace.window[0], *(int(memory.time_ns[0]) for memory in memories)])
    last = max([trace.window[1], *(int(memory.time_ns[-1]) + 1 for memory in memories)])
    begin = first if from_ns is None else min(max(from_ns, first), last)
    return begin, last if to_ns is None else max(begin, min(to_ns, last))


def device_name(device_type: int, device: int) -> str:
    """Such as cuda:0; an unknown type is shown by its number, and a missing one as device."""
    if device_type == NONE:
        return "device"
    kind = _TYPES.get(device_type, f"type {device_type}")
    return kind if device_type == CPU else f"{kind}:{device}"


def _memory(device_type: int, device: int, rows: pl.DataFrame) -> DeviceMemory:
    names = rows["name"].cast(pl.String)
    is_failure = (names == OUT_OF_MEMORY).to_numpy()
    time, total = rows["start_ns"].to_numpy(), rows["total_allocated"].to_numpy()
    change = np.where(is_failure, 0, rows["bytes"].to_numpy())
    has_totals = bool((total > 0).any())  # a backend without totals writes 0 in each record
    order = _record_order(time, rows["thread"].to_numpy(), change, total) if has_totals else np.arange(time.size)
    change, total = change[order], total[order]
    reserved_bytes, address = (rows[column].to_numpy()[order] for column in ("total_reserved", "address"))
    allocated_bytes, before = _levels(change, total) if has_totals else (np.cumsum(change), 0)
    return DeviceMemory(
        name=device_name(device_type, device),
        device_type=device_type,
        device=device,
        row=rows["row"].to_numpy()[order].astype(np.int64),
        time_ns=time,
        address=np.where(address == 0, NONE, address),
        change_bytes=change,
        requested_bytes=rows["bytes"].to_numpy()[order],
        is_failure=is_failure[order],
        allocated_bytes=allocated_bytes,
        reserved_bytes=reserved_bytes if (reserved_bytes > 0).any() else np.full(reserved_bytes.size, NONE, np.int64),
        before_bytes=before,
        is_relative=not has_totals,
    )


def _levels(change: Ints, total: Ints) -> tuple[Ints, int]:
    """Levels after each record, and before the first; missing totals are computed from their neighbors."""
    has_total = np.flatnonzero(total >= 0)
    since = np.cumsum(change)
    last = has_total[np.maximum(np.searchsorted(has_total, np.arange(total.size), "right") - 1, 0)]
    levels = total[last] + since - since[last]
    return levels, int(levels[0] - change[0])


def _record_order(time: Array, thread: Array, change: Array, total: Array) -> Array:
    """The order of the records: by time; at equal times, each record's previous total matches the one before it.

    The file has records of several threads thread by thread, and with microsecond clocks many have equal times.
    Records of one thread keep their order. If none matches, the order is the file's.
    """
    order = np.arange(time.size)
    _chain_totals(time, thread, change, total, _LOOK_AHEAD, order)
    return order
