"""Annotations and user metadata of a memory snapshot as ranges of its history."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from ...measures.memory.snapshot_ranges import snapshot_ranges_of
from ...measures.memory.snapshots import DeviceSnapshot, Ints, OfSnapshot, chosen_snapshots, time_range
from ...measures.recording.contents import has_snapshot
from ...table import BYTES, ID, INSTANT, TEXT, Column
from ...trace import Trace
from ...view import Part, RowTime, View

MOST = 1200  # ranges of a device


class SnapshotRanges(OfSnapshot):
    """The program's annotated ranges and its user metadata over the history of a snapshot, each with its peak.

    Only the 1,200 longest ranges of a device are listed. Annotations are recorded with torch's
    `_record_memory_history(global_record_annotations=True)`, metadata with `_set_memory_metadata`.
    """

    key = ("device", "kind", "name", "time_ns", "lane")

    kind = Column(TEXT, "`annotation`, or `user metadata`.")
    name = Column(TEXT, "Name of the range, or the metadata.")
    time_ns = Column(INSTANT, "When it began.")
    end_ns = Column(INSTANT, "When it ended; the end of the history if it was open then.")
    peak_bytes = Column(BYTES, "The most that was allocated in it.", adds_up=False)
    growth_bytes = Column(BYTES, "Allocated at its end minus allocated at its begin.", adds_up=False)
    lane = Column(ID, "Line on which it is drawn: ranges that are open at the same time have different ones.")


def snapshot_ranges(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """In order of time, device by device; those that a range of time has a part of."""
    snapshots = chosen_snapshots(trace, device)
    begin, end = time_range(snapshots, from_ns, to_ns)
    is_inside = (pl.col("time_ns") <= end) & (pl.col("end_ns").fill_null(end) >= begin)
    tables = [
        _with_levels(snapshot, snapshot_ranges_of(trace, snapshot).filter(is_inside))
        for snapshot in snapshots
        if snapshot.has_times
    ]
    return SnapshotRanges.of(pl.concat([pl.DataFrame(schema=SnapshotRanges.schema()), *tables]))


def _with_levels(snapshot: DeviceSnapshot, ranges: pl.DataFrame) -> pl.DataFrame:
    last = int(snapshot.times[-1])
    ranges = ranges.with_columns(end_ns=pl.col("end_ns").fill_null(pl.max_horizontal("time_ns", last)))
    ranges = ranges.top_k(MOST, by=pl.col("end_ns") - pl.col("time_ns")).sort("time_ns", "lane")
    levels = np.concatenate([[snapshot.before[0]], snapshot.allocated_bytes])  # after each event, from none on
    begin, end = (ranges[name].to_numpy() for name in ("time_ns", "end_ns"))
    first, behind = np.searchsorted(snapshot.times, begin), np.searchsorted(snapshot.times, end)
    behind[end >= last] = snapshot.times.size
    return ranges.select(
        device=pl.lit(snapshot.device, pl.Int64),
        kind="kind",
        name="name",
        time_ns="time_ns",
        end_ns="end_ns",
        peak_bytes=pl.Series(_peaks(levels, first, behind), dtype=pl.Int64),
        growth_bytes=pl.Series(levels[behind] - levels[first], dtype=pl.Int64),
        lane="lane",
    )


def _peaks(levels: Ints, first: Ints, last: Ints) -> list[int]:
    """The highest level from each first position to each last one, by the maxima of parts: ranges can be nested."""
    part = math.isqrt(levels.size)
    maxima = np.maximum.reduceat(levels, np.arange(0, levels.size, part))

    def peak(begin: int, end: int) -> int:
        low, high = -(-begin // part), end // part
        if low >= high:
            return int(levels[begin:end].max())
        ends = levels[begin : low * part], maxima[low:high], levels[high * part : end]
        return max(int(values.max()) for values in ends if values.size)

    return [peak(begin, end + 1) for begin, end in zip(first.tolist(), last.tolist(), strict=True)]


VIEW = View(
    snapshot_ranges,
    table=SnapshotRanges,
    title="Ranges",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint="No ranges: record annotations with _record_memory_history(global_record_annotations=True), or set metadata.",
    within="moments",
    time=RowTime("time_ns", end="end_ns"),
)
