"""Levels of a memory snapshot over time: allocated, active and reserved memory of each device."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...measures.memory.snapshots import HINT, DeviceSnapshot, OfSnapshot, chosen_snapshots, time_range
from ...measures.recording.contents import has_snapshot
from ...pictures import Lines
from ...table import BYTES, ID, INSTANT, TEXT, Column
from ...trace import Trace
from ...view import RowTime, Tab, View

DRAWN = 600  # parts of the history of which the first, the last, the highest and the lowest levels are drawn


class SnapshotLevels(OfSnapshot):
    """How much memory a snapshot's history had allocated, active and reserved after each of its events.

    Sizes are as requested: the allocator rounds each up to 512 bytes or more. Of a long history, 600 parts each have
    the first and the last level, the highest and the lowest. A narrower range of time shows more of them.
    """

    key = ("device", "time_ns", "event")
    picture = Lines(("allocated_bytes", "active_bytes", "reserved_bytes"), series=("device",), marks="what")

    time_ns = Column(INSTANT, "Time of the event; its number if the snapshot has no times (torch before 2.1).")
    allocated_bytes = Column(BYTES, "Memory in tensors from then on.")
    active_bytes = Column(BYTES, "Allocated, and freed memory that another stream still uses.")
    reserved_bytes = Column(BYTES, "Device memory that the allocator had reserved.")
    what = Column(TEXT, "`peak`: the most was allocated; `out of memory`: the device had no room for a request.")
    event = Column(ID, "Number of the event in the history of the device; -1 is before the first.")


def snapshot_levels(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The levels of each device in order of time, from its level at `from_ns` to that at `to_ns`."""
    snapshots = chosen_snapshots(trace, device)
    begin, end = time_range(snapshots, from_ns, to_ns)
    empty = pl.DataFrame(schema=SnapshotLevels.schema())
    return SnapshotLevels.of(pl.concat([empty, *(_rows(snapshot, begin, end) for snapshot in snapshots)]))


def _rows(snapshot: DeviceSnapshot, begin: int, end: int) -> pl.DataFrame:
    first, behind = snapshot.within(begin, end)
    is_failure = (snapshot.events["action"] == "oom").to_numpy()
    marks = np.append(np.flatnonzero(is_failure), snapshot.peak)
    events = np.union1d(_events_to_draw(snapshot, first, behind), marks[(marks >= first) & (marks < behind)])
    is_over = end > begin and (behind == first or int(snapshot.times[behind - 1]) < end)
    # the level at the start of the range, the events, and the last level again at its end
    events = np.concatenate([[first - 1], events, [behind - 1] * is_over]).astype(np.int64)
    levels = np.array([snapshot.levels(event) for event in events.tolist()], np.int64).reshape(-1, 3)
    times = np.append(snapshot.times, 0)[events]
    times[0] = begin
    times[-1] = end if is_over else times[-1]
    what = [
        "out of memory" if event >= 0 and is_failure[event] else "peak" if event == snapshot.peak else None
        for event in events.tolist()
    ]
    what[-1] = None if is_over else what[-1]
    what[0] = None if first else what[0]
    return pl.DataFrame(
        {
            "device": pl.Series([snapshot.device] * events.size, dtype=pl.Int64),
            "time_ns": times,
            **dict(zip(("allocated_bytes", "active_bytes", "reserved_bytes"), levels.T, strict=True)),
            "what": pl.Series(what, dtype=pl.String),
            "event": events,
        },
        schema=SnapshotLevels.schema(),
    )


def _events_to_draw(snapshot: DeviceSnapshot, first: int, behind: int) -> NDArray[np.int64]:
    """The events to draw: all if they are few, else those that bound the levels of each part of the range."""
    count = behind - first
    if count <= 4 * DRAWN:
        return np.arange(first, behind)
    levels = pl.DataFrame(
        {
            "part": np.arange(count) * DRAWN // count,
            "event": np.arange(first, behind),
            "allocated": snapshot.allocated_bytes[first:behind],
            "reserved": snapshot.reserved_bytes[first:behind],
        }
    )
    event = pl.col("event")
    bounds = [event.first().alias("first"), event.last().alias("last")]
    bounds += [event.get(pl.col(name).arg_max()).alias(f"{name}_most") for name in ("allocated", "reserved")]
    bounds += [event.get(pl.col("allocated").arg_min()).alias("least")]
    return np.unique(levels.group_by("part").agg(bounds).drop("part").to_numpy())


VIEW = View(
    snapshot_levels,
    table=SnapshotLevels,
    title="Memory snapshot",
    entry="Memory",
    place=Tab("Snapshot"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint=HINT,
    within="moments",
    time=RowTime("time_ns"),
)
