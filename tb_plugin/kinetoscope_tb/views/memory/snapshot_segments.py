"""Segments of a memory snapshot, and what is unused in them, by pool, stream and kind."""

from __future__ import annotations

import polars as pl

from ...arrays.gather import NONE
from ...measures.memory.snapshots import HINT, OfSnapshot
from ...measures.recording.contents import has_snapshot
from ...pictures import Bars
from ...table import BYTES, COUNT, FRACTION, ID, TEXT, Column
from ...trace import Trace
from ...view import Part, View


class SnapshotSegments(OfSnapshot):
    """What the allocator had reserved when the snapshot was taken, and how much of it no tensor used.

    A request is served from a free block of its own pool and stream that is large enough. So memory can be unused
    and of no use: in small pieces between tensors, cached on another stream, or in the private pool of a CUDA graph.
    """

    key, weight = ("device", "pool", "stream", "segment_type"), "unused_bytes"
    picture = Bars(("unused_bytes",))

    pool = Column(TEXT, "`default`, or the numbers of a private pool, such as that of a CUDA graph.")
    stream = Column(ID, "The stream for which they were reserved; 0 is the default stream.")
    segment_type = Column(TEXT, "`small`: for requests up to 1 MiB; `large`: for others.")
    segments = Column(COUNT, "Number of segments.")
    reserved_bytes = Column(BYTES, "Their size.")
    allocated_bytes = Column(BYTES, "In tensors, rounded up as the allocator does.")
    requested_bytes = Column(BYTES, "What was asked for; missing before torch 2.1.")
    pending_bytes = Column(BYTES, "Freed, but still used by another stream.")
    unused_bytes = Column(BYTES, "The rest: cached for later.")
    largest_unused_bytes = Column(BYTES, "The largest unused block: a larger request needs new memory of the device.")
    scattered_frac = Column(FRACTION, "Unused memory outside of the largest unused block, of all unused memory.")


def snapshot_segments(trace: Trace) -> pl.DataFrame:
    """The most unused memory first."""
    blocks = trace.snapshot_blocks.join(
        trace.snapshot_segments.with_row_index("segment")
        .filter(pl.col("device") != NONE)
        .select(
            pl.col("segment").cast(pl.Int32),
            pl.col("device").cast(pl.Int64),
            "stream",
            pool=pl.col("pool").cast(pl.String).replace("0, 0", "default").fill_null("default"),
            segment_type=pl.col("segment_type").cast(pl.String).fill_null("unknown"),
        ),
        "segment",
    )
    size, state = pl.col("size"), pl.col("state")
    rows = blocks.group_by("device", "pool", "stream", "segment_type").agg(
        segments=pl.col("segment").n_unique().cast(pl.Int64),
        reserved_bytes=size.sum(),
        allocated_bytes=size.filter(state == "active_allocated").sum(),
        requested_bytes=_sum_of_requests(pl.col("requested_size").filter(state == "active_allocated")),
        pending_bytes=size.filter(state == "active_pending_free").sum(),
        unused_bytes=size.filter(state == "inactive").sum(),
        largest_unused_bytes=size.filter(state == "inactive").max().fill_null(0),
    )
    rest = pl.col("unused_bytes") - pl.col("largest_unused_bytes")
    rows = rows.with_columns(scattered_frac=pl.when(pl.col("unused_bytes") > 0).then(rest / pl.col("unused_bytes")))
    order = ["device", "unused_bytes", "pool", "stream", "segment_type"]
    return SnapshotSegments.of(
        rows.sort(order, descending=[False, True, False, False, False]).select(SnapshotSegments.schema().names())
    )


def _sum_of_requests(sizes: pl.Expr) -> pl.Expr:
    return pl.when((sizes < 0).any()).then(None).otherwise(sizes.sum())


VIEW = View(
    snapshot_segments,
    table=SnapshotSegments,
    title="Segments",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint=HINT,
    within="recording",
)
