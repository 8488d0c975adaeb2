"""Launches in a sentence: how much of the time devices wait for launching, and what launching takes on the host."""

from __future__ import annotations

import polars as pl

from ...measures.calls.launch_totals import launch_totals
from ...measures.recording.contents import has_graphs, has_launches
from ...measures.recording.lost_launches import are_launches_known, captured_launches
from ...measures.recording.vendor import device_noun
from ...measures.time.idle import Windows
from ...measures.time.idle_causes import NOT_SHOWN, gap_parts, matters
from ...names.text import as_clause, code, percent, time, times
from ...table import Summary
from ...trace import Trace
from ...view import Lead, View

_CAUSES = ("launch latency", "graph launch")
"""The causes of idle time that launching itself is."""


class LaunchesSummary(
    Summary,
    colors={"launch": "runtime"},
    rule="`launch`.",
    title="The idle time with the causes launch latency and graph launch, and its share of the time.",
    evidence=(
        "What launching calls take on the host, which take most, how many of them graphs captured, and how many "
        "outlast their work."
    ),
    confidence="low: the device may have been busy with what isn't in the recording; else high.",
    view="Id of the view that lists all calls.",
):
    """How long launching itself keeps a device idle, and which calls take the host longest."""


def launches_summary(trace: Trace) -> pl.DataFrame:
    """One row; none if no recorded call launched recorded work, or launches are missing."""
    totals = launch_totals(trace).filter(pl.col("launching_calls") > 0)
    is_known = are_launches_known(trace) and not totals.is_empty()
    if not is_known:
        return LaunchesSummary.of_row(None)
    title, confidence = _title(trace)
    return LaunchesSummary.of_row(("launch", title, _evidence(trace, totals), confidence, "launches"))


def _title(trace: Trace) -> tuple[str, str]:
    """The device that is idle longest because of launches, and the confidence."""
    windows = Windows.of(trace, per_step=False)
    length, cause = pl.col("end_ns") - pl.col("start_ns"), pl.col("cause")
    sums = (
        gap_parts(trace, "device", windows)
        .group_by("device")
        .agg(
            length.filter(cause.is_in(_CAUSES)).sum().alias("idle_ns"),
            length.filter(cause == NOT_SHOWN).sum().alias("hidden_ns"),
        )
        .sort("idle_ns", "device", descending=[True, False])
    )
    is_hidden = any(matters(hidden_ns, windows.length_ns) for hidden_ns in sums["hidden_ns"])
    confidence, least = ("low", "at least ") if is_hidden else ("high", "")
    causes = "Launch latency and graph launches keep" if has_graphs(trace) else "Launch latency keeps"
    if not sums["idle_ns"].sum():
        none = "no device idle in what was recorded" if is_hidden else "no device idle"
        return f"{causes} {none}.", confidence
    device, idle_ns = sums.select("device", "idle_ns").row(0)
    noun, whole_ns = as_clause(device_noun(trace)), windows.length_ns
    share = f"{least}{percent(idle_ns / whole_ns)} of the time: {time(idle_ns)} of {time(whole_ns)}"
    return f"{causes} {noun} {device} idle for {share}.", confidence


def _evidence(trace: Trace, totals: pl.DataFrame) -> str:
    calls, short = int(totals["launching_calls"].sum()), int(totals["short_work_calls"].sum())
    name, of_name, total_ns = totals.select("call", "calls", "total_ns").row(0)
    outlast = (
        f"{percent(short / calls)} of {times(calls, 'launching call')} took longer than their work."
        if short
        else "No launching call took longer than its work."
    )
    count = int(captured_launches(trace).sum())
    of_graphs = f" Graphs captured {times(count, 'launching call')}: nothing ran then." if count else ""
    work = f"Launched work in all: {time(int(totals['device_total_ns'].sum()))}."
    return (
        f"Of the calls that launch work, {code(name)} takes the host longest: {time(total_ns)} in "
        f"{times(of_name, 'call')}.{of_graphs} {outlast} {work}"
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
