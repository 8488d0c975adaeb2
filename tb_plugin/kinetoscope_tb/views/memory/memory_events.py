"""Memory events: each allocation, the operator that requested it, and its lifetime.

An allocation is matched with its release by its address. Some have only one end in the trace, as `fate` shows; that
alone doesn't make them leaks, since a recording ends before the process does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather, texts
from ...measures.memory.allocations import FAILED, FATES, NO_ADDRESS, REUSED, allocations, askers
from ...measures.memory.levels import HINT, OfDevice, device_memories
from ...measures.recording.contents import has_memory
from ...table import BYTES, DURATION, ID, INSTANT, TEXT, Column, with_rest
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import RowTime, Slices, Tab, View

MOST = 10_000
ALWAYS = 1 << 62


class MemoryEvents(OfDevice):
    """Every allocation with its lifetime, and failed requests; the last row may combine the smaller ones."""

    key, weight = ("device", "first_byte"), "size_bytes"

    operator = Column(
        TEXT,
        "Operator that requested it: the innermost one, or its caller if it only allocates (aten::empty).",
    )
    size_bytes = Column(BYTES, "Size.")
    allocated_ns = Column(INSTANT, "When it was allocated; missing if that wasn't recorded.")
    released_ns = Column(INSTANT, "When it was released; missing if that wasn't recorded.")
    lifetime_ns = Column(DURATION, "From its allocation to its release.")
    outcome = Column(
        TEXT,
        "`released`; `never released` before the recording ended; `allocated earlier`: only the release was recorded; "
        "`address reused`: its release wasn't recorded; `no address`: the ends can't be matched; `out of memory`: a "
        "failed request.",
    )
    allocated_in = Column(TEXT, "Innermost operator that was open then.")
    first_byte = Column(ID, "Where its first record begins in the file.", shown_as="offset")


def memory_events(
    trace: Trace,
    *,
    device: str | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
    rows: Literal["largest 10000", "all"] = "largest 10000",
) -> pl.DataFrame:
    """The largest first; in a range of time, allocations that were alive in it and requests that failed in it."""
    pieces = allocations(device_memories(trace, device))
    overlaps = _overlaps(-ALWAYS if from_ns is None else from_ns, ALWAYS if to_ns is None else to_ns)
    pieces = pieces.filter(overlaps).sort("size_bytes", descending=True, maintain_order=True)
    largest = pieces if rows == "all" or pieces.height <= MOST else pieces.head(MOST - 1)
    table = _table(trace, largest)
    return MemoryEvents.of(with_rest(table, pieces, "size_bytes", "operator", "smaller"))


def _overlaps(from_ns: int, to_ns: int) -> pl.Expr:
    """Whether an allocation was alive at some time in the range; an unknown end is unbounded."""
    at, is_moment = pl.col("at_ns"), pl.col("fate").is_in([FAILED, NO_ADDRESS])
    end = pl.when(is_moment).then(at + 1).otherwise("released_ns")
    begins_before = (at < to_ns) | (~is_moment & (pl.col("allocated") == NONE))
    return begins_before & ((end > from_ns) | (~is_moment & (pl.col("released") == NONE)))


def _table(trace: Trace, pieces: pl.DataFrame) -> pl.DataFrame:
    # A lone release shows the operator that released, not the one that requested.
    has_requester = pieces.select((pl.col("allocated") != NONE) | (pl.col("fate") == FAILED)).to_series().to_numpy()
    record, names = pieces["row"].to_numpy(), trace.host_events["name"]
    innermost = np.where(has_requester, trace.memory["op"].to_numpy()[record], NONE)
    allocated_ns = pl.when(pl.col("fate") == FAILED).then("at_ns").otherwise(pl.col("allocated_ns").replace(NONE, None))
    released_ns = pl.when(pl.col("fate") != REUSED).then(pl.col("released_ns").replace(NONE, None))
    return pieces.select(
        "device",
        texts(names, gather(askers(trace), innermost)).alias("operator"),
        "size_bytes",
        allocated_ns.alias("allocated_ns"),
        released_ns.alias("released_ns"),
        (released_ns - allocated_ns).alias("lifetime_ns"),
        pl.col("fate").replace_strict(range(len(FATES)), FATES, return_dtype=pl.String).alias("outcome"),
        texts(names, innermost).alias("allocated_in"),
        pl.Series("first_byte", trace.memory["offset"].to_numpy()[record], dtype=pl.Int64),
    )


def events_of_row(trace: Trace, key: Key) -> Events:
    """The operator that was open at the allocation."""
    return {"host_events": trace.memory["op"].to_numpy()[rows_where(trace.memory, offset=key["first_byte"])]}


VIEW = View(
    memory_events,
    table=MemoryEvents,
    title="Allocations",
    entry="Memory",
    place=Tab("Events"),
    needs=has_memory,
    hint=HINT,
    option="profile_memory",
    within="moments",
    slices=Slices(events_of_row, "An operator may make several allocations."),
    time=RowTime("allocated_ns", end="released_ns"),
)
