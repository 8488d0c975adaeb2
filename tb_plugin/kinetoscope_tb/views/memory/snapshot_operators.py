"""Which operators allocated the memory of a snapshot, by the trace of the same time."""

from __future__ import annotations

import polars as pl

from ...measures.memory.snapshot_calls import call_names, with_calls
from ...measures.memory.snapshots import HINT, DeviceSnapshot, OfSnapshot, chosen_snapshots
from ...measures.recording.contents import has_snapshot
from ...table import BYTES, COUNT, TEXT, Column
from ...trace import Trace
from ...view import Part, View


class SnapshotOperators(OfSnapshot):
    """Which operators allocated memory, by the trace of the same span next to the snapshot.

    The rows of a device add up to all blocks that its history begins. No trace says which addresses a kernel uses, so
    the last kernel that used a block is unknown.
    """

    key, weight = ("device", "name"), "allocated_bytes"

    name = Column(
        TEXT,
        "Operator that requested the memory, or its caller if it only allocates (aten::empty); in brackets, why it "
        "isn't known.",
    )
    allocations = Column(COUNT, "Number of blocks that it allocated.")
    allocated_bytes = Column(BYTES, "Sum of these blocks; those that follow each other at the same address count too.")
    largest_bytes = Column(BYTES, "The largest of them.")
    alive_at_peak_bytes = Column(BYTES, "What of it was alive at the peak of the device.")
    alive_at_end_bytes = Column(BYTES, "What of it was alive when the snapshot was taken.")


def snapshot_operators(
    trace: Trace, *, name: str | None = None, step: str | None = None, device: int | None = None
) -> pl.DataFrame:
    """The most memory first, device by device; of one operator, or of what a step of the trace allocated."""
    tables = [_operators(trace, snapshot, step) for snapshot in chosen_snapshots(trace, device)]
    rows = pl.concat([pl.DataFrame(schema=SnapshotOperators.schema()), *tables])
    return SnapshotOperators.of(rows if name is None else rows.filter(pl.col("name") == name))


def _operators(trace: Trace, snapshot: DeviceSnapshot, step: str | None) -> pl.DataFrame:
    lives = with_calls(trace, snapshot, snapshot.lives.filter(pl.col("begin") >= 0))
    lives = lives if step is None else lives.filter(pl.col("step") == step)
    size, begin, end = pl.col("size"), pl.col("begin"), pl.col("end")
    rows = lives.group_by(call_names("operator").alias("name")).agg(
        device=pl.lit(snapshot.device),
        allocations=pl.len(),
        allocated_bytes=size.sum(),
        largest_bytes=size.max(),
        alive_at_peak_bytes=size.filter((begin <= snapshot.peak) & (end > snapshot.peak)).sum(),
        alive_at_end_bytes=size.filter(end == snapshot.events.height).sum(),
    )
    rows = rows.sort("allocated_bytes", "name", descending=[True, False])
    return rows.select(SnapshotOperators.schema().names()).cast(SnapshotOperators.schema())


VIEW = View(
    snapshot_operators,
    table=SnapshotOperators,
    title="Allocated in the snapshot",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint=HINT,
    within="recording",
    reads_captures=True,
    in_rows_of_trace=("operators", "steps"),
)
