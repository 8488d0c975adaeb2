"""Idle time: how long each stream and device had nothing to do, and why.

A gap is the time between the end of all earlier rows and the next one, cut at the edges of the step; so is the time
from the first step's start to the first row, and from the last row to the last step's end. Each gap is split instant by
instant into causes (measures/time/idle_causes.py). What the host did while it was late is shown next to it; it isn't
the cause by itself: a queue may run dry long after the call that held the host up. A stream without work is no fault
while its device is busy, so look at the device first.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...measures.recording.contents import has_device_events
from ...measures.time.exposure import exposure
from ...measures.time.host_activity import host_activity
from ...measures.time.idle import QUEUED_NS, Axis, Windows, axes, gaps
from ...measures.time.idle_causes import CAUSES, gap_parts, split_gaps_of_devices
from ...measures.time.idle_columns import columns_of_activities, columns_of_causes
from ...pictures import StackedBars
from ...table import COUNT, DURATION, FRACTION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import device_work
from ...view import Slices, Tab, View

_SHORT = f"{QUEUED_NS // 1000} µs"
_CAUSES = columns_of_causes(
    {
        "host late": (
            "Idle while nothing was queued, though the host could have: no row that starts later had been launched."
        ),
        "launch latency": (
            f"Idle within {_SHORT} of the launch of what came next, or queued for no longer than that in all."
        ),
        "dependency": (
            "Idle while something was queued for longer, and waited for another stream, or for a CPU callback of a "
            "graph: its own stream was made to wait for an event before the launch, its graph's recorded "
            f"dependencies say so, or a row of another stream ended less than {_SHORT} before it began."
        ),
        "blocked copy": "The same, and none of the above: a launching thread was in a copy or a synchronizing call.",
        "graph launch": (
            "The same, and none of the above: the call that launched the graph of the next row hadn't returned."
        ),
        "not shown": (
            "Idle by what was recorded, but the device may have run work that wasn't: before a first row that began "
            "late, around work whose launch isn't recorded, and while all launching threads wait for the device."
        ),
        "unexplained": "Idle while something was queued that waited for nothing recorded.",
    }
)
_ACTIVITIES = columns_of_activities(
    {
        "data loading": "Part of host late in which a launching thread waited for a batch of a DataLoader.",
        "synchronizing": "The same: it was in a call that waits for the device, and not the above.",
        "runtime call": "The same: it was in another runtime or driver call, and in none of the above.",
        "operator": "The same: it was in an operator, and in none of the above.",
        "python": "The same: it was in a Python function, and in none of the above.",
        "annotation": "The same: it was in an annotation, and in none of the above.",
        "nothing recorded": "The same: nothing was recorded, such as Python without with_stack=True.",
    }
)


class Idle(Table):
    """How long each device and stream was idle, and why: busy time and causes add up to the window."""

    key = ("scope", "device", "stream", "step")  # no weight: the idle time of streams adds up to nothing
    picture = StackedBars(
        whole="window_ns",
        parts=("busy_ns", *_ACTIVITIES.names, *_CAUSES.names[1:]),  # activities are parts of the first cause
        only=("scope", "device"),
    )

    scope = Column(TEXT, "device: no row of any of its streams runs; stream: none of this stream.")
    device = Column(ID, "Index of the device.")
    stream = Column(ID, "Number of the stream; missing for the device as a whole.")
    step = Column(TEXT, "Number of the step; `all` from the start of the first to the end of the last.")
    window_ns = Column(DURATION, "Length of the step, or of all of them and what lies between.")
    busy_ns = Column(DURATION, "Some kernel, copy or fill runs.")
    exposed_communication_ns = Column(
        DURATION, "Part of busy in which communication runs, but no computation; missing for streams."
    )
    idle_ns = Column(DURATION, "Nothing runs: window − busy; the sum of the seven causes.")
    idle_frac = Column(FRACTION, "Idle / window.")
    causes = _CAUSES
    gaps = Column(COUNT, "How many gaps.")
    longest_ns = Column(DURATION, "The longest gap.")
    activities = _ACTIVITIES


_GROUP = ("scope", "device", "stream", "window")


def idle(trace: Trace, *, per: Literal["recording", "step"] = "recording") -> pl.DataFrame:
    """Devices, each before its streams, in the order of steps."""
    windows = Windows.of(trace, per_step=per == "step")
    scopes: tuple[Axis, ...] = ("device", "stream")
    all_gaps = pl.concat([gaps(trace, scope, windows).with_columns(scope=pl.lit(scope)) for scope in scopes])
    parts = pl.concat([gap_parts(trace, scope, windows).with_columns(scope=pl.lit(scope)) for scope in scopes])
    axis_rows = pl.DataFrame(
        [(scope, device, stream) for scope in scopes for device, stream, _ in axes(trace, scope)],
        schema={"scope": pl.String, "device": pl.Int32, "stream": pl.Int64},
        orient="row",
    )
    spans = pl.DataFrame({"step": windows.names, "window_ns": windows.end - windows.start}).with_row_index("window")
    rows = axis_rows.join(spans.cast({"window": pl.Int32}), how="cross")
    late = _late_sums(trace, parts.filter(pl.col("cause") == "host late"))
    for sums in (_sums(all_gaps), _cause_sums(parts), late, _exposed_communication(trace, windows)):
        rows = rows.join(sums, _GROUP, how="left")
    rows = rows.sort("device", "scope", "stream", "window").with_columns(
        pl.col("device").cast(pl.Int64),
        pl.col("idle_ns", "gaps", *_CAUSES.names, *_ACTIVITIES.names).fill_null(0),
        stream=pl.when(pl.col("scope") == "stream").then(pl.col("stream")),
    )
    return Idle.of(
        rows.with_columns(
            busy_ns=pl.col("window_ns") - pl.col("idle_ns"),
            idle_frac=pl.when(pl.col("window_ns") > 0).then(pl.col("idle_ns") / pl.col("window_ns")),
        ).select(Idle.schema().names())
    )


def _sums(gaps: pl.DataFrame) -> pl.DataFrame:
    """What the gaps of each place and window add up to."""
    dur = pl.col("end_ns") - pl.col("start_ns")
    return gaps.group_by(_GROUP).agg(
        dur.sum().alias("idle_ns"), dur.max().alias("longest_ns"), pl.len().cast(pl.Int64).alias("gaps")
    )


def _cause_sums(parts: pl.DataFrame) -> pl.DataFrame:
    """How much of the idle time of each place and window has each cause."""
    dur = pl.col("end_ns") - pl.col("start_ns")
    sums = (dur.filter(pl.col("cause") == cause).sum().alias(n) for cause, n in zip(CAUSES, _CAUSES.names, strict=True))
    return parts.group_by(_GROUP).agg(*sums)


def _late_sums(trace: Trace, late: pl.DataFrame) -> pl.DataFrame:
    """What the host did while it was late."""
    activity_times = [
        pl.Series(name, part) for name, part in zip(_ACTIVITIES.names, host_activity(trace, late).values(), strict=True)
    ]
    return late.with_columns(activity_times).group_by(_GROUP).agg(pl.col(_ACTIVITIES.names).sum())


def _exposed_communication(trace: Trace, windows: Windows) -> pl.DataFrame:
    """The exposed communication of each device in each window."""
    length = "exposed_communication_ns"
    types = {**dict(zip(_GROUP, (pl.String, pl.Int32, pl.Int64, pl.Int32), strict=True)), length: pl.Int64}
    return pl.DataFrame(
        [
            ("device", device, stream, window, int(ns))
            for device, stream, own in axes(trace, "device")
            for window, ns in enumerate(exposure(trace, own, windows)["exposed communication"])
        ],
        schema=types,
        orient="row",
    )


VIEW = View(
    idle,
    table=Idle,
    title="Idle and overlap",
    entry="Idle",
    place=Tab("Why idle"),
    within="recording",
    needs=has_device_events,
    hint="No device work was recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    slices=Slices(device_work, "Work is in several rows: of its device, and of each step."),
    shares=split_gaps_of_devices,
)
