"""What ran in an area of the timeline, by name or by another group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from ...arrays.gather import scatter_add
from ...arrays.native import Function
from ...table import BOOL, COUNT, DURATION, TEXT, Column, Table
from ..core.model import Timeline
from ..details.duration_stats import nearest_rank
from .groups import Groups
from .slices import AreaSlices, Ints

_sum_by_group = Function("sum_by_group")


class Area(Table):
    """The slices that reach into the area, by group.

    Amounts (self, total, union) are cut to the area. Durations of single slices (mean, min, p50, p95, max) are those of
    whole slices. Spans of annotations on streams are rows by name and by category; other groups don't count them, since
    their time is that of the work inside them.
    """

    key, weight = ("name", "category", "process", "is_device", "is_covering"), "self_ns"

    name = Column(TEXT, "Name of the slices, or of what they are grouped by.")
    category = Column(
        TEXT, "What they are: Kernel, Operator and so on; Communication if they communicate, on the device or the host."
    )
    process = Column(TEXT, "Process of the thread, or device of the stream.")
    self_ns = Column(
        DURATION,
        "Their time within the area without slices inside them on the same thread. On a stream each instant belongs to "
        "the kernel, copy or fill that began last, and annotations have none. Self times add up.",
    )
    total_ns = Column(DURATION, "Sum of their durations within the area.", adds_up=False)
    calls = Column(COUNT, "How many slices reach into the area; each is counted once, whole or not.")
    union_ns = Column(DURATION, "Time of the area in which at least one of them ran, on any track.", adds_up=False)
    mean_ns = Column(DURATION, "Mean of their whole durations, including what is outside the area, rounded.")
    min_ns = Column(DURATION, "The shortest whole duration.")
    p50_ns = Column(DURATION, "Half of them last no longer, as a whole: one of the durations.", adds_up=False)
    p95_ns = Column(DURATION, "95 % of them last no longer, as a whole: one of the durations.", adds_up=False)
    max_ns = Column(DURATION, "The longest whole duration.")
    is_device = Column(BOOL, "Whether they are on streams.")
    is_covering = Column(BOOL, "Whether they last for the whole area, with others inside them.")


def area(timeline: Timeline, groups: Groups, from_ns: int, to_ns: int, tracks: Sequence[int]) -> pl.DataFrame:
    """The slices that reach into [from_ns, to_ns), by group, the largest self time first.

    What covers the area with others inside it, and what is on streams, are groups of their own.
    """
    slices = AreaSlices.of(timeline, from_ns, to_ns, tracks)
    counts = groups.has_spans | ~slices.is_span
    number, kind = slices.number[counts], (slices.is_device * 2 + slices.covers)[counts]
    keys, group = np.unique(groups.code[number].astype(np.int64) * 4 + kind, return_inverse=True)
    code = (keys // 4).tolist()
    calls, total, union_ns = _sums(slices.begin[counts], slices.end[counts], group, keys.size)
    own = scatter_add(group.astype(np.int32), slices.own_ns[counts], keys.size)
    nulls = [None] * keys.size
    rows = pl.DataFrame(
        {
            "name": [groups.names[i] or None for i in code],
            "category": [groups.categories[i] for i in code] if groups.categories else nulls,
            "process": [groups.processes[i] for i in code] if groups.processes else nulls,
            "self_ns": own,
            "total_ns": total,
            "calls": calls,
            "union_ns": union_ns,
            **_durations(group, timeline.dur_ns[number], calls),
            "is_device": keys % 4 >= 2,
            "is_covering": keys % 2 == 1,
        },
        schema=Area.schema(),
    )
    amounts = ["self_ns", "total_ns", "calls"]
    return Area.of(rows.sort(*amounts, "name", "category", descending=[True, True, True, False, False]))


def _sums(begin: Ints, end: Ints, group: Ints, groups: int) -> tuple[Ints, Ints, Ints]:
    """(count, total time, time in which any of them runs) of each group."""
    calls, total, union_ns = (np.zeros(groups, np.int64) for _ in range(3))
    order = np.argsort(begin, kind="stable")
    until = np.full(groups, np.iinfo(np.int64).min)
    _sum_by_group(order, begin, end, group.astype(np.int64), until, calls, total, union_ns)
    return calls, total, union_ns


def _durations(group: Ints, dur: Ints, calls: Ints) -> dict[str, Ints]:
    """How long the slices of each group last."""
    rows = pl.DataFrame({"group": group, "dur": dur}).sort("group", "dur")["dur"].to_numpy()
    first = np.cumsum(calls) - calls
    ranks = {share: first + [nearest_rank(count, share) for count in calls.tolist()] for share in (0.5, 0.95)}
    sums = np.add.reduceat(rows, first) if calls.size else calls
    return {
        "mean_ns": (2 * sums + calls) // np.maximum(2 * calls, 1),
        "min_ns": rows[first],
        "p50_ns": rows[ranks[0.5].astype(np.int64)],
        "p95_ns": rows[ranks[0.95].astype(np.int64)],
        "max_ns": rows[first + calls - 1],
    }
