"""Activity strip: what each device did over time, and why it was idle, in columns of equal length.

Every column of a device adds up to its own length: kernels, copies that no kernel hides, communication that neither
hides, and idle time by cause. Busy and idle time and the causes are those of `idle`, so the columns of a device add up
to its row there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import scatter_add
from ...arrays.intervals import Intervals, Ints, cut, exclusive_lengths
from ...measures.recording.contents import has_work
from ...measures.time.breakdown import activities, intervals_of
from ...measures.time.host_activity import host_activities, host_activity
from ...measures.time.idle import Windows, gaps
from ...measures.time.idle_causes import CAUSES, gap_parts, split_gaps_of_devices
from ...measures.time.idle_columns import columns_of_activities, columns_of_causes
from ...table import DURATION, ID, INSTANT, TEXT, Column, Table
from ...trace import Trace
from ...view import Part, RowTime, View

PARTS = 560
_LEAST_GAP = 2
"""Columns: shorter gaps are not worth a label."""


class ActivityStrip(Table):
    """What each device and the host did in each of 560 equal parts of the time, from the first step to the last.

    A narrower range of time has 560 parts of its own. The values of a row add up to its length.
    """

    key = ("scope", "device", "time_ns")

    scope = Column(TEXT, "device, or host: the threads that launch device work; all threads where none does.")
    device = Column(ID, "Index of the device; missing for the host.")
    time_ns = Column(INSTANT, "When the part begins.")
    dur_ns = Column(DURATION, "Length of the part; the lengths differ by at most 1 ns.")
    kernel_ns = Column(DURATION, "A kernel that isn't communication runs on the device.")
    copy_ns = Column(DURATION, "A copy or fill runs, and no such kernel.")
    communication_ns = Column(
        DURATION, "A device: a communication kernel runs, and none of the above. The host: a collective is open."
    )
    activities = columns_of_activities(
        {
            "data loading": "The device is idle and nothing is queued: the host waits for a batch of a DataLoader.",
            "synchronizing": "The same: the host is in a call that waits for the device.",
            "runtime call": "The same: the host is in another runtime or driver call.",
            "operator": "The same: the host is in an operator.",
            "python": "The same: the host is in a Python function, and in no operator.",
            "annotation": "The same: the host is in an annotation, and in none of the above.",
            "nothing recorded": "The same: nothing was recorded of the host.",
        }
    )
    causes = columns_of_causes(
        {
            "launch latency": "The device is idle between a launch and its work, as in `idle`.",
            "dependency": "The device is idle, and what is queued waits for another stream, as in `idle`.",
            "blocked copy": "The device is idle, work is queued, and the host is in a copy, as in `idle`.",
            "graph launch": "The device is idle while a graph is being launched, as in `idle`.",
            "not shown": "Launch or work not recorded: the device may have run other work, as in `idle`.",
            "unexplained": "The device is idle, and nothing recorded says why, as in `idle`.",
        }
    )
    runtime_ns = Column(DURATION, "The host is in a runtime or driver call.")
    dataloader_ns = Column(DURATION, "The host waits for a batch of a DataLoader.", title="DataLoader")
    cpu_exec_ns = Column(
        DURATION, "The host is in an operator or annotation, and in none of the above.", title="CPU Exec"
    )
    other_ns = Column(DURATION, "The host is in Python, or nothing was recorded of it.")
    gap_start_ns = Column(
        INSTANT, "When the longest idle gap that reaches into the part begins; missing if it is shorter than two parts."
    )
    gap_ns = Column(DURATION, "How long that gap lasts in all.")


_HOST = {
    "runtime_ns": ("synchronizing", "runtime call"),
    "dataloader_ns": ("data loading",),
    "cpu_exec_ns": ("operator", "annotation"),
    "other_ns": ("other",),
}
_HOST_ACTIVITIES = ("data loading", "synchronizing", "runtime call", "operator", "annotation")
_HOST_CATEGORIES = {
    "communication_ns": "Communication",
    "runtime_ns": "Runtime",
    "dataloader_ns": "DataLoader",
    "cpu_exec_ns": "CPU Exec",
}


def activity_strip(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The devices, each in order of time, then the host."""
    first, last = trace.steps["start_ns"][0], trace.steps["end_ns"][-1]
    begin = min(max(from_ns or first, first), last)
    end = max(begin, min(last if to_ns is None else to_ns, last))
    parts = max(1, min(PARTS, end - begin))
    edges = begin + np.arange(parts + 1) * (end - begin) // parts
    windows = Windows.of(trace, per_step=False)
    work = _by_device(trace.device_events.select("device", "is_communication", "kind", "start_ns", "dur_ns"), device)
    idle, idle_gaps = gap_parts(trace, "device", windows), gaps(trace, "device", windows)
    gaps_of, numbers = _by_device(idle_gaps, device), sorted(work)
    idle_columns = _idle(trace, idle.filter(pl.col("device").is_in(numbers)), numbers, edges)
    frames = [pl.DataFrame(schema=ActivityStrip.schema())]
    for index, number in enumerate(numbers):
        columns = _busy(work[number], edges) | {name: pl.Series(sums[index]) for name, sums in idle_columns.items()}
        columns |= _longest_gaps(gaps_of.get(number, idle_gaps.clear()), edges)
        frames.append(_rows("device", number, edges, columns))
    frames.append(_rows("host", None, edges, _host(trace, edges)))
    return ActivityStrip.of(pl.concat(frames, how="diagonal"))


