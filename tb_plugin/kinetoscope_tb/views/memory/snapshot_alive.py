"""What was alive in a memory snapshot, by the line of the program that allocated it, or by the whole stack."""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...measures.memory.snapshots import HINT, DeviceSnapshot, OfSnapshot, device_snapshots, with_places
from ...measures.recording.contents import has_snapshot
from ...pictures import Bars
from ...table import BYTES, COUNT, FRACTION, STACK, TEXT, Column
from ...trace import Trace
from ...view import Part, View

MOST = 5000  # rows: stacks of a device


class SnapshotAlive(OfSnapshot):
    """Which lines of the program allocated the memory that was alive at the peak, at the end, or at a failure.

    The rows of a device add up to its active memory at that moment, in requested bytes. `[allocated before the
    history]` was allocated before the oldest event that the snapshot has: a longer history
    records more.
    """

    key, weight = ("device", "place", "frames"), "alive_bytes"
    picture = Bars(("alive_bytes",))

    place = Column(
        TEXT,
        "The innermost line in the stack that is neither of torch nor of an installed package: where the program "
        "asked for the memory.",
    )
    alive_bytes = Column(BYTES, "Memory that was alive.")
    alive_frac = Column(FRACTION, "Of all active memory of the device.")
    blocks = Column(COUNT, "Number of blocks.")
    largest_bytes = Column(BYTES, "The largest block.")
    frames = Column(STACK, "By stack, the stack: the innermost frame first.")
    largest_stack = Column(STACK, "By line, the stack that has most of its memory.")


def snapshot_alive(
    trace: Trace, *, at: Literal["peak", "failure", "end"] = "peak", by: Literal["line", "stack"] = "line"
) -> pl.DataFrame:
    """The most memory first, device by device; at a failure only of devices that have one."""
    tables = [
        _alive(trace, snapshot, event, by)
        for snapshot in device_snapshots(trace)
        if (event := _event(snapshot, at)) is not None
    ]
    return SnapshotAlive.of(pl.concat([pl.DataFrame(schema=SnapshotAlive.schema()), *tables]))


def _event(snapshot: DeviceSnapshot, at: str) -> int | None:
    if at == "failure":
        return snapshot.failure
    return snapshot.peak if at == "peak" else snapshot.events.height - 1


def _alive(trace: Trace, snapshot: DeviceSnapshot, event: int, by: str) -> pl.DataFrame:
    size = pl.col("size")
    alive = with_places(trace, snapshot.alive(event))
    total = max(1, int(alive["size"].sum()))
    keys = ["place"] if by == "line" else ["place", "text"]
    of_stack = alive.group_by("place", "text").agg(
        alive_bytes=size.sum(), blocks=pl.len().cast(pl.Int64), largest_bytes=size.max()
    )
    rows = (
        of_stack.sort("alive_bytes", "text", descending=[True, False], nulls_last=True)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("alive_bytes").sum(),
            pl.col("blocks").sum(),
            pl.col("largest_bytes").max(),
            largest_stack=pl.col("text").first() if by == "line" else pl.lit(None, pl.String),
        )
    )
    frames = pl.lit(None, pl.String) if by == "line" else pl.col("text")
    return (
        rows.with_columns(
            device=pl.lit(snapshot.device, pl.Int64), alive_frac=pl.col("alive_bytes") / total, frames=frames
        )
        .sort("alive_bytes", "place", descending=[True, False])
        .head(MOST)
        .select(SnapshotAlive.schema().names())
        .cast(SnapshotAlive.schema())
    )


VIEW = View(
    snapshot_alive,
    table=SnapshotAlive,
    title="Alive in the snapshot",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot,
    hint=HINT,
    within="recording",
)
