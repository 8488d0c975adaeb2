"""Annotations that overlap Python calls partially, which Perfetto doesn't draw.

torch.profiler begins a record_function range in the middle of the Python call that begins it, and ends it in the
middle of another one (pytorch#174555). Our recorder leaves its own calls out of its files, so its steps and markers
nest; those that torch and the program begin with `record_function` remain.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ..arrays.nesting import innermost
from ..trace import Diagnostic, Trace


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """How many annotations don't nest with the Python calls of their thread."""
    ranges = trace.host_events.filter(pl.col("kind") == "annotation").select(
        "thread", "name", "offset", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
    )
    if ranges.is_empty() or trace.python_calls.is_empty():
        return
    begin, end = (_crosses(trace.python_calls, ranges, edge) for edge in ("start_ns", "end_ns"))
    partial = ranges.filter(begin | end)
    if partial.height:
        yield Diagnostic(
            "stacks_overlap_annotations",
            partial.height,
            f"Annotations begin or end in the middle of a Python call, such as {partial['name'][0]}: torch records "
            "them inside the calls that begin and end them. The timeline shows them; Perfetto leaves such slices out.",
            int(partial["offset"].min()),  # type: ignore[arg-type]  # it isn't empty
            "note",
        )


def _crosses(calls: pl.DataFrame, ranges: pl.DataFrame, edge: str) -> pl.Series:
    """Whether each range has this edge inside of a call that has one of its own edges inside of the range."""
    order = ranges.select(pl.arg_sort_by("thread", edge)).to_series().to_numpy()
    at = ranges[order]
    start, thread = calls["start_ns"].to_numpy(), calls["thread"].to_numpy()
    end = start + calls["dur_ns"].to_numpy()
    inside = innermost(thread, start, end, at["thread"].to_numpy(), at[edge].to_numpy())
    range_start, range_end = at["start_ns"].to_numpy(), at["end_ns"].to_numpy()
    other = end[inside] < range_end if edge == "start_ns" else start[inside] > range_start
    crosses = np.zeros(ranges.height, bool)
    crosses[order] = (inside >= 0) & (start[inside] < at[edge].to_numpy()) & other
    return pl.Series(crosses)
