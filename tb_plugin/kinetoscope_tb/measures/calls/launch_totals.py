"""Runtime and driver calls by function: what they take on the host, and how long until what they launch begins."""

from __future__ import annotations

import polars as pl

from ...trace.model import Trace
from ...trace.results import once_per_recording
from .launch_outcomes import LATE_START_NS, SLOW_CALL_NS, launch_outcomes


@once_per_recording
def launch_totals(trace: Trace) -> pl.DataFrame:
    """Return one row per function, those with the longest total first.

    Columns: call (the function), calls, total_ns, mean_ns, max_ns (on the host); launching_calls (those that launched
    recorded work), device_events, device_total_ns (that work), short_work_calls (longer than their work), slow_calls,
    mean_delay_ns, empty_queue_calls (after which the stream had no other work), mean_empty_queue_delay_ns, late_calls.
    """
    is_launch, delay = pl.col("device_rows") > 0, pl.col("delay_ns")
    empty = is_launch & pl.col("hit_empty_queue")
    dur = pl.col("dur_ns")
    return (
        trace.launches.select(pl.col("name").cast(pl.String).alias("call"), "dur_ns")
        .hstack(launch_outcomes(trace))
        .group_by("call")
        .agg(
            pl.len().cast(pl.Int64).alias("calls"),
            dur.sum().alias("total_ns"),
            _mean(dur).alias("mean_ns"),
            dur.max().alias("max_ns"),
            _count(is_launch).alias("launching_calls"),
            pl.col("device_rows").sum().alias("device_events"),
            pl.col("device_ns").sum().alias("device_total_ns"),
            _count(is_launch & (pl.col("device_ns") < dur)).alias("short_work_calls"),
            _count(is_launch & (dur > SLOW_CALL_NS)).alias("slow_calls"),
            _mean(delay).alias("mean_delay_ns"),
            _count(empty).alias("empty_queue_calls"),
            _mean(delay.filter(empty)).alias("mean_empty_queue_delay_ns"),
            _count(empty & (delay > LATE_START_NS)).alias("late_calls"),
        )
        .sort("total_ns", "call", descending=[True, False])
    )


def _count(where: pl.Expr) -> pl.Expr:
    return where.sum().cast(pl.Int64)


def _mean(values: pl.Expr) -> pl.Expr:
    return values.mean().round().cast(pl.Int64)
