"""How busy devices and host were over the whole recording, for the strip above the timeline."""

from __future__ import annotations

import numpy as np

from ...arrays.intervals import length_within, union
from .model import Timeline

BINS = 512


def activity(timeline: Timeline) -> dict[str, list[float] | None]:
    """The busy share of all devices, and of the busiest thread, in each of 512 equal parts of the window.

    None if the trace has no such track.
    """
    work = [i for i, track in enumerate(timeline.tracks) if track.part == "work"]
    calls = [i for i, track in enumerate(timeline.tracks) if track.part == "calls"]
    busiest = sorted(calls, key=lambda i: -timeline.tracks[i].slices)[:1]
    return {"device": _busy(timeline, work), "host": _busy(timeline, busiest)}


def _busy(timeline: Timeline, tracks: list[int]) -> list[float] | None:
    if not tracks:
        return None
    start = np.concatenate([timeline.start_ns[timeline.slices_on(track)] for track in tracks])
    dur = np.concatenate([timeline.dur_ns[timeline.slices_on(track)] for track in tracks])
    first, last = timeline.window
    edges = first + (last - first) * np.arange(BINS + 1, dtype=np.int64) // BINS
    lasts = np.maximum(np.diff(edges), 1)
    shares = length_within(union(start, start + dur), edges[:-1], edges[1:]) / lasts
    return [round(share, 4) for share in shares.tolist()]
