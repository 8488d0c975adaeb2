"""Who allocated the memory of a device that is alive at some moment: operators or modules."""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...arrays.gather import NONE, gather, texts
from ...trace.model import Trace
from ..calls.module_calls import ModuleCalls
from .allocations import NO_ADDRESS, alive_at, allocations, askers
from .levels import DeviceMemory

By = Literal["operator", "module"]

UNOWNED: dict[By, str] = {"operator": "[no operator]", "module": "[no module]"}
EARLIER = "[allocated before the recording]"
UNSEEN = "[released without a record]"
UNMATCHED = "[records without addresses]"


def owners(trace: Trace, by: By) -> pl.Series:
    """The requesting operator or module of each memory record; null if unknown."""
    op = trace.memory["op"].to_numpy()
    if by == "operator":
        return texts(trace.host_events["name"], gather(askers(trace), op))
    modules = ModuleCalls.of(trace)
    node, _ = modules.of_host_rows(trace)
    names = pl.Series([name.label for name in modules.names], dtype=pl.String)
    return names.gather(pl.Series(gather(node, op), dtype=pl.Int64).replace(NONE, None))


def holders_after(memory: DeviceMemory, owner_of_record: pl.Series, by: By, record: int) -> pl.DataFrame:
    """What each owner holds after a record of a device, the most first; -1: before its first record.

    Columns: owner, alive_bytes, allocations, largest_bytes. The rows add up to the allocated level.
    """
    pieces = allocations([memory])
    size = pl.col("size_bytes")
    alive = alive_at(pieces.filter(pl.col("fate") != NO_ADDRESS), record)
    rows = (
        alive.select("size_bytes", owner_of_record.gather(alive["row"]).fill_null(UNOWNED[by]).alias("owner"))
        .group_by("owner")
        .agg(alive_bytes=size.sum(), allocations=pl.len().cast(pl.Int64), largest_bytes=size.max())
    )
    if rest := memory.level_before(record + 1) - int(rows["alive_bytes"].sum()):
        lacks_addresses = bool((pieces["fate"] == NO_ADDRESS).any())
        name = UNMATCHED if lacks_addresses else UNSEEN if rest < 0 and not memory.is_relative else EARLIER
        rows = pl.concat([rows, pl.DataFrame([{"owner": name, "alive_bytes": rest}])], how="diagonal")
    return rows.sort("alive_bytes", "owner", descending=[True, False])
