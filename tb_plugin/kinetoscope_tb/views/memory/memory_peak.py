"""Memory at the peak: what was alive when the most was allocated, by requesting operator or module.

The rows of a device add up to its allocated memory at the peak. Memory of unknown origin has its own rows. Memory is
alive from its allocation to its release: that includes tensors that aren't needed anymore, but are still referenced.
"""

from __future__ import annotations

import polars as pl

from ...measures.memory.holders import By, holders_after, owners
from ...measures.memory.levels import HINT, DeviceMemory, OfDevice, device_memories
from ...measures.recording.contents import has_memory
from ...pictures import Bars
from ...table import BYTES, COUNT, FRACTION, TEXT, Column
from ...trace import Trace
from ...view import Part, View


class MemoryPeak(OfDevice):
    """Which operators or modules allocated the memory that was alive at the device's peak.

    `[allocated before the recording]` is memory without a recorded allocation. If the trace has no totals, it is the
    part of that memory that was released. `[released without a record]` is recorded memory in excess of the total.
    """

    key, weight = ("device", "owner"), "alive_bytes"
    picture = Bars(("alive_bytes",))

    owner = Column(
        TEXT,
        "Operator that requested it, or its caller if it only allocates (aten::empty); or the innermost nn.Module, "
        "which for allocations in the backward pass is that of the forward pass.",
    )
    alive_bytes = Column(BYTES, "Memory that was alive at the peak.")
    alive_frac = Column(FRACTION, "Alive / allocated memory of the device; missing if it is below 0 or above 1.")
    allocations = Column(COUNT, "Number of allocations; missing if unknown.")
    largest_bytes = Column(BYTES, "The largest allocation.")


def memory_peak(
    trace: Trace,
    *,
    by: By = "operator",
    device: str | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
) -> pl.DataFrame:
    """The largest first, device by device; in a range of time, at the highest level in it."""
    memories = device_memories(trace, device)
    owner_of_record = owners(trace, by) if memories else pl.Series(dtype=pl.String)
    tables = [_at_peak(memory, owner_of_record, by, memory.peak(from_ns, to_ns)) for memory in memories]
    return MemoryPeak.of(pl.concat([pl.DataFrame(schema=MemoryPeak.schema()), *tables]))


def _at_peak(memory: DeviceMemory, owner_of_record: pl.Series, by: By, peak: int) -> pl.DataFrame:
    level = memory.level_before(peak + 1)
    share = pl.when(pl.col("alive_bytes").is_between(0, level) & (pl.lit(level) > 0)).then(
        pl.col("alive_bytes") / level
    )
    rows = holders_after(memory, owner_of_record, by, peak)
    return rows.with_columns(device=pl.lit(memory.name), alive_frac=share).select(MemoryPeak.schema().names())


VIEW = View(
    memory_peak,
    table=MemoryPeak,
    title="At the peak",
    entry="Memory",
    place=Part("memory_curve"),
    needs=has_memory,
    hint=HINT,
    option="profile_memory",
    within="recording",
)
