"""Segments of a memory snapshot with their blocks and holes, as a picture: a line for each segment."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...measures.memory.snapshots import HINT, OfSnapshot
from ...measures.recording.contents import has_snapshot
from ...names.text import memory_size
from ...pictures import Heatmap
from ...table import BYTES, FRACTION, ID, TEXT, Column
from ...trace import Trace
from ...view import Part, View

PARTS = 64  # of a segment
MOST = 300  # segments


class SnapshotLayout(OfSnapshot):
    """Where the tensors lie in each segment when the snapshot was taken: 64 parts of each, dark where it is in use.

    Segments of one pool and stream stand together, the largest first; the 300 largest of all are shown. A pale part
    between dark ones is a hole, which only a request that is no larger can use.
    """

    key, weight = ("segment", "part"), "used_frac"
    picture = Heatmap("segment", "part")

    segment = Column(TEXT, "Number and size of the segment; its pool, stream and device where they differ.")
    part = Column(ID, "Number of the part, from the start of the segment.")
    used_frac = Column(FRACTION, "How much of the part is in tensors, or is freed and still used by another stream.")
    used_bytes = Column(BYTES, "The same in bytes.")
    unused_bytes = Column(BYTES, "The rest of the part.")


def snapshot_layout(trace: Trace) -> pl.DataFrame:
    """Segment by segment, each from its start."""
    order = ["device", "pool", "stream", "total_size", "address"]
    segments = (
        trace.snapshot_segments.with_row_index("row")
        .filter(pl.col("total_size") > 0, pl.col("device") != NONE)
        .sort("total_size", "row", descending=[True, False])
        .head(MOST)
        .with_columns(pool=pl.col("pool").cast(pl.String).replace("0, 0", "default").fill_null("default"))
        .sort(order, descending=[False, False, False, True, False])
    )
    use_bytes = _used_bytes(trace, segments).ravel()
    size = np.repeat(segments["total_size"].to_numpy() / PARTS, PARTS)
    rows = segments.select(pl.col("device").cast(pl.Int64), segment=pl.Series(_names(segments), dtype=pl.String))
    return SnapshotLayout.of(
        rows.select(pl.all().repeat_by(PARTS).explode()).with_columns(
            part=pl.Series(np.tile(np.arange(PARTS), segments.height), dtype=pl.Int64),
            used_frac=pl.Series(np.clip(use_bytes / np.maximum(size, 1), 0, 1), dtype=pl.Float64),
            used_bytes=pl.Series(np.rint(use_bytes), dtype=pl.Int64),
            unused_bytes=pl.Series(np.rint(size) - np.rint(use_bytes), dtype=pl.Int64),
        )
    )


def _names(segments: pl.DataFrame) -> list[str]:
    columns = [segments[name] for name in ("pool", "stream", "device") if segments[name].n_unique() > 1]
    names = [f"#{nth} {memory_size(size)}" for nth, size in enumerate(segments["total_size"], 1)]
    texts = [[f", {column.name} {value}" for value in column] for column in columns]
    return ["".join(parts) for parts in zip(names, *texts, strict=True)]


def _used_bytes(trace: Trace, segments: pl.DataFrame) -> np.ndarray:
    """How many bytes of each part of each segment are used: a row for each segment.

    Along an axis on which each segment has the length 1, used bytes add up at a constant rate within each block.
    """
    positions = segments.select(
        pl.col("row").cast(pl.Int32).alias("segment"),
        nth=pl.int_range(pl.len()),
        start="address",
        total_size="total_size",
    )
    blocks = trace.snapshot_blocks.join(positions, "segment").sort("nth", "address")
    nth, total, start = (blocks[name].to_numpy() for name in ("nth", "total_size", "start"))
    size = np.maximum(blocks["size"].to_numpy(), 0)
    begin = np.clip((blocks["address"].to_numpy() - start) / total, 0, 1)
    end = np.clip(begin + size / total, 0, 1)
    use = np.where(blocks["state"].to_numpy() == "inactive", 0, (end - begin) * total)
    behind = np.cumsum(use)
    points = np.stack([nth + begin, nth + end], axis=1).ravel()
    sums = np.stack([behind - use, behind], axis=1).ravel()
    edges = np.arange(segments.height)[:, None] + np.arange(PARTS + 1)[None, :] / PARTS
    if not points.size:
        return np.zeros((segments.height, PARTS))
    return np.diff(np.interp(edges, np.maximum.accumulate(points), sums), axis=1)


VIEW = View(
    snapshot_layout,
    table=SnapshotLayout,
    title="Blocks and holes of segments",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint=HINT,
    within="recording",
)
