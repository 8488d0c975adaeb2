"""Which lines of the program hold more and more memory, from period to period of a snapshot's history."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...measures.memory.snapshots import BEFORE, DeviceSnapshot, OfSnapshot, device_snapshots, with_places
from ...measures.recording.contents import has_snapshot
from ...table import BYTES, COUNT, TEXT, Column
from ...trace import Trace
from ...view import Part, View

PERIODS = 10  # parts of a history without steps
_LEAST_STEPS = 3
_STEPS = ("ProfilerStep#", "Optimizer.step#")


class SnapshotGrowth(OfSnapshot):
    """Which lines hold more memory at the end of the history than at its beginning, and in how many periods it grew.

    Periods are the steps that the program annotated (ProfilerStep, Optimizer.step), or ten parts with equally many
    events. Memory that grows in nearly every period is a leak, if the steps do the same work.
    """

    key, weight = ("device", "place"), "growth_bytes"

    place = Column(TEXT, "The line of the program that allocated it.")
    first_bytes = Column(BYTES, "Alive at the end of the first period.")
    last_bytes = Column(BYTES, "Alive at the end of the last period.")
    growth_bytes = Column(BYTES, "Last minus first.")
    mean_growth_bytes = Column(BYTES, "Growth of a period, on average.")
    grown_periods = Column(COUNT, "Periods at whose end more was alive than at the end of the one before.")
    periods = Column(COUNT, "Number of periods after the first.")


def snapshot_growth(trace: Trace) -> pl.DataFrame:
    """The most growth first, device by device."""
    empty = pl.DataFrame(schema=SnapshotGrowth.schema())
    return SnapshotGrowth.of(pl.concat([empty, *(_growth(trace, snapshot) for snapshot in device_snapshots(trace))]))


def _period_ends(trace: Trace, snapshot: DeviceSnapshot) -> NDArray[np.int64]:
    """The events at which periods end."""
    count = snapshot.events.height
    marks = trace.snapshot_annotations.filter(pl.col("is_start") & (pl.col("moment") >= 0))
    for name in _STEPS:
        moments = np.unique(marks.filter(pl.col("name").str.starts_with(name))["moment"].to_numpy())
        ends = np.unique(np.searchsorted(snapshot.times, moments) - 1)
        if (ends >= 0).sum() > _LEAST_STEPS:
            return ends[ends >= 0]
    return np.unique(np.arange(1, PERIODS + 1) * count // PERIODS - 1)


def _growth(trace: Trace, snapshot: DeviceSnapshot) -> pl.DataFrame:
    ends = _period_ends(trace, snapshot)
    lives = with_places(trace, snapshot.lives.filter(pl.col("begin") >= 0)).filter(pl.col("place") != BEFORE)
    names = lives["place"].unique(maintain_order=True)
    row = lives["place"].cast(pl.Enum(names)).to_physical().to_numpy().astype(np.int64)
    alive = np.zeros((len(names), ends.size + 1), np.int64)
    sizes = lives["size"].to_numpy()
    np.add.at(alive, (row, np.searchsorted(ends, lives["begin"].to_numpy())), sizes)
    np.add.at(alive, (row, np.searchsorted(ends, lives["end"].to_numpy())), -sizes)
    levels = np.cumsum(alive, axis=1)[:, : ends.size]
    first, last = (levels[:, 0], levels[:, -1]) if ends.size else (np.zeros(len(names), np.int64),) * 2
    periods = max(0, ends.size - 1)
    rows = pl.DataFrame(
        {
            "device": pl.Series([snapshot.device] * len(names), dtype=pl.Int64),
            "place": names,
            "first_bytes": first,
            "last_bytes": last,
            "growth_bytes": last - first,
            "mean_growth_bytes": (last - first) // max(1, periods),
            "grown_periods": (np.diff(levels, axis=1) > 0).sum(axis=1).astype(np.int64),
            "periods": pl.Series([periods] * len(names), dtype=pl.Int64),
        },
        schema=SnapshotGrowth.schema(),
    )
    return rows.filter(pl.col("growth_bytes") > 0).sort("growth_bytes", "place", descending=[True, False])


VIEW = View(
    snapshot_growth,
    table=SnapshotGrowth,
    title="Growth",
    entry="Memory",
    place=Part("snapshot_levels"),
    needs=has_snapshot,
    is_of_snapshot=True,
    hint="No line of a memory snapshot holds more at the end of the history than at its beginning.",
    within="recording",
)
