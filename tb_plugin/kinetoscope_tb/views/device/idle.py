"""Idle time: how long each stream and device had nothing to do, and why.

A gap is the time between the end of all earlier rows and the next one, cut at the edges of the step; so is the time
from the first step's start to the first row, and from the last row to the last step's end. The
call that launched the row which ended it tells its cause (measures/time/idle.py says how). What the host did in gaps
that it was late for is shown next to it; it isn't their cause by itself: a queue may run dry long after the call that
held the host up. A stream without work is no fault while its device is busy, so look at the device first.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from ...measures.time.idle import CAUSES, QUEUED_NS, Axis, Windows, axes, gaps, host_activity
from ...table import COUNT, DURATION, FRACTION, ID, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import device_work
from ...view import Slices, View

_SHORT = f"{QUEUED_NS // 1000} µs"


class Idle(Table):
    """One row is one device, or one stream of it, in all steps or in one; busy time and causes add up to the window."""

    key = ("scope", "device", "stream", "step")  # no weight: the idle time of streams adds up to nothing

    scope = Column(TEXT, "device: no row of any of its streams runs; stream: none of this stream.")
    device = Column(ID, "Index of the device.")
    stream = Column(ID, "Number of the stream; missing for the device as a whole.")
    step = Column(TEXT, "Number of the step; `all` from the start of the first to the end of the last.")
    window_ns = Column(DURATION, "Length of the step, or of all of them and what lies between.")
    busy_ns = Column(DURATION, "Some kernel, copy or fill runs.")
    idle_ns = Column(DURATION, "Nothing runs: window − busy; the sum of the four causes.")
    idle_frac = Column(FRACTION, "Idle / window.")
    host_late_ns = Column(
        DURATION, "Idle since nothing was queued: the next row was launched after the gap began, or nothing more was."
    )
    launch_latency_ns = Column(DURATION, f"The next row was queued in time, and began within {_SHORT}.")
    dependency_ns = Column(
        DURATION,
        "The next row was queued in time, and waited longer, for another stream: its own was told to wait for an event "
        f"before the launch, or a row of another stream ended less than {_SHORT} before it began.",
    )
    other_ns = Column(
        DURATION, "The next row was queued in time and waited for nothing that was recorded, or its launch isn't known."
    )
    gaps = Column(COUNT, "How many gaps.")
    longest_ns = Column(DURATION, "The longest gap.")
    late_data_loading_ns = Column(
        DURATION, "Part of host late in which a launching thread waited for a batch of a DataLoader."
    )
    late_synchronising_ns = Column(DURATION, "The same: it was in a call that waits for the device, and not the above.")
    late_runtime_ns = Column(DURATION, "The same: it was in another runtime or driver call, and in none of the above.")
    late_operator_ns = Column(DURATION, "The same: it was in an operator, and in none of the above.")
    late_annotation_ns = Column(DURATION, "The same: it was in an annotation, and in none of the above.")
    late_python_ns = Column(DURATION, "The same: it was in a Python function, and in none of the above.")
    late_unrecorded_ns = Column(DURATION, "The same: nothing was recorded, such as Python without with_stack=True.")


_LATE = [name for name in Idle.schema() if name.startswith("late_")]
_GROUP = ("scope", "device", "stream", "window")
_PARTS = [f"{cause.replace(' ', '_')}_ns" for cause in CAUSES]


def idle(trace: Trace, *, per: Literal["recording", "step"] = "recording") -> pl.DataFrame:
    """Devices, each before its streams, in the order of steps."""
    windows = Windows.of(trace, each=per == "step")
    scopes: tuple[Axis, ...] = ("device", "stream")
    found = pl.concat([gaps(trace, scope, windows).with_columns(scope=pl.lit(scope)) for scope in scopes])
    places = pl.DataFrame(
        [(scope, device, stream) for scope in scopes for device, stream, _ in axes(trace, scope)],
        schema={"scope": pl.String, "device": pl.Int32, "stream": pl.Int64},
        orient="row",
    )
    spans = pl.DataFrame({"step": windows.names, "window_ns": windows.end - windows.start}).with_row_index("window")
    rows = places.join(spans.cast({"window": pl.Int32}), how="cross")
    for sums in (_sums(found), _late_sums(trace, found.filter(pl.col("cause") == "host late"))):
        rows = rows.join(sums, _GROUP, how="left")
    rows = rows.sort("device", "scope", "stream", "window").with_columns(
        pl.col("device").cast(pl.Int64),
        pl.col("idle_ns", "gaps", *_PARTS, *_LATE).fill_null(0),
        stream=pl.when(pl.col("scope") == "stream").then(pl.col("stream")),
    )
    return Idle.of(
        rows.with_columns(
            busy_ns=pl.col("window_ns") - pl.col("idle_ns"),
            idle_frac=pl.when(pl.col("window_ns") > 0).then(pl.col("idle_ns") / pl.col("window_ns")),
        ).select(Idle.schema().names())
    )


def _sums(found: pl.DataFrame) -> pl.DataFrame:
    """What the gaps of each place and window add up to, and by cause."""
    dur = pl.col("end_ns") - pl.col("start_ns")
    return found.group_by(_GROUP).agg(
        *(dur.filter(pl.col("cause") == cause).sum().alias(n) for cause, n in zip(CAUSES, _PARTS, strict=True)),
        dur.sum().alias("idle_ns"),
        dur.max().alias("longest_ns"),
        pl.len().cast(pl.Int64).alias("gaps"),
    )


def _late_sums(trace: Trace, late: pl.DataFrame) -> pl.DataFrame:
    """What the host did in the gaps that it was late in."""
    spent = [pl.Series(name, part) for name, part in zip(_LATE, host_activity(trace, late).values(), strict=True)]
    return late.with_columns(spent).group_by(_GROUP).agg(pl.col(_LATE).sum())


VIEW = View(
    idle,
    table=Idle,
    title="Idle and overlap",
    group="Device",
    within="recording",
    needs="device_events",
    hint="No device work was recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    slices=Slices(device_work),
)
