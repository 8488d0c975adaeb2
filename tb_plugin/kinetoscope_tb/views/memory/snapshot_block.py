"""One block of a memory snapshot: its stack, and what else the history says of it."""

from __future__ import annotations

import polars as pl

from ...measures.memory.snapshot_calls import with_calls
from ...measures.memory.snapshot_lives import MOST, timed_lives
from ...measures.memory.snapshot_ranges import KINDS, snapshot_ranges_of
from ...measures.memory.snapshots import HINT, DeviceSnapshot, OfSnapshot, chosen_snapshots, with_places
from ...measures.recording.contents import has_snapshot
from ...table import ID, STACK, TEXT, Column
from ...trace import Trace
from ...view import Detail, View


class SnapshotBlock(OfSnapshot):
    """Where a block was allocated, with the ranges and the metadata that the program gave.

    Operator, module, step and category are what the trace of the same span says, if it is next to the snapshot.
    """

    key = ("device", "block")

    block = Column(ID, "Number of the block among those of its device.")
    stream = Column(ID, "The stream for which it was allocated; missing if that was before the history.")
    operator = Column(
        TEXT,
        "Operator that requested it, or its caller if it only allocates (aten::empty). The trace has the block's "
        "address, or this is the only operator that was open; else it is missing.",
    )
    module = Column(TEXT, "Innermost nn.Module around the operator; of a backward operator, that of its forward one.")
    step = Column(TEXT, "The step in which it was allocated.")
    category = Column(TEXT, "What it is used for, if the trace has memory: see By category.")
    ranges = Column(TEXT, "Annotated ranges that were open when it was allocated, the outermost first.")
    user_metadata = Column(TEXT, "What the program set with torch's `_set_memory_metadata`.")
    compile_context = Column(TEXT, "The code of torch.compile that allocated it: number of its frame and its version.")
    frames = Column(STACK, "The stack, the innermost frame first.")


def snapshot_block(trace: Trace, *, device: int | None = None, block: int | None = None) -> pl.DataFrame:
    """The block with this number; without one, the largest of each device."""
    tables = [_blocks(trace, snapshot, block) for snapshot in chosen_snapshots(trace, device)]
    return SnapshotBlock.of(pl.concat([pl.DataFrame(schema=SnapshotBlock.schema()), *tables]))


def _blocks(trace: Trace, snapshot: DeviceSnapshot, block: int | None) -> pl.DataFrame:
    lives = timed_lives(snapshot)
    rows = lives.sort("size", "block", descending=[True, False]).head(MOST)
    if block is not None:
        rows = lives.filter(pl.col("block") == block)
    rows = with_calls(trace, snapshot, with_places(trace, rows))
    events = snapshot.events.with_row_index("begin").select(
        pl.col("begin").cast(pl.Int64),
        "stream",
        *(
            pl.col(name).cast(pl.String).replace({"": None, "N/A": None})
            for name in ("user_metadata", "compile_context")
        ),
    )
    annotations = snapshot_ranges_of(trace, snapshot).filter(pl.col("kind") == KINDS[0])
    ranges = [_range_names(annotations, begin, time) for begin, time in rows.select("begin", "time_ns").rows()]
    return (
        rows.join(events, "begin", "left", maintain_order="left")
        .with_columns(
            ranges=pl.Series(ranges, dtype=pl.String),
            device=pl.lit(snapshot.device, pl.Int64),
            frames="text",
        )
        .select(SnapshotBlock.schema().names())
        .cast(SnapshotBlock.schema())
    )


def _range_names(ranges: pl.DataFrame, begin: int, time_ns: int) -> str | None:
    """The annotations that were open at a time; None if there are none, or if the block is older than the history."""
    is_open = (pl.col("time_ns") <= time_ns) & (pl.col("end_ns").is_null() | (pl.col("end_ns") > time_ns))
    names = [] if begin < 0 else ranges.filter(is_open)["name"].to_list()
    return " › ".join(names) or None


VIEW = View(
    snapshot_block,
    table=SnapshotBlock,
    title="Stack of the block",
    entry="Memory",
    place=Detail("snapshot_blocks"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint=HINT,
    within="moments",
    reads_captures=True,
)
