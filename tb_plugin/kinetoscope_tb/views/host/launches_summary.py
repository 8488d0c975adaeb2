"""Launches in a sentence: how much of the time devices wait for launching, and how many calls outlast their work."""

from __future__ import annotations

import polars as pl

from ...measures.recording.contents import has_launches
from ...measures.time.idle import Windows
from ...measures.time.idle_causes import gap_parts
from ...names.text import percent, time
from ...pictures import Sentence
from ...table import PROSE, TEXT, Column, Table
from ...trace import Trace
from ...view import Lead, View
from .launches import launches

_LAUNCHING = ("launch latency", "graph launch")


class LaunchesSummary(Table):
    """How long devices were idle because of launching itself, and how many launching calls outlast their work."""

    key, weight = ("rule",), None
    picture = Sentence(colors={"launch": "runtime"}, action=None)

    rule = Column(TEXT, "`launch`.")
    title = Column(PROSE, "The idle time with the causes launch latency and graph launch, and its share of the time.")
    evidence = Column(PROSE, "What launching calls take on the host, and how many take longer than their work.")
    confidence = Column(TEXT, "high.")
    view = Column(TEXT, "Id of the view that lists all calls.")


def launches_summary(trace: Trace) -> pl.DataFrame:
    """One row; none if no recorded call launched recorded work."""
    launching = launches(trace).filter(pl.col("launching_calls") > 0)
    rows = [] if launching.is_empty() else [("launch", _title(trace), _evidence(launching), "high", "launches")]
    return LaunchesSummary.of(pl.DataFrame(rows, schema=LaunchesSummary.schema(), orient="row"))


def _title(trace: Trace) -> str:
    """The device that is idle longest because of launches."""
    windows = Windows.of(trace, per_step=False)
    whole = int((windows.end - windows.start).sum())
    parts = gap_parts(trace, "device", windows).filter(pl.col("cause").is_in(_LAUNCHING))
    sums = parts.group_by("device").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("idle_ns"))
    if sums.is_empty() or not whole:
        return (
            "No device waits for launching itself: work is queued early enough, or the host is late for other reasons."
        )
    device, idle_ns = sums.sort("idle_ns", "device", descending=[True, False]).row(0)
    return (
        f"Launch latency and graph launches keep device {device} idle for {percent(idle_ns / whole)} of the time: "
        f"{time(idle_ns)} of {time(whole)}."
    )


def _evidence(launching: pl.DataFrame) -> str:
    calls, short = int(launching["launching_calls"].sum()), int(launching["short_work_calls"].sum())
    return (
        f"{percent(short / calls)} of {calls} launching calls took longer than the work that they launched. "
        f"All calls of these functions took {time(int(launching['total_ns'].sum()))} on the host, "
        f"for {time(int(launching['device_total_ns'].sum()))} of work."
    )


VIEW = View(
    launches_summary,
    table=LaunchesSummary,
    title="Launches in a sentence",
    entry="Idle",
    place=Lead("launches"),
    within="recording",
    needs=has_launches,
    hint="No recorded call launched GPU work. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
)
