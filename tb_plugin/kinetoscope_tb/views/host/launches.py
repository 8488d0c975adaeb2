"""Launches: what the runtime's and the driver's calls cost the host, and how soon the device began what they asked for.

It is about calls, not about operators: an operator may launch many kernels, and one call may launch a whole graph.
A long call holds up the host; a long delay behind an empty queue holds up the device. A delay behind a full queue is no
loss: then the host is ahead.
"""

from __future__ import annotations

import polars as pl

from ...measures.calls.launch_outcomes import LATE_START_NS, SLOW_CALL_NS, launch_outcomes
from ...pictures import Bars
from ...table import COUNT, DURATION, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import Slices, View

UNATTRIBUTED = "[unattributed]"


class Launches(Table):
    """One row is one function of the runtime or driver; `[unattributed]` is device work whose call isn't recorded."""

    key, weight = ("call",), "total_ns"
    picture = Bars(("total_ns", "device_total_ns"))

    call = Column(TEXT, "Name of the function.")
    calls = Column(COUNT, "How often it was called.")
    total_ns = Column(DURATION, "Host time in its calls; a call inside a call counts in both.")
    mean_ns = Column(DURATION, "Total / calls, rounded to the nanosecond.")
    max_ns = Column(DURATION, "Longest call.")
    launching_calls = Column(COUNT, "Calls that launched device work which was recorded.")
    device_rows = Column(COUNT, "Kernels, copies and fills that they launched.")
    device_total_ns = Column(DURATION, "Sum of the durations of those.")
    short_work_calls = Column(COUNT, "Launching calls that took longer than the work that they launched.")
    slow_calls = Column(COUNT, f"Launching calls longer than {SLOW_CALL_NS // 1000} µs.")
    mean_delay_ns = Column(
        DURATION,
        "Mean launch delay: the time from the end of a launching call to the start of its work, waiting in the queue "
        "included; 0 if the work starts before the call returns.",
    )
    empty_queue_calls = Column(
        COUNT, "Launching calls that ended when the stream had no other work left, the call's own work aside."
    )
    mean_empty_queue_delay_ns = Column(DURATION, "Mean launch delay of those: what launching itself costs the device.")
    late_calls = Column(COUNT, f"Calls among those whose work began more than {LATE_START_NS // 1000} µs later.")


def launches(trace: Trace) -> pl.DataFrame:
    """Runtime and driver calls by their total time, the longest first."""
    launching, delay = pl.col("device_rows") > 0, pl.col("delay_ns")
    empty = launching & pl.col("found_empty")
    dur = pl.col("dur_ns")
    table = (
        trace.launches.select(pl.col("name").cast(pl.String).alias("call"), "dur_ns")
        .hstack(launch_outcomes(trace))
        .group_by("call")
        .agg(
            pl.len().cast(pl.Int64).alias("calls"),
            dur.sum().alias("total_ns"),
            _mean(dur).alias("mean_ns"),
            dur.max().alias("max_ns"),
            _count(launching).alias("launching_calls"),
            pl.col("device_rows").sum(),
            pl.col("device_ns").sum().alias("device_total_ns"),
            _count(launching & (pl.col("device_ns") < dur)).alias("short_work_calls"),
            _count(launching & (dur > SLOW_CALL_NS)).alias("slow_calls"),
            _mean(delay).alias("mean_delay_ns"),
            _count(empty).alias("empty_queue_calls"),
            _mean(delay.filter(empty)).alias("mean_empty_queue_delay_ns"),
            _count(empty & (delay > LATE_START_NS)).alias("late_calls"),
        )
    )
    rest = trace.device_events.filter(pl.col("launch") < 0)["dur_ns"]
    if rest.len():
        lost = {"call": UNATTRIBUTED, "device_rows": rest.len(), "device_total_ns": rest.sum()}
        table = pl.concat([table, pl.DataFrame([lost])], how="diagonal")
    return Launches.of(table.sort("total_ns", "call", descending=[True, False], nulls_last=True))


def _count(where: pl.Expr) -> pl.Expr:
    return where.sum().cast(pl.Int64)


def _mean(values: pl.Expr) -> pl.Expr:
    return values.mean().round().cast(pl.Int64)


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls with this name; without one, the device work that no recorded call launched."""
    if key["call"] == UNATTRIBUTED:
        return {"device_events": rows_where(trace.device_events, launch=None)}
    return {"launches": rows_where(trace.launches, name=key["call"])}


VIEW = View(
    launches,
    table=Launches,
    title="Launches",
    group="Device",
    needs="launches",
    hint="No runtime calls were recorded. Pass ProfilerActivity.CUDA among the activities, on a machine with a GPU.",
    slices=Slices(events_of_row, category="Runtime"),
)
