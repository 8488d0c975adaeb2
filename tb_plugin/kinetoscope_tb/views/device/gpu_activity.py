"""GPU activity over time: how busy each device was, from the first step to the last.

The same two measures as in `gpus`, but of the time that is in the recording: weighted by how much of each part is, they
add up to what `gpus` divides by all the time. A part that is half busy may have one long kernel or a thousand short
ones.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.intervals import Ints, capped_integrals, length_within
from ...measures.recording.contents import has_kernels
from ...measures.time.breakdown import intervals_of
from ...measures.time.idle_causes import hidden_work
from ...pictures import Lines
from ...table import DURATION, FRACTION, ID, INSTANT, Column, Table
from ...trace import Trace
from ...view import RowTime, View

PARTS = 240


class GpuActivity(Table):
    """How busy each device was in each of 240 equal parts of the time; the last row marks the end.

    A narrower range of time has 240 parts of its own.
    """

    key = ("device", "time_ns")
    picture = Lines(("utilization_frac", "sm_efficiency_frac"), series=("device",))

    device = Column(ID, "Index of the device.")
    time_ns = Column(INSTANT, "When the part begins.")
    dur_ns = Column(DURATION, "Length of the part; the lengths differ by at most 1 ns.")
    utilization_frac = Column(
        FRACTION,
        "Share of the part in which at least one kernel ran, without what isn't in the recording, as in `idle`; "
        "missing where that is all of it. Idle time counts where only the launches of work aren't recorded.",
    )
    sm_efficiency_frac = Column(
        FRACTION,
        "Mean over the same time of the multiprocessors' share with work: blocks per SM of the running kernels, at "
        "most 1.",
    )


def gpu_activity(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The parts in order of time, device by device."""
    begin = max(from_ns or 0, trace.steps["start_ns"][0])
    end = max(begin, min(trace.steps["end_ns"][-1] if to_ns is None else to_ns, trace.steps["end_ns"][-1]))
    edges = _edges(begin, end)
    events = trace.device_events.select("device", "kind", "start_ns", "dur_ns", "blocks_per_sm")
    groups = sorted(events.filter(pl.col("kind") == "kernel").group_by("device"), key=lambda group: group[0])
    rows = [_parts(trace, index, kernels, edges) for (index,), kernels in groups if device in (None, index)]
    return GpuActivity.of(pl.concat([pl.DataFrame(schema=GpuActivity.schema()), *rows]))


def _edges(begin: int, end: int) -> Ints:
    """Where the parts begin and end: no part is shorter than 1 ns."""
    parts = max(1, min(PARTS, end - begin))
    return np.unique(begin + np.arange(parts + 1) * (end - begin) // parts)


def _parts(trace: Trace, device: int, kernels: pl.DataFrame, edges: Ints) -> pl.DataFrame:
    length = np.diff(edges)
    whole = length - length_within(hidden_work(trace, device), edges[:-1], edges[1:])
    blocks, start = kernels["blocks_per_sm"].to_numpy(), kernels["start_ns"].to_numpy()
    sm_time = np.diff(capped_integrals(start, start + kernels["dur_ns"].to_numpy(), np.nan_to_num(blocks), 1.0, edges))
    busy = length_within(intervals_of(kernels), edges[:-1], edges[1:])
    return pl.DataFrame(
        {
            "device": pl.Series([device] * edges.size, dtype=pl.Int64),
            "time_ns": edges,
            "dur_ns": np.append(length, 0),
            "utilization_frac": [*_shares(busy, whole), None],
            "sm_efficiency_frac": [*_shares(sm_time if np.isfinite(blocks).any() else None, whole), None],
        },
        schema=GpuActivity.schema(),
    )


def _shares(part: Ints | NDArray[np.float64] | None, whole: Ints) -> list[float | None]:
    if part is None:
        return [None] * whole.size
    return [min(1.0, float(p / w)) if w else None for p, w in zip(part, whole, strict=True)]


VIEW = View(
    gpu_activity,
    table=GpuActivity,
    title="Over time",
    entry="Kernels",
    needs=has_kernels,
    hint="No kernels were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    within="moments",
    time=RowTime("time_ns", length="dur_ns"),
)
