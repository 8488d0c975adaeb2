"""Devices' memory: how close each one came to its limit.

The size of a device is what its driver reports; other processes and CUDA's own context use some of it, and the trace
doesn't show how much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...measures.memory.levels import CPU, HINT, IS_RELATIVE, DeviceMemory, OfDevice, device_memories
from ...measures.recording.contents import has_memory
from ...table import BOOL, BYTES, COUNT, FRACTION, INSTANT, TEXT, Column
from ...trace import Trace
from ...view import Part, RowTime, View


class MemoryDevices(OfDevice):
    """How much memory each device used."""

    key, weight = ("device",), "peak_allocated_bytes"

    name = Column(TEXT, "Name that the driver reports.")
    memory_bytes = Column(BYTES, "Size of its memory.")
    peak_allocated_bytes = Column(
        BYTES, "Peak of memory in tensors; if the trace has no totals, relative to its start."
    )
    peak_ns = Column(INSTANT, "When the peak began; missing if it was before the first record.")
    peak_unused_bytes = Column(BYTES, "Reserved minus allocated then: cached for later, or lost to fragmentation.")
    peak_reserved_bytes = Column(BYTES, "Peak of device memory reserved by PyTorch's allocator.")
    peak_reserved_frac = Column(FRACTION, "Peak reserved / size of the device's memory.")
    begin_allocated_bytes = Column(BYTES, "Allocated when the time begins.")
    end_allocated_bytes = Column(BYTES, "Allocated when the time ends.")
    allocations = Column(COUNT, "Number of allocations.")
    releases = Column(COUNT, "Number of releases.")
    failures = Column(COUNT, "Requests for which the device had no room (out of memory).")
    is_relative = Column(BOOL, IS_RELATIVE)


def memory_devices(
    trace: Trace, *, device: str | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The devices, accelerators first; with a range of time, values within it."""
    properties = {d.get("id"): d for d in trace.meta.devices}
    rows = []
    for memory in device_memories(trace, device):
        device_properties = {} if memory.device_type == CPU else properties.get(memory.device, {})
        size = device_properties.get("totalGlobalMem")
        rows.append(
            {"device": memory.name, "name": str(device_properties["name"]) if device_properties.get("name") else None}
            | _measurements(memory, size if isinstance(size, int) and size > 0 else None, from_ns, to_ns)
        )
    return MemoryDevices.of(pl.DataFrame(rows, schema=MemoryDevices.schema()))


def _measurements(memory: DeviceMemory, size: int | None, from_ns: int | None, to_ns: int | None) -> dict[str, Any]:
    inside = memory.within(from_ns, to_ns)
    peak, change = memory.peak(from_ns, to_ns), memory.change_bytes[inside]
    # the range begins with the level before it; the level before the first record is unknown
    reserved_bytes = int(memory.reserved_bytes[max(0, inside.start - 1) : inside.stop].max(initial=NONE))
    then = int(memory.reserved_bytes[peak]) if peak >= 0 else NONE
    most = memory.level_before(peak + 1)
    return {
        "memory_bytes": size,
        "peak_allocated_bytes": most,
        "peak_ns": int(memory.time_ns[peak]) if peak >= 0 else None,
        "peak_unused_bytes": then - most if then >= 0 else None,
        "peak_reserved_bytes": reserved_bytes if reserved_bytes >= 0 else None,
        "peak_reserved_frac": reserved_bytes / size if size and reserved_bytes >= 0 else None,
        "begin_allocated_bytes": memory.level_before(inside.start),
        "end_allocated_bytes": memory.level_before(inside.stop),
        "allocations": int(np.sum(change > 0)),
        "releases": int(np.sum(change < 0)),
        "failures": int(memory.is_failure[inside].sum()),
        "is_relative": memory.is_relative,
    }


VIEW = View(
    memory_devices,
    table=MemoryDevices,
    title="Devices",
    entry="Memory",
    place=Part("memory_curve"),
    needs=has_memory,
    hint=HINT,
    option="profile_memory",
    within="recording",
    time=RowTime("peak_ns"),
)
