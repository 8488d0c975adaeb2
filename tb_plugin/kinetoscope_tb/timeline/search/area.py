"""What ran in an area of the timeline (a range of time on some tracks), by name.

Compiled functions here avoid whole-array expressions: Numba takes seconds to compile the errors that those might raise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.native import Array, Function
from ...table import COUNT, DURATION, TEXT, Column, Table
from ..core.model import CATEGORIES, Timeline
from ..details.duration_stats import nearest_rank

_sum_by_label = Function("sum_by_label")


class Area(Table):
    """The slices that reach into the area, by name and category.

    Amounts (total, self, union) are cut to the area. Durations of single slices (mean, min, p50, p95, max) are those of
    whole slices.
    """

    key, weight = ("name", "category"), "total_ns"
    charts = ("self_ns",)  # slices nest: their totals don't add up

    name = Column(TEXT, "Name of the slices.")
    category = Column(TEXT, "What they are: Kernel, Operator and so on.")
    calls = Column(COUNT, "How many slices reach into the area; each is counted once, whole or not.")
    total_ns = Column(DURATION, "Sum of their durations within the area.")
    self_ns = Column(
        DURATION, "That without the time of the slices right inside them on the same track; self times add up."
    )
    union_ns = Column(DURATION, "Time of the area in which at least one of them ran, on any track.", adds_up=False)
    mean_ns = Column(DURATION, "Mean of their whole durations, including what is outside the area, rounded.")
    min_ns = Column(DURATION, "The shortest whole duration.")
    p50_ns = Column(DURATION, "Half of them last no longer, as a whole: one of the durations.", adds_up=False)
    p95_ns = Column(DURATION, "95 % of them last no longer, as a whole: one of the durations.", adds_up=False)
    max_ns = Column(DURATION, "The longest whole duration.")


def area(timeline: Timeline, from_ns: int, to_ns: int, tracks: Sequence[int]) -> pl.DataFrame:
    """The slices that reach into [from_ns, to_ns), by name, the largest total first.

    A slice of no length belongs to the area if its start is in it.
    """
    numbers = _reaching(timeline, from_ns, to_ns, tracks)
    start, dur = timeline.start_ns[numbers], timeline.dur_ns[numbers]
    begin, end = np.maximum(start, from_ns), np.minimum(start + dur, to_ns)
    labels, label = np.unique(timeline.label[numbers], return_inverse=True)
    order = np.argsort(start, kind="stable")
    parent = _places(numbers, timeline.parent[numbers])
    calls, total, own, united = _sums(order, begin, end, parent, label.astype(np.int64), labels.size)
    spelt = timeline.labels
    rows = pl.DataFrame(
        {
            "name": [spelt.texts[i] or None for i in labels.tolist()],
            "category": [CATEGORIES[i] for i in spelt.categories[labels].tolist()],
            "calls": calls,
            "total_ns": total,
            "self_ns": own,
            "union_ns": united,
            **_durations(label, dur, calls),
        },
        schema=Area.schema(),
    )
    return Area.of(rows.sort("total_ns", "calls", "name", "category", descending=[True, True, False, False]))


def _reaching(timeline: Timeline, from_ns: int, to_ns: int, tracks: Sequence[int]) -> NDArray[np.int64]:
    """The slices on the tracks that reach into the time, ascending: those of a row follow each other."""
    first, parts = timeline.pyramid.rows.first, [np.empty(0, np.int64)]
    for place in sorted(set(tracks)):
        track = timeline.tracks[place]
        for row in range(track.first_row, track.first_row + track.lanes):
            low, high = int(first[row]), int(first[row + 1])
            begin, stop = np.searchsorted(timeline.start_ns[low:high], [from_ns, to_ns]) + low
            if begin > low and timeline.start_ns[begin - 1] + timeline.dur_ns[begin - 1] > from_ns:
                begin -= 1
            parts.append(np.arange(begin, stop))
    return np.concatenate(parts)


def _places(numbers: NDArray[np.int64], parent: NDArray[np.int32]) -> NDArray[np.int64]:
    """The index of each parent among the numbers, or -1."""
    if not numbers.size:
        return np.empty(0, np.int64)
    place = np.minimum(np.searchsorted(numbers, parent), numbers.size - 1)
    return np.where(numbers[place] == parent, place, -1)


def _durations(label: NDArray[np.int64], dur: NDArray[np.int64], calls: NDArray[np.int64]) -> dict[str, object]:
    """How long the slices of each label last."""
    rows = pl.DataFrame({"label": label, "dur": dur}).sort("label", "dur")["dur"].to_numpy()
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


def _sums(
    order: Array, start: Array, end: Array, parent: Array, label: Array, labels: int
) -> tuple[Array, Array, Array, Array]:
    """Return (count, total time, self time, time in which any of them runs) of each label.

    `order` sorts the slices by start, so that the children of a slice are visited in order.
    """
    calls, total, own, united = (np.zeros(labels, np.int64) for _ in range(4))
    until = np.full(labels, np.iinfo(np.int64).min)
    _sum_by_label(order, start, end, parent, label, until, start.copy(), calls, total, own, united)
    return calls, total, own, united
