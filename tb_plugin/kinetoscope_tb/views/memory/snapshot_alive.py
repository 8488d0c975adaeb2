"""What was alive in a memory snapshot, by who allocated it: line, function, file, stack, operator, module, category."""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...measures.memory.snapshot_calls import call_names, peak_of_step, with_calls
from ...measures.memory.snapshots import HINT, ORIGINS, DeviceSnapshot, OfSnapshot, chosen_snapshots, with_places
from ...measures.recording.contents import has_snapshot
from ...names.python_frames import FRAME
from ...pictures import Treemap
from ...table import BYTES, COUNT, FRACTION, STACK, TEXT, Column
from ...trace import Trace
from ...view import Part, View

MOST = 5000  # rows: stacks of a device
_PLACES = {
    **{by: call_names(by) for by in ("operator", "module", "category")},
    "function": pl.col("place").str.replace(FRAME, "$function ($file)"),
    "file": pl.col("place").str.replace(FRAME, "$file"),
}


class SnapshotAlive(OfSnapshot):
    """Which lines of the program allocated the memory that was alive at the peak, at a failure, or at any time.

    If the trace of the same span is next to the snapshot, it says which operators and modules did, in the time that it
    covers; if it has memory, the category too, by the rules of By category.

    The rows of a device add up to its active memory at that moment, in requested bytes. `[allocated before the
    history]` was allocated before the oldest event that the snapshot has: a longer history
    records more.
    """

    key, weight = ("device", "place", "frames"), "alive_bytes"
    picture = Treemap("alive_bytes", "place", "origin", ORIGINS)

    place = Column(
        TEXT,
        "The innermost line in the stack that is neither of torch nor of an installed package: where the program "
        "asked for the memory. By operator, module or category, what the trace says; in brackets, why it doesn't.",
    )
    origin = Column(
        TEXT,
        "`program`: the place is a line of the program; `libraries`: of torch's Python or of an installed package; "
        "`torch`: no Python was on the stack, as in threads of autograd; `before the history`, `no stack`: unknown.",
    )
    alive_bytes = Column(BYTES, "Memory that was alive.")
    alive_frac = Column(FRACTION, "Of all active memory of the device.")
    blocks = Column(COUNT, "Number of blocks.")
    largest_bytes = Column(BYTES, "The largest block.")
    frames = Column(STACK, "By stack, the stack: the innermost frame first.")
    largest_stack = Column(STACK, "The stack that has most of the row's memory; missing by stack.")


def snapshot_alive(
    trace: Trace,
    *,
    at: Literal["peak", "failure", "end"] = "peak",
    by: Literal["line", "function", "file", "stack", "operator", "module", "category"] = "line",
    time_ns: int | None = None,
    step: str | None = None,
    device: int | None = None,
) -> pl.DataFrame:
    """The most memory first, device by device; at `time_ns` instead of `at`, or at the peak of the trace's `step`."""
    tables = [
        _alive(trace, snapshot, event, by)
        for snapshot in chosen_snapshots(trace, device)
        if (event := _event(snapshot, at, time_ns) if step is None else peak_of_step(trace, snapshot, step)) is not None
    ]
    return SnapshotAlive.of(pl.concat([pl.DataFrame(schema=SnapshotAlive.schema()), *tables]))


def _event(snapshot: DeviceSnapshot, at: str, time_ns: int | None) -> int | None:
    if time_ns is not None:
        return snapshot.within(time_ns, time_ns)[1] - 1
    if at == "failure":
        return snapshot.failure
    return snapshot.peak if at == "peak" else snapshot.events.height - 1


def _alive(trace: Trace, snapshot: DeviceSnapshot, event: int, by: str) -> pl.DataFrame:
    size = pl.col("size")
    alive = with_calls(trace, snapshot, with_places(trace, snapshot.alive(event)))
    alive = alive.with_columns(place=_PLACES.get(by, pl.col("place")))
    total = max(1, int(alive["size"].sum()))
    keys = ["place", "text"] if by == "stack" else ["place"]
    of_stack = alive.group_by("place", "text").agg(
        alive_bytes=size.sum(),
        blocks=pl.len().cast(pl.Int64),
        largest_bytes=size.max(),
        origin=pl.col("origin").first(),
    )
    rows = (
        of_stack.sort("alive_bytes", "text", descending=[True, False], nulls_last=True)
        .group_by(keys, maintain_order=True)
        .agg(
            pl.col("origin").first(),
            pl.col("alive_bytes").sum(),
            pl.col("blocks").sum(),
            pl.col("largest_bytes").max(),
            largest_stack=pl.lit(None, pl.String) if by == "stack" else pl.col("text").first(),
        )
    )
    frames = pl.col("text") if by == "stack" else pl.lit(None, pl.String)
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
    title="What was alive",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint=HINT,
    within="recording",
    reads_captures=True,
    in_rows_of_trace=("steps",),
)
