"""Named ranges by name: what those of a name take, how much they differ, and which are inside others."""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather, scatter_add
from ...arrays.nesting import nearest
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ..time.idle import Windows
from .annotation_costs import annotation_columns
from .annotation_ranges import AnnotationRanges, union_by_group
from .call_tree import Ints, outermost

FAR_LONGER = 3  # times the median


@once_per_recording
def annotation_totals(trace: Trace) -> pl.DataFrame:
    """Return one row per name, those with the longest host time first.

    Columns: those of AnnotationCosts, and open_ns (when any range of the name is open, from the start of the first step
    to the end of the last), threads (how many have one), median_host_ns, far_longer_calls (those that take more than
    FAR_LONGER medians), beyond_median_ns (what these take longer than the median). The last three are null where ranges
    of the name are inside each other.
    """
    ranges = AnnotationRanges.of(trace)
    tree, names = ranges.tree(), ranges.names
    is_outermost = outermost(tree.parent, tree.preorder(), tree.code, len(names))
    is_nested = ~gather(is_outermost, tree.node, missing=True)
    totals = annotation_columns(trace, ranges, ranges.code, len(names), is_nested).with_columns(
        name=pl.Series([name.name for name in names], dtype=pl.String),
        source=pl.Series([name.source for name in names], dtype=pl.String),
        open_ns=pl.Series(_open_ns(trace, ranges)),
    )
    thread = trace.host_events["thread"].gather(ranges.row)
    calls = pl.DataFrame({"code": ranges.code, "dur_ns": ranges.dur, "thread": thread, "is_nested": is_nested})
    totals = pl.concat([totals, _spreads(calls)], how="horizontal")
    return totals.sort("host_total_ns", "name", descending=[True, False])


def _spreads(calls: pl.DataFrame) -> pl.DataFrame:
    """The columns about the calls of each name, in the order of their numbers."""
    dur, median, is_alone = pl.col("dur_ns"), pl.col("dur_ns").median(), ~pl.col("is_nested").any()
    is_longer = dur > FAR_LONGER * median
    return (
        calls.filter(pl.col("code") != NONE)
        .group_by("code")
        .agg(
            threads=pl.col("thread").n_unique().cast(pl.Int64),
            median_host_ns=pl.when(is_alone).then(median.round().cast(pl.Int64)),
            far_longer_calls=pl.when(is_alone).then(is_longer.sum().cast(pl.Int64)),
            beyond_median_ns=pl.when(is_alone).then((dur - median).filter(is_longer).sum().round().cast(pl.Int64)),
        )
        .sort("code")
        .drop("code")
    )


def _open_ns(trace: Trace, ranges: AnnotationRanges) -> Ints:
    """When any range of each name is open, from the start of the first step to the end of the last."""
    row, begin, end, _ = Windows.of(trace, per_step=False).cut(ranges.start, ranges.start + ranges.dur)
    code, begin, end = union_by_group(ranges.code[row], begin, end)
    return scatter_add(code, end - begin, len(ranges.names))


def names_inside(trace: Trace, name: str) -> set[str]:
    """The names whose ranges are all inside ranges of another name."""
    ranges = AnnotationRanges.of(trace)
    is_meant = np.array([other.name == name for other in ranges.names])
    is_outside = nearest(gather(is_meant, ranges.code, missing=False), ranges.parent) == NONE
    outside = set(ranges.code[is_outside].tolist())
    return {other.name for code, other in enumerate(ranges.names) if code not in outside} - {name}
