"""How long the slices of one name last: their statistics, a histogram, and which of them are worth a look.

A quantile is the duration of one of the slices (nearest rank: the smallest one that at least that share of them don't
exceed), so that the page can link to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.intervals import Ints
from ..core.model import Timeline

BINS = 40


def duration_stats(timeline: Timeline, number: int) -> dict[str, Any]:
    """Statistics of all slices with the name and category of this one."""
    return stats_of(timeline, np.flatnonzero(timeline.label == timeline.label[number]))


def stats_of(timeline: Timeline, same: Ints) -> dict[str, Any]:
    """Statistics of some slices, at least one."""
    dur = timeline.dur_ns[same]
    order = np.argsort(dur, kind="stable")
    total = int(dur.sum())
    middle, high = (order[nearest_rank(same.size, share)] for share in (0.5, 0.95))
    return {
        "count": int(same.size),
        "total_ns": total,
        "mean_ns": (2 * total + same.size) // (2 * same.size),
        "min_ns": int(dur[order[0]]),
        "p50_ns": int(dur[middle]),
        "p95_ns": int(dur[high]),
        "max_ns": int(dur[order[-1]]),
        "bins": _bins(dur),
        "fastest": int(same[order[0]]),
        "median": int(same[middle]),
        "slowest": int(same[np.argmax(dur)]),
    }


def nearest_rank(count: int, share: float) -> int:
    """The place of a quantile among that many sorted values."""
    return max(0, int(np.ceil(share * count)) - 1)


def _bins(dur: Ints) -> dict[str, list[int]]:
    """At most 40 bins that grow by a constant factor from the shortest to the longest; zero durations have their own.

    If all durations are similar, the factor is so close to 1 that the bins are equally wide.
    """
    shortest = int(dur[dur > 0].min(initial=np.iinfo(np.int64).max))
    if not (dur > 0).any():
        edges = np.array([0, 1], np.int64)
    else:
        above = np.geomspace(shortest, int(dur.max()) + 1, BINS + 1).round().astype(np.int64)
        above[0], above[-1] = shortest, int(dur.max()) + 1
        edges = np.unique(np.concatenate([[0] if (dur == 0).any() else np.empty(0, np.int64), above]))
    counts = np.bincount(np.searchsorted(edges, dur, "right") - 1, minlength=edges.size - 1)
    return {"from_ns": edges[:-1].tolist(), "to_ns": edges[1:].tolist(), "count": counts.tolist()}
