"""Memory at the peak: what was alive when the most was allocated, by who had asked for it.

The rows of a device add up to its allocated memory at the peak. What the recording can't tell has rows of its own.
Alive is what was allocated in the recording and not released by then: a tensor that nothing needs any more, but that
is still referred to, is alive too.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...arrays.gather import NONE, gather, texts
from ...measures.calls.module_calls import ModuleCalls
from ...measures.memory.allocations import UNTOLD, alive_at, allocations, askers
from ...measures.memory.levels import HINT, DeviceMemory, OfDevice, device_memories
from ...pictures import Bars
from ...table import BYTES, COUNT, FRACTION, TEXT, Column
from ...trace import Trace
from ...view import Part, View

UNOWNED = {"operator": "[no operator]", "module": "[no module]"}
EARLIER = "[allocated before the recording]"
UNSEEN = "[released without a record]"
UNMATCHED = "[records without addresses]"


class MemoryPeak(OfDevice):
    """One row is all that one operator or module had asked for and that was alive at the device's peak.

    `[allocated before the recording]` is what no recorded allocation explains. If the trace has no totals, it is what
    was released of that memory. `[released without a record]` is what the records say is alive beyond the total.
    """

    key, weight = ("device", "owner"), "alive_bytes"
    picture = Bars(("alive_bytes",))

    owner = Column(
        TEXT,
        "Operator that asked for it, or what called that one if it only allocates (aten::empty); or the innermost "
        "nn.Module, which for what the backward pass allocated is that of the forward pass.",
    )
    alive_bytes = Column(BYTES, "Memory that was alive at the peak.")
    alive_frac = Column(FRACTION, "That as a share of all that was allocated; missing for a row below 0 or above that.")
    pieces = Column(COUNT, "In how many pieces; missing where they aren't known.")
    largest_bytes = Column(BYTES, "The largest of them.")


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
    """Of each record of memory, who asked; null if nobody is known."""
    op = trace.memory["op"].to_numpy()
    if by == "operator":
        return texts(trace.host_events["name"], gather(askers(trace), op))
    modules = ModuleCalls.of(trace)
    node, _ = modules.of_host_rows(trace)
    names = pl.Series([name.shown for name in modules.names], dtype=pl.String)
    return names.gather(pl.Series(gather(node, op), dtype=pl.Int64).replace(NONE, None))


def _at_peak(memory: DeviceMemory, owners: pl.Series, unowned: str, peak: int) -> pl.DataFrame:
    found = allocations([memory])
    level = memory.level_before(peak + 1)
    size = pl.col("size_bytes")
    alive = alive_at(found.filter(pl.col("fate") != UNTOLD), peak)
    rows = (
        alive.select("size_bytes", owners.gather(alive["row"]).fill_null(unowned).alias("owner"))
        .group_by("owner")
        .agg(alive_bytes=size.sum(), pieces=pl.len().cast(pl.Int64), largest_bytes=size.max())
    )
    if rest := level - int(rows["alive_bytes"].sum()):
        is_untold = bool((found["fate"] == UNTOLD).any())
        name = UNMATCHED if is_untold else UNSEEN if rest < 0 and not memory.is_relative else EARLIER
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
    group="Memory",
    needs="memory",
    hint=HINT,
    place=Part("memory_curve"),
    within="recording",
)