def _by_device(frame: pl.DataFrame, device: int | None) -> dict[int, pl.DataFrame]:
    """The rows of each device, or of that one."""
    if device is not None:
        frame = frame.filter(pl.col("device") == device)
    return {int(rows["device"][0]): rows for rows in frame.partition_by("device", maintain_order=True)}


def _rows(scope: str, device: int | None, edges: Ints, columns: dict[str, pl.Series]) -> pl.DataFrame:
    schema = {name: dtype for name, dtype in ActivityStrip.schema().items() if name in columns}
    frame = pl.DataFrame(columns, schema=schema)
    times = pl.Series("time_ns", edges[:-1]), pl.Series("dur_ns", np.diff(edges))
    scope_columns = pl.lit(scope).alias("scope"), pl.lit(device, pl.Int64).alias("device")
    return frame.with_columns(*scope_columns, *times)


def _busy(rows: pl.DataFrame, edges: Ints) -> dict[str, pl.Series]:
    """How long a device computes, copies and communicates in each part; each instant counts once, in this order."""
    communicates, is_kernel = rows["is_communication"].to_numpy(), (rows["kind"] == "kernel").to_numpy()
    masks = {
        "kernel_ns": is_kernel & ~communicates,
        "copy_ns": ~is_kernel & ~communicates,
        "communication_ns": communicates,
    }
    lengths = exclusive_lengths([intervals_of(rows, mask) for mask in masks.values()], edges[:-1], edges[1:])
    return {name: pl.Series(length) for name, length in zip(masks, lengths, strict=False)}


def _idle(trace: Trace, parts: pl.DataFrame, devices: Sequence[int], edges: Ints) -> dict[str, Ints]:
    """How long each device is idle for each cause in each part, devices × parts; `parts` are their gaps by cause."""
    piece, start, end, column = cut(parts["start_ns"].to_numpy(), parts["end_ns"].to_numpy(), (edges[:-1], edges[1:]))
    inside = column >= 0
    piece, start, end, column = piece[inside], start[inside], end[inside], column[inside]
    shape = len(devices), edges.size - 1
    row = np.searchsorted(np.asarray(devices), parts["device"].to_numpy())[piece]
    cell = (row * shape[1] + column).astype(np.int32)
    cause = parts["cause"].to_physical().to_numpy()[piece]
    sums: dict[str, Ints] = {}
    for number, name in enumerate(ActivityStrip.causes.names, 1):
        of_cause = cause == number
        length = scatter_add(cell[of_cause], (end - start)[of_cause], shape[0] * shape[1])
        sums[name] = length.reshape(shape)
    late = cause == CAUSES.index("host late")
    activity_ns = host_activity(trace, pl.DataFrame({"start_ns": start[late], "end_ns": end[late]}))
    for name, lengths in zip(ActivityStrip.activities.names, activity_ns.values(), strict=True):
        sums[name] = scatter_add(cell[late], lengths, shape[0] * shape[1]).reshape(shape)
    return sums


def _longest_gaps(gaps: pl.DataFrame, edges: Ints) -> dict[str, pl.Series]:
    """The longest gap of the device that reaches into each part."""
    dur = gaps["end_ns"] - gaps["start_ns"]
    order = np.argsort(dur.to_numpy(), kind="stable")
    order = order[dur.to_numpy()[order] >= _LEAST_GAP * (edges[-1] - edges[0]) / (edges.size - 1)]
    start, end = gaps["start_ns"].to_numpy()[order], gaps["end_ns"].to_numpy()[order]
    piece, _, _, column = cut(start, end, (edges[:-1], edges[1:]))
    longest = np.full(edges.size - 1, -1)
    longest[column[column >= 0]] = piece[column >= 0]  # the last one counts: the longest
    rows = pl.Series(longest).replace(-1, None)
    return {"gap_start_ns": pl.Series(start).gather(rows), "gap_ns": pl.Series(end - start).gather(rows)}


def _host(trace: Trace, edges: Ints) -> dict[str, pl.Series]:
    """What the threads that launch device work did in each part, or all threads where none does."""
    if trace.device_events.is_empty():
        active = activities(trace)
        names, groups = list(_HOST_CATEGORIES), [active[name] for name in _HOST_CATEGORIES.values()]
        return _exclusive([*names, "other_ns"], groups, edges)
    of_threads = host_activities(trace)
    lengths = _exclusive([*_HOST_ACTIVITIES, "other"], [of_threads[name] for name in _HOST_ACTIVITIES], edges)
    return {column: sum((lengths[name] for name in names), pl.Series(_zeros(edges))) for column, names in _HOST.items()}


def _exclusive(names: list[str], groups: list[Intervals], edges: Ints) -> dict[str, pl.Series]:
    lengths = exclusive_lengths(groups, edges[:-1], edges[1:])
    return {name: pl.Series(length) for name, length in zip(names, lengths, strict=True)}


def _zeros(edges: Ints) -> NDArray[np.int64]:
    return np.zeros(edges.size - 1, np.int64)


VIEW = View(
    activity_strip,
    table=ActivityStrip,
    title="Activity over time",
    entry="Overview",
    within="moments",
    needs=has_work,
    hint="The trace has no activity. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    place=Part("overview"),
    shares=split_gaps_of_devices,
    time=RowTime("time_ns", length="dur_ns"),
)
