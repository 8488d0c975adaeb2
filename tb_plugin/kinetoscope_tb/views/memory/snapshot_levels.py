"""Levels of a memory snapshot over time: allocated, active and reserved memory of each device."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...measures.memory.snapshots import HINT, DeviceSnapshot, OfSnapshot, device_snapshots
from ...measures.recording.contents import has_snapshot
from ...pictures import Lines
from ...table import BYTES, ID, INSTANT, TEXT, Column
from ...trace import Trace
from ...view import RowTime, Tab, View

DRAWN = 600  # parts of the history of which the first, the last, the highest and the lowest levels are drawn


class SnapshotLevels(OfSnapshot):
    """How much memory a snapshot's history had allocated, active and reserved after each of its events.

    Sizes are as requested: the allocator rounds each up to 512 bytes or more. Of a long history, 600 parts each have
    the first and the last level, the highest and the lowest.
    """

    key = ("device", "event")
    picture = Lines(("allocated_bytes", "active_bytes", "reserved_bytes"), series=("device",), marks="what")

    time_ns = Column(INSTANT, "Time of the event; its number if the snapshot has no times (torch before 2.1).")
    allocated_bytes = Column(BYTES, "Memory in tensors from then on.")
    active_bytes = Column(BYTES, "Allocated, and freed memory that another stream still uses.")
    reserved_bytes = Column(BYTES, "Device memory that the allocator had reserved.")
    what = Column(TEXT, "`peak`: the most was allocated; `out of memory`: the device had no room for a request.")
    event = Column(ID, "Number of the event in the history of the device; -1 is before the first.")


def snapshot_levels(trace: Trace) -> pl.DataFrame:
    """The levels of each device in order of time."""
    empty = pl.DataFrame(schema=SnapshotLevels.schema())
    return SnapshotLevels.of(pl.concat([empty, *map(_rows, device_snapshots(trace))]))


def _rows(snapshot: DeviceSnapshot) -> pl.DataFrame:
    is_failure = (snapshot.events["action"] == "oom").to_numpy()
    events = np.union1d(_events_to_draw(snapshot), np.flatnonzero(is_failure))
    events = np.union1d(events, [-1, snapshot.peak]).astype(np.int64)
    levels = np.array([snapshot.levels(event) for event in events.tolist()], np.int64).reshape(-1, 3)
    times = np.append(snapshot.times, 0)
    first = times[:1] if snapshot.times.size else np.zeros(1, np.int64)
    what = [
        "out of memory" if event >= 0 and is_failure[event] else "peak" if event == snapshot.peak else None
        for event in events.tolist()
    ]
    return pl.DataFrame(
        {
            "device": pl.Series([snapshot.device] * events.size, dtype=pl.Int64),
            "time_ns": np.where(events < 0, first, times[events]),
            **dict(zip(("allocated_bytes", "active_bytes", "reserved_bytes"), levels.T, strict=True)),
            "what": pl.Series(what, dtype=pl.String),
            "event": events,
        },
        schema=SnapshotLevels.schema(),
    )


def _events_to_draw(snapshot: DeviceSnapshot) -> NDArray[np.int64]:
    count = snapshot.allocated_bytes.size
    if count <= 4 * DRAWN:
        return np.arange(count)
    levels = pl.DataFrame(
        {
            "part": np.arange(count) * DRAWN // count,
            "event": np.arange(count),
            "allocated": snapshot.allocated_bytes,
            "reserved": snapshot.reserved_bytes,
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
    hint=HINT,
    within="moments",
    time=RowTime("time_ns"),
)
