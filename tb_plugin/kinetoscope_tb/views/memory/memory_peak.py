"""Memory at the peak: what was alive when the most was allocated, by requesting operator or module.

The rows of a device add up to its allocated memory at the peak. Memory of unknown origin has its own rows. Memory is
alive from its allocation to its release: that includes tensors that aren't needed anymore, but are still referenced.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...arrays.gather import NONE, gather, texts
from ...measures.calls.module_calls import ModuleCalls
from ...measures.memory.allocations import NO_ADDRESS, alive_at, allocations, askers
from ...measures.memory.levels import HINT, DeviceMemory, OfDevice, device_memories
from ...measures.recording.contents import has_memory
from ...pictures import Bars
from ...table import BYTES, COUNT, FRACTION, TEXT, Column
from ...trace import Trace
from ...view import Part, View

UNOWNED = {"operator": "[no operator]", "module": "[no module]"}
EARLIER = "[allocated before the recording]"
UNSEEN = "[released without a record]"
UNMATCHED = "[records without addresses]"


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
    by: Literal["operator", "module"] = "operator",
    device: str | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
) -> pl.DataFrame:
    """The largest first, device by device; in a range of time, at the highest level in it."""
    memories = device_memories(trace, device)
    owners = _owners(trace, by) if memories else pl.Series(dtype=pl.String)
    tables = [_at_peak(memory, owners, UNOWNED[by], memory.peak(from_ns, to_ns)) for memory in memories]
    return MemoryPeak.of(pl.concat([pl.DataFrame(schema=MemoryPeak.schema()), *tables]))


def _owners(trace: Trace, by: str) -> pl.Series:
    """The requesting operator or module of each memory record; null if unknown."""
    op = trace.memory["op"].to_numpy()
    if by == "operator":
        return texts(trace.host_events["name"], gather(askers(trace), op))
    modules = ModuleCalls.of(trace)
    node, _ = modules.of_host_rows(trace)
    names = pl.Series([name.shown for name in modules.names], dtype=pl.String)
    return names.gather(pl.Series(gather(node, op), dtype=pl.Int64).replace(NONE, None))


def _at_peak(memory: DeviceMemory, owners: pl.Series, unowned: str, peak: int) -> pl.DataFrame:
    pieces = allocations([memory])
    level = memory.level_before(peak + 1)
    size = pl.col("size_bytes")
    alive = alive_at(pieces.filter(pl.col("fate") != NO_ADDRESS), peak)
    rows = (
        alive.select("size_bytes", owners.gather(alive["row"]).fill_null(unowned).alias("owner"))
        .group_by("owner")
        .agg(alive_bytes=size.sum(), allocations=pl.len().cast(pl.Int64), largest_bytes=size.max())
    )
    if rest := level - int(rows["alive_bytes"].sum()):
        lacks_addresses = bool((pieces["fate"] == NO_ADDRESS).any())
        name = UNMATCHED if lacks_addresses else UNSEEN if rest < 0 and not memory.is_relative else EARLIER
        rows = pl.concat([rows, pl.DataFrame([{"owner": name, "alive_bytes": rest}])], how="diagonal")
    share = pl.when(pl.col("alive_bytes").is_between(0, level) & (pl.lit(level) > 0)).then(
        pl.col("alive_bytes") / level
    )
    named = rows.with_columns(device=pl.lit(memory.name), alive_frac=share)
    return named.sort("alive_bytes", "owner", descending=[True, False]).select(MemoryPeak.schema().names())


VIEW = View(
    memory_peak,
    table=MemoryPeak,
    title="At the peak",
    entry="Memory",
    place=Part("memory_curve"),
    needs=has_memory,
    hint=HINT,
    within="recording",
)
