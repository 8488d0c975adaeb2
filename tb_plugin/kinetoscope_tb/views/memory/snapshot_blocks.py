"""The largest blocks of a memory snapshot over time, as bands on top of each other."""

from __future__ import annotations

import polars as pl

from ...measures.memory.snapshot_lives import blocks_between
from ...measures.memory.snapshots import HINT, OfSnapshot, chosen_snapshots, time_range
from ...measures.recording.contents import has_snapshot
from ...pictures import Bands
from ...table import BYTES, DURATION, ID, INSTANT, TEXT, Column
from ...trace import Trace
from ...view import Part, RowTime, View


class SnapshotBlocks(OfSnapshot):
    """The blocks that fill most of the time shown: when each was allocated and freed, and which line did it.

    Each is a band, on top of those that were allocated before it. Only the 1,200 blocks of a device with the largest
    bands are listed; the others are the gray area above them. A narrower range of time shows smaller blocks.
    """

    key, weight = ("device", "block"), "size_bytes"
    picture = Bands(
        *("time_ns", "end_ns", "size_bytes", "place", "device", "snapshot_levels", ("reserved_bytes", "active_bytes")),
        ranges_view="snapshot_ranges",
        ranges=("time_ns", "end_ns", "name", "lane"),
    )

    place = Column(TEXT, "The line of the program that allocated it.")
    size_bytes = Column(BYTES, "What was requested.")
    time_ns = Column(INSTANT, "When it was allocated; if that was before the history, where that begins.")
    end_ns = Column(INSTANT, "When it was freed and no stream used it any more; if it wasn't, the history's end.")
    lifetime_ns = Column(DURATION, "From there to there; missing if the history doesn't have both.", adds_up=False)
    block = Column(ID, "Number of the block among those of its device.")


def snapshot_blocks(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The largest first, device by device."""
    snapshots = chosen_snapshots(trace, device)
    begin, end = time_range(snapshots, from_ns, to_ns)
    tables = [
        blocks_between(trace, snapshot, begin, end).select(
            pl.lit(snapshot.device, pl.Int64).alias("device"),
            *("place", pl.col("size").alias("size_bytes"), "time_ns", "end_ns", "lifetime_ns", "block"),
        )
        for snapshot in snapshots
    ]
    return SnapshotBlocks.of(pl.concat([pl.DataFrame(schema=SnapshotBlocks.schema()), *tables]))


VIEW = View(
    snapshot_blocks,
    table=SnapshotBlocks,
    title="Blocks over time",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint=HINT,
    within="moments",
    time=RowTime("time_ns", end="end_ns"),
)
