"""Gaps: the times in which a device ran nothing, the longest first, and what is known of each.

What the host did during a gap is not what caused it: it tells where to look, and the calls before tell why.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...measures.recording.contents import has_device_events
from ...measures.time.host_activity import ACTIVITY_WORDS, HOST_ACTIVITIES, host_activity, host_threads
from ...measures.time.idle import MOST_GAPS, Windows
from ...measures.time.idle import gaps as gaps_of
from ...measures.time.idle_causes import CAUSE_WORDS, gap_parts, split_gaps_of_devices
from ...table import DURATION, ID, INSTANT, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import Part, RowTime, Slices, View


class Gaps(Table):
    """When nothing ran on a device, and why: the 5 000 longest gaps from the first step's start to the last one's end.

    A gap is the time in which no GPU event of any stream runs: between two of them, before the first, after the last.
    """

    key, weight = ("device", "start_ns"), "dur_ns"

    device = Column(ID, "Index of the device.")
    start_ns = Column(INSTANT, "When the last GPU event before it ended; the first step's start if none did.")
    dur_ns = Column(DURATION, "How long nothing ran on the device, up to the end of the last step.")
    cause = Column(
        TEXT,
        "Why, for most of it. host late: nothing was queued. launch latency: within 20 µs of the next launch. "
        "dependency: what was queued waited for another stream, or for a CPU callback of a graph. blocked copy: the "
        "host was in a copy or synchronizing call. graph launch: the call that launches the graph hadn't returned. "
        "not shown: launch or work not recorded, the device may have run other work. unexplained: what was queued "
        "waited for nothing recorded.",
        words=CAUSE_WORDS,
    )
    host = Column(
        TEXT,
        "What a launching thread did for most of it, by what was recorded of it; the main thread where no launch was "
        "recorded. Missing if neither is known.",
        words=ACTIVITY_WORDS,
    )
    step = Column(TEXT, "Number of the step that it begins in; missing between steps, and where none were marked.")
    cause_ns = Column(DURATION, "How much of it has that cause.")
    host_ns = Column(DURATION, "How long it did that in all of the gap: that may be longer than its cause lasts.")
    preceded_by = Column(TEXT, "The kernel, copy or fill that ran last before it; missing if none did.")
    ended_by = Column(TEXT, "The one that ended it; missing if none followed.")
    op = Column(TEXT, "Innermost operator that launched the one that ended it; missing if none is known.")
    queued_before_ns = Column(
        DURATION,
        "How long before the gap began the call that launched the next row did: the host wasn't late with it.",
    )
    host_late_ns = Column(
        DURATION, "How much of it nothing was queued, though the host could have queued work.", shown_as="detail"
    )
    late_ns = Column(
        DURATION,
        "How long after the gap began the call that launched the next row did. Missing if it began before the gap: "
        "then `queued_before_ns` has how long; and if that call isn't known.",
        shown_as="detail",
    )


def gaps(
    trace: Trace, *, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The longest gaps first; with from_ns or to_ns those that reach into that time."""
    windows = Windows.of(trace, per_step=False)
    predicates = [pl.lit(value=True)]
    predicates += [pl.col("device") == device] if device is not None else []
    predicates += [pl.col("end_ns") > from_ns] if from_ns is not None else []
    predicates += [pl.col("start_ns") < to_ns] if to_ns is not None else []
    rows = (
        gaps_of(trace, "device", windows).filter(predicates).with_columns(dur_ns=pl.col("end_ns") - pl.col("start_ns"))
    )
    rows = rows.sort("dur_ns", "device", "start_ns", descending=[True, False, False]).head(MOST_GAPS)
    parts = gap_parts(trace, "device", windows).filter(pl.col("gap").is_in(rows["gap"].implode()))
    rows = rows.join(_causes(parts), "gap", how="left", maintain_order="left")
    return Gaps.of(_describe(trace, rows).select(Gaps.schema().names()))


def _causes(parts: pl.DataFrame) -> pl.DataFrame:
    """The cause of most of each gap, how much that is, and how much the host is late for."""
    lengths = parts.group_by("gap", "cause").agg(cause_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    late = pl.col("cause_ns").filter(pl.col("cause") == "host late").sum()
    most = (
        pl.col("cause", "cause_ns").sort_by("cause_ns", pl.col("cause").to_physical(), descending=[True, False]).first()
    )
    return lengths.group_by("gap").agg(most, late.alias("host_late_ns"))


def _describe(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    device, launches = trace.device_events, trace.launches
    host_times = np.array(list(host_activity(trace, rows).values()))
    most = host_times.argmax(axis=0) if rows.height else np.empty(0, np.int64)
    after = rows["after"].replace(NONE, None)
    launch_start = launches["start_ns"].gather(device["launch"].gather(after).replace(NONE, None))
    since_gap = pl.lit(launch_start - rows["start_ns"])  # since the gap began
    ops = device["op"].gather(after).replace(NONE, None)
    is_known = pl.lit(bool(host_threads(trace).any()))
    return rows.with_columns(
        device=pl.col("device").cast(pl.Int64),
        step=_step_of(trace, rows["start_ns"].to_numpy()),
        cause=pl.col("cause").cast(pl.String),
        host=pl.when(is_known).then(pl.lit(pl.Series(HOST_ACTIVITIES, dtype=pl.String).gather(most))),
        host_ns=pl.when(is_known).then(pl.lit(pl.Series(host_times.max(axis=0, initial=0)))),
        late_ns=pl.when(since_gap >= 0).then(since_gap),
        queued_before_ns=pl.when(since_gap < 0).then(-since_gap),
        preceded_by=device["name"].gather(rows["before"].replace(NONE, None)).cast(pl.String),
        ended_by=device["name"].gather(after).cast(pl.String),
        op=trace.all_host_events["name"].gather(ops).cast(pl.String),
    )


def _step_of(trace: Trace, at: np.ndarray) -> pl.Series:
    start, end = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
    step = np.searchsorted(start, at, "right") - 1
    inside = (step >= 0) & (at < end[step]) & (trace.steps["name"][0] != "all")
    return trace.steps["name"].gather(pl.Series(np.where(inside, step, NONE)).replace(NONE, None))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The work that ended when the gap began, and what began next on the device."""
    rows, at = rows_where(trace.device_events, device=key["device"]), key["start_ns"]
    start, dur = (trace.device_events[name].to_numpy()[rows] for name in ("start_ns", "dur_ns"))
    if at is None:
        return {"device_events": rows[:0]}
    later_starts = start[start > at]
    around = (start + dur == at) | (start == (later_starts.min() if later_starts.size else NONE))
    return {"device_events": rows[around]}


VIEW = View(
    gaps,
    table=Gaps,
    title="Longest gaps",
    entry="Idle",
    place=Part("idle"),
    within="moments",
    needs=has_device_events,
    hint="The device was never idle here.",
    shares=split_gaps_of_devices,
    slices=Slices(events_of_row, "Work may end one gap and begin another.", are_highlighted=False, panel="gaps"),
    time=RowTime("start_ns", length="dur_ns"),
    reads_captures=True,
)
