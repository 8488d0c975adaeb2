"""Memory over time: how much each device had allocated and reserved, with the peak.

Allocated memory is in tensors, reserved memory belongs to PyTorch's allocator: the difference is cached for later, or
lost to fragmentation. Neither includes other users of the device (other processes, CUDA's own context). The host's
allocated memory is only what was allocated while a profiler recorded memory.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...measures.memory.levels import HINT, IS_RELATIVE, DeviceMemory, OfDevice, device_memories, time_range
from ...measures.recording.contents import has_memory
from ...pictures import Lines
from ...table import BOOL, BYTES, ID, INSTANT, TEXT, Column
from ...trace import Trace
from ...view import RowTime, Tab, View

DRAWN = 600  # parts of the time of which the lowest and the highest level are drawn: more than a screen can show


class MemoryCurve(OfDevice):
    """How much each device had allocated and reserved over time: the levels after each record.

    If there are more records than a chart can show, each of 600 parts of the time has the first, the last, and those
    with the highest and lowest levels. A narrower range of time shows more of them.
    """

    key = ("device", "time_ns", "first_byte")
    picture = Lines(("allocated_bytes", "reserved_bytes"), series=("device",), marks="event")

    time_ns = Column(INSTANT, "Time of the record.")
    allocated_bytes = Column(
        BYTES, "Memory in tensors from then on; if the trace has no totals, the change since the recording began."
    )
    reserved_bytes = Column(BYTES, "Device memory reserved by PyTorch's allocator; missing if not recorded.")
    unused_bytes = Column(BYTES, "Reserved minus allocated: cached for later, or lost to fragmentation.")
    event = Column(
        TEXT, "`peak`: the highest allocated level begins; `out of memory`: the device had no room for a request."
    )
    is_relative = Column(BOOL, IS_RELATIVE)
    first_byte = Column(
        ID,
        "Where the record begins in the file; missing at the start and the end of the time shown.",
        shown_as="offset",
    )


def memory_curve(
    trace: Trace, *, device: str | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The levels of each device in order of time, from its level at `from_ns` to that at `to_ns`."""
    memories = device_memories(trace, device)
    begin, end = time_range(trace, memories, from_ns, to_ns)
    curves = [_curve(trace, memory, begin, end) for memory in memories]
    return MemoryCurve.of(pl.concat([pl.DataFrame(schema=MemoryCurve.schema()), *curves]))


def _curve(trace: Trace, memory: DeviceMemory, begin: int, end: int) -> pl.DataFrame:
    inside = memory.within(begin, end)
    peak = memory.peak(begin, end)
    records = _records_to_draw(memory, inside, begin, end)
    is_marked = memory.is_failure[inside].copy()
    if inside.start <= peak:
        is_marked[peak - inside.start] = True
    drawn_records = np.union1d(records, np.flatnonzero(is_marked) + inside.start)
    # the level at the start of the range, the records, and the last level again at the end, if the range isn't empty
    rows = slice(None if begin < end else -1)
    record = np.concatenate(
        [[inside.start - 1], drawn_records, [drawn_records[-1] if drawn_records.size else inside.start - 1]]
    )[rows]
    time = np.concatenate([[begin], memory.time_ns[drawn_records], [end]])[rows]
    is_record = np.concatenate([[False], np.ones(drawn_records.size, bool), [False]])[rows]
    allocated_bytes = gather(memory.allocated_bytes, record, memory.before_bytes)
    reserved_bytes = pl.Series(gather(memory.reserved_bytes, record)).replace(NONE, None)
    offset = trace.memory["offset"].to_numpy()[memory.row]
    is_peak = (record == peak) & (is_record | (np.arange(record.size) == 0))
    return pl.DataFrame(
        {
            "device": pl.repeat(memory.name, record.size, dtype=pl.String, eager=True),
            "time_ns": time,
            "allocated_bytes": allocated_bytes,
            "reserved_bytes": reserved_bytes,
            "unused_bytes": reserved_bytes - pl.Series(allocated_bytes),
            "event": _events(is_peak, gather(memory.is_failure, record, missing=False) & is_record),
            "is_relative": pl.repeat(memory.is_relative, record.size, dtype=pl.Boolean, eager=True),
            "first_byte": pl.Series(np.where(is_record, gather(offset, record), NONE)).replace(NONE, None),
        },
        schema=MemoryCurve.schema(),
    )


def _events(is_peak: NDArray[np.bool_], is_failure: NDArray[np.bool_]) -> pl.Series:
    return pl.select(
        pl.when(pl.Series(is_failure))
        .then(pl.lit("out of memory"))
        .when(pl.Series(is_peak))
        .then(pl.lit("peak"))
        .otherwise(None)
    ).to_series()


def _records_to_draw(memory: DeviceMemory, inside: slice, begin: int, end: int) -> NDArray[np.int64]:
    """The records to draw: all if they are few, else those that bound the levels of each part of the time."""
    count = inside.stop - inside.start
    if count <= 4 * DRAWN:
        return np.arange(inside.start, inside.stop)
    part = (memory.time_ns[inside] - begin) // max(1, -(-(end - begin) // DRAWN))
    levels = pl.DataFrame(
        {
            "part": part,
            "record": np.arange(inside.start, inside.stop),
            "allocated": memory.allocated_bytes[inside],
            "reserved": memory.reserved_bytes[inside],
        }
    )
    record = pl.col("record")
    bounds = [
        record.first().alias("first"),
        record.last().alias("last"),
        *(record.get(pl.col(c).arg_max()).alias(f"{c}_most") for c in ("allocated", "reserved")),
        *(record.get(pl.col(c).arg_min()).alias(f"{c}_least") for c in ("allocated", "reserved")),
    ]
    bounds_of_parts = levels.group_by("part").agg(bounds).drop("part")
    return np.unique(bounds_of_parts.to_numpy())


VIEW = View(
    memory_curve,
    table=MemoryCurve,
    title="Memory",
    entry="Memory",
    place=Tab("Curve and peak"),
    needs=has_memory,
    hint=HINT,
    option="profile_memory",
    within="moments",
    time=RowTime("time_ns"),
)
