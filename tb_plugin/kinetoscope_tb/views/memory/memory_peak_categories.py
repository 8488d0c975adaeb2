"""What was alive at a device's peak, by category and by the operator that allocated it."""

from __future__ import annotations

import polars as pl

from ...arrays.gather import gather, texts
from ...measures.memory.allocations import NO_ADDRESS, alive_at, askers
from ...measures.memory.categories import CategoryLevels
from ...measures.memory.levels import NO_ADDRESSES, DeviceMemory, OfDevice, device_memories
from ...measures.recording.contents import has_memory_categories
from ...names.memory_categories import CATEGORIES
from ...pictures import Treemap
from ...table import BYTES, COUNT, TEXT, Column
from ...trace import Trace
from ...view import Part, View

NO_OPERATOR = "[no operator]"
EARLIER = "[allocated before the recording]"
UNMATCHED = "[records without addresses]"


class MemoryPeakCategories(OfDevice):
    """What one device's memory was used for at its peak, by category and allocating operator.

    It shows the first accelerator, unless another device is chosen. The rows add up to the allocated memory, unless
    releases weren't recorded.
    """

    key, weight = ("device", "category", "operator"), "alive_bytes"
    picture = Treemap("alive_bytes", name="operator", group="category", groups=CATEGORIES)

    category = Column(
        TEXT, "parameters, gradients, optimizer state, activations, workspace or unknown: see By category."
    )
    operator = Column(TEXT, "Operator that requested it, or its caller if it only allocates (aten::empty).")
    alive_bytes = Column(BYTES, "Memory that was alive at the peak.")
    allocations = Column(COUNT, "Number of allocations; missing for memory from before the recording.")


def memory_peak_categories(
    trace: Trace, *, device: str | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The largest first; in a range of time, at the highest level in it."""
    parts = [_at_peak(trace, memory, memory.peak(from_ns, to_ns)) for memory in device_memories(trace, device)[:1]]
    return MemoryPeakCategories.of(pl.concat([pl.DataFrame(schema=MemoryPeakCategories.schema()), *parts]))


def _at_peak(trace: Trace, memory: DeviceMemory, peak: int) -> pl.DataFrame:
    if peak < 0:
        return pl.DataFrame(schema=MemoryPeakCategories.schema())
    by_category = CategoryLevels.of(trace, memory)
    operators = texts(trace.host_events["name"], gather(askers(trace), trace.memory["op"].to_numpy()))
    names = pl.Series(CATEGORIES)
    pieces = by_category.pieces.with_columns(category=names.gather(by_category.numbers.astype("int64")))
    has_address = pl.col("fate") != NO_ADDRESS
    alive = alive_at(pieces.filter(has_address), peak)
    rows = (
        alive.select("category", "size_bytes", operators.gather(alive["row"]).fill_null(NO_OPERATOR).alias("operator"))
        .group_by("category", "operator")
        .agg(alive_bytes=pl.col("size_bytes").sum(), allocations=pl.len().cast(pl.Int64))
    )
    levels = dict(zip(CATEGORIES, by_category.levels[peak].tolist(), strict=True))
    known_bytes = dict(rows.group_by("category").agg(pl.col("alive_bytes").sum()).rows())
    rest = {name: level - known_bytes.get(name, 0) for name, level in levels.items()}
    origin = EARLIER if pieces.select(has_address.all()).item() else UNMATCHED
    extra = [{"category": name, "operator": origin, "alive_bytes": size} for name, size in rest.items() if size > 0]
    table = pl.concat([rows, pl.DataFrame(extra, schema=rows.schema)], how="diagonal")
    table = table.with_columns(device=pl.lit(memory.name)).select(MemoryPeakCategories.schema().names())
    return table.sort("alive_bytes", "category", "operator", descending=[True, False, False])


VIEW = View(
    memory_peak_categories,
    table=MemoryPeakCategories,
    title="At the peak by category",
    entry="Memory",
    needs=has_memory_categories,
    hint=NO_ADDRESSES,
    option="profile_memory",
    place=Part("memory_curve"),
    within="recording",
)
