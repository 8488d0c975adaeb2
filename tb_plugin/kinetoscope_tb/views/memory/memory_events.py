"""Memory events: each piece of memory, who asked for it, and how long it lived.

A piece is matched with its release by its address. What the recording shows only one end of is kept and says so; none
of these is a leak by that alone, since a recording ends before the process does.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather, texts
from ...measures.memory.allocations import FAILED, FATES, OLDER, RETAKEN, UNTOLD, allocations, askers
from ...measures.memory.levels import HINT, OfDevice, device_memories
from ...table import BYTES, DURATION, ID, INSTANT, TEXT, Column
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import Part, RowTime, Slices, View

MOST = 10_000
ALWAYS = 1 << 62


class MemoryEvents(OfDevice):
    """One row is one piece of memory, or a request that failed; the last row may be all smaller ones together."""

    key, weight = ("device", "first_byte"), "size_bytes"

    operator = Column(
        TEXT,
        "Operator that asked for it: the innermost one then, or what called it if it only allocates (aten::empty).",
    )
    size_bytes = Column(BYTES, "Size.")
    allocated_ns = Column(INSTANT, "When it was allocated; missing if that wasn't recorded.")
    released_ns = Column(INSTANT, "When it was released; missing if that wasn't recorded.")
    lifetime_ns = Column(DURATION, "From its allocation to its release.")
    fate = Column(
        TEXT,
        "`released`; `never released` before the recording ended; `allocated earlier`: only the release was recorded; "
        "`address reused`: it was released unseen; `no address`: the ends can't be matched; `out of memory`: a request "
        "for which the device had no room.",
    )
    allocated_in = Column(TEXT, "Innermost operator that was open then.")
    first_byte = Column(ID, "Where its first record begins in the file.")


def memory_events(
    trace: Trace,
    *,
    device: str | None = None,
    from_ns: int | None = None,
    to_ns: int | None = None,
    rows: Literal["largest 10000", "all"] = "largest 10000",
) -> pl.DataFrame:
    """The largest first; in a range of time, what was allocated at any moment of it or failed in it."""
    found = allocations(device_memories(trace, device))
    overlaps = _overlaps(-ALWAYS if from_ns is None else from_ns, ALWAYS if to_ns is None else to_ns)
    found = found.filter(overlaps).sort("size_bytes", descending=True, maintain_order=True)
    shown = found if rows == "all" else found.head(MOST)
    listed = _listed(trace, shown)
    if shown.height < found.height:
        rest = found[shown.height :]
        smaller = {"operator": f"[{rest.height} smaller ones]", "size_bytes": rest["size_bytes"].sum()}
        listed = pl.concat([listed, pl.DataFrame([smaller])], how="diagonal")
    return MemoryEvents.of(listed)


def _overlaps(from_ns: int, to_ns: int) -> pl.Expr:
    """Whether an allocation was there at some moment of the range; without an end it is there always on that side."""
    at, is_moment = pl.col("at_ns"), pl.col("fate").is_in([FAILED, UNTOLD])
    end = pl.when(is_moment).then(at + 1).otherwise("gone_ns")
    begins_before = (at < to_ns) | (~is_moment & (pl.col("taken") == NONE))
    return begins_before & ((end > from_ns) | (~is_moment & (pl.col("gone") == NONE)))


def _listed(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    is_known = (found["fate"] != OLDER).to_numpy()  # what releases memory says nothing of who asked for it
    record, names = found["row"].to_numpy(), trace.host_events["name"]
    innermost = np.where(is_known, trace.memory["op"].to_numpy()[record], NONE)
    taken = pl.when(pl.col("fate") == FAILED).then("at_ns").otherwise(pl.col("taken_ns").replace(NONE, None))
    gone = pl.when(pl.col("fate") != RETAKEN).then(pl.col("gone_ns").replace(NONE, None))
    return found.select(
        "device",
        texts(names, gather(askers(trace), innermost)).alias("operator"),
        "size_bytes",
        taken.alias("allocated_ns"),
        gone.alias("released_ns"),
        (gone - taken).alias("lifetime_ns"),
        pl.col("fate").replace_strict(range(len(FATES)), FATES, return_dtype=pl.String),
        texts(names, innermost).alias("allocated_in"),
        pl.Series("first_byte", trace.memory["offset"].to_numpy()[record], dtype=pl.Int64),
    )


def events_of_row(trace: Trace, key: Key) -> Events:
    """The operator that was open when the memory was taken."""
    return {"host_events": trace.memory["op"].to_numpy()[rows_where(trace.memory, offset=key["first_byte"])]}


VIEW = View(
    memory_events,
    table=MemoryEvents,
    title="Allocations",
    group="Memory",
    needs="memory",
    hint=HINT,
    place=Part("memory_curve"),
    within="moments",
    slices=Slices(events_of_row),
    time=RowTime("allocated_ns", end="released_ns"),
)
