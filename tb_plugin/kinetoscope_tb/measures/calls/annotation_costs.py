"""The table columns of annotations: host and GPU time of groups of ranges."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, scatter_add
from ...table import COUNT, DURATION, NUMBER, TEXT, Column, Table
from ...trace.model import Trace
from ..time.step_subset import counted_steps, has_steps
from .annotation_ranges import AnnotationRanges
from .call_tree import Ints, Rows


class AnnotationCosts(Table):
    """Costs of named ranges."""

    name = Column(TEXT, "Name of the range. Steps have no number, and iterations of a server are one name per phase.")
    source = Column(TEXT, "The library that writes ranges of this name; missing if it is the program's own.")
    calls = Column(COUNT, "Number of ranges, without those of warm-up, which end before the recording begins.")
    host_total_ns = Column(DURATION, "Host time: from the start to the end of each range.")
    mean_host_ns = Column(
        DURATION, "Mean duration of a range on the host, those inside another one of their name too.", adds_up=False
    )
    longest_host_ns = Column(DURATION, "The longest range on the host.")
    gpu_ns = Column(
        DURATION,
        "GPU time: when any kernel, copy or fill ran that was launched inside, by its own thread or by autograd's "
        "threads while the main thread was inside. Each instant counts once.",
        adds_up=False,
    )
    gpu_sum_ns = Column(DURATION, "The sum of the durations of that work: more than the GPU time if it overlaps.")
    gpu_span_ns = Column(
        DURATION,
        "From the start of the first to the end of the last work of each range. Where the spans of several ranges "
        "overlap, each instant counts once.",
        adds_up=False,
    )
    gpu_idle_ns = Column(
        DURATION, "The part of these spans in which no device of the process ran anything.", adds_up=False
    )
    steps = Column(COUNT, "In how many complete steps it occurs; missing without steps.", adds_up=False)
    calls_per_step = Column(NUMBER, "Ranges in complete steps ÷ those of them in which it occurs.")
    host_per_step_ns = Column(
        DURATION, "Host time of the ranges in complete steps ÷ those of them in which it occurs.", adds_up=False
    )


def annotation_columns(
    trace: Trace, ranges: AnnotationRanges, group: Rows, groups: int, is_nested: NDArray[np.bool_]
) -> pl.DataFrame:
    """The numbers of AnnotationCosts for each group of ranges; those inside another one of their group add no time."""
    alone = np.where(is_nested, NONE, group).astype(np.int32)
    calls, durations = _count(group, groups), scatter_add(group, ranges.dur, groups)
    longest = np.zeros(groups, np.int64)
    np.maximum.at(longest, group[group != NONE], ranges.dur[group != NONE])
    columns = {
        "calls": calls,
        "host_total_ns": scatter_add(alone, ranges.dur, groups),
        "mean_host_ns": np.rint(durations / np.maximum(calls, 1)).astype(np.int64),
        "longest_host_ns": longest,
    }
    if trace.device_events.height:
        gpu = ranges.gpu_times(trace, alone, groups)
        columns |= {"gpu_ns": gpu.union, "gpu_sum_ns": gpu.total, "gpu_span_ns": gpu.span, "gpu_idle_ns": gpu.idle}
    rows = pl.DataFrame({**columns, **_per_step(trace, ranges, group, alone, groups)})
    schema = AnnotationCosts.schema()
    return rows.with_columns(pl.lit(None, schema[name]).alias(name) for name in schema.names() if name not in rows)


def _count(group: Rows, groups: int) -> Ints:
    return scatter_add(group, np.ones(group.size, np.int64), groups)


def _per_step(
    trace: Trace, ranges: AnnotationRanges, group: Rows, alone: Rows, groups: int
) -> dict[str, pl.Series | Ints]:
    """The columns about steps; none without steps, and missing where a group occurs in no step."""
    if not has_steps(trace):
        return {}
    in_steps = np.isin(ranges.step, counted_steps(trace)) & (group != NONE)
    pairs = np.unique(np.column_stack([group[in_steps], ranges.step[in_steps]]), axis=0)
    steps = _count(pairs[:, 0].astype(np.int32), groups)
    divisor = pl.Series(steps).replace(0, None)
    inside = np.where(in_steps, group, NONE).astype(np.int32)
    outermost = np.where(in_steps, alone, NONE).astype(np.int32)
    return {
        "steps": steps,
        "calls_per_step": pl.Series(_count(inside, groups)) / divisor,
        "host_per_step_ns": (pl.Series(scatter_add(outermost, ranges.dur, groups)) / divisor).round().cast(pl.Int64),
    }
