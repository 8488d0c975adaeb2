"""Summaries of slices: what the page needs to draw, name and find a slice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.model import CATEGORIES, Timeline


def slice_summaries(timeline: Timeline, numbers: NDArray[np.integer]) -> list[dict[str, Any]]:
    """Number, name, category, track, lane and times of each slice; negative numbers, which are none, are left out."""
    numbers = numbers[numbers >= 0]
    rows = np.searchsorted(timeline.pyramid.rows.first, numbers, "right") - 1
    firsts = np.array([track.first_row for track in timeline.tracks], np.int64)
    tracks = np.searchsorted(firsts, rows, "right") - 1
    labels = timeline.label[numbers]
    columns = (numbers, tracks, rows - firsts[tracks], timeline.start_ns[numbers], timeline.dur_ns[numbers])
    kinds = timeline.labels.categories[labels]
    rows_of_slices = zip(*(column.tolist() for column in (*columns, labels, kinds)), strict=True)
    return [
        {
            "slice": number,
            "name": timeline.labels.texts[label],
            "category": CATEGORIES[kind],
            "track": track,
            "lane": lane,
            "start_ns": start,
            "dur_ns": dur,
        }
        for number, track, lane, start, dur, label, kind in rows_of_slices
    ]


def slice_summary(timeline: Timeline, number: int) -> dict[str, Any] | None:
    """One slice, or None if the number is negative."""
    return next(iter(slice_summaries(timeline, np.array([number], np.int64))), None)
