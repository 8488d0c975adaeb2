"""Kernels and the duration of their calls.

A kernel's total is the sum of its calls. Calls on different streams may overlap, so totals can add up to more than the
step. Copies and fills aren't kernels.
"""

from __future__ import annotations

import polars as pl

from ...names.tensor_cores import TABLE_VERSION
from ...table import BOOL, COUNT, DURATION, FRACTION, NUMBER, TEXT, Column, Table
from ...trace.model import Trace


class KernelCosts(Table):
    """Costs of kernel calls."""

    calls = Column(COUNT, "How often it ran.")
    total_ns = Column(DURATION, "Sum of the durations of its calls.")
    mean_ns = Column(DURATION, "Total / calls, rounded to the nanosecond.")
    max_ns = Column(DURATION, "Longest call.")
    min_ns = Column(DURATION, "Shortest call.")
    uses_tensor_cores = Column(
        TEXT,
        "Whether it uses tensor (or matrix) cores, by its name: yes, no or unknown "
        f"(table of names, version {TABLE_VERSION}).",
    )
    mean_blocks_per_sm = Column(
        NUMBER, "Blocks per multiprocessor, mean over its calls weighted by duration; missing if not recorded."
    )
    mean_occupancy_frac = Column(
        FRACTION,
        "Share of a multiprocessor's threads that a launch can keep there, estimated by the profiler from the launch's "
        "block size, registers, shared memory and number of blocks, not measured; mean over its calls weighted by "
        "duration, missing if not recorded, or where the profiler writes 0 as a block has over 48 KiB of shared "
        "memory.",
    )
    is_communication = Column(BOOL, "Whether it moves data between ranks; then it never counts as computation.")
    communication_rule = Column(
        TEXT,
        "Evidence that it is communication: `pattern` with one of your own patterns; the library whose kernels have "
        "such names; `collective metadata` in its own arguments; or `launched by a collective`, whose range on the "
        "host launched it directly. Missing for other kernels.",
    )


_SUMMED = (
    "dur_ns",
    "tensor_cores",
    "blocks_per_sm",
    "occupancy_frac",
    "is_communication",
    "communication_rule",
)


def kernel_table(trace: Trace, by: list[pl.Expr], texts: tuple[str, ...] = ()) -> pl.DataFrame:
    """Sum the kernels' calls over groups, the longest total first.

    Columns: `by`, those of KernelCosts, then `texts` from the first call of the group.
    """
    columns = {"kind", *_SUMMED, *texts, *(name for expression in by for name in expression.meta.root_names())}
    rows = trace.device_events.select(sorted(columns)).filter(pl.col("kind") == "kernel")
    names = [expression.meta.output_name() for expression in by]
    dur = pl.col("dur_ns")
    costs = [
        pl.len().cast(pl.Int64).alias("calls"),
        dur.sum().alias("total_ns"),
        (dur.sum() / pl.len()).round().cast(pl.Int64).alias("mean_ns"),
        dur.max().alias("max_ns"),
        dur.min().alias("min_ns"),
        pl.col("tensor_cores").first().cast(pl.String).alias("uses_tensor_cores"),
        _weighted_mean("blocks_per_sm").alias("mean_blocks_per_sm"),
        _weighted_mean("occupancy_frac").alias("mean_occupancy_frac"),
        pl.col("is_communication").any(),
        pl.col("communication_rule").cast(pl.String).drop_nulls().first(),
        *(pl.col(name).cast(pl.String).drop_nulls().first() for name in texts),
    ]
    sums = rows.with_columns(by).group_by(names).agg(costs)
    keys = [pl.col(name).cast(pl.String) for name in names if sums.schema[name] == pl.Enum]
    return sums.with_columns(keys).sort("total_ns", *names, descending=[True, *(False for _ in names)])


def _weighted_mean(name: str) -> pl.Expr:
    """Mean, weighted by duration, over calls that have the value; unweighted if all durations are 0."""
    is_known = pl.col(name).is_not_nan()
    value, weight = pl.col(name).filter(is_known), pl.col("dur_ns").filter(is_known)
    return pl.when(weight.sum() > 0).then((value * weight).sum() / weight.sum()).otherwise(value.mean())
