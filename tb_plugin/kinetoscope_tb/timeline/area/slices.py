"""The slices that reach into an area, how they nest, and the time of each without those inside it.

All tracks of a thread or stream count together. An instant of a thread belongs to the slice that began last of those
that are open: a function doesn't have the time of an operator that it calls. An instant of a stream belongs to the
kernel, copy or fill that began last; spans of annotations there, recorded or projected, only enclose what runs, so they
have no time of their own. So the times of slices add up to the time in which anything runs on the threads and streams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...arrays.native import Function
from ...arrays.nesting import innermost, nest
from ..core.model import Part, Timeline, Track

_time_on_top = Function("time_on_top")

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
Mask = NDArray[np.bool_]

_OUTER_FIRST: tuple[Part, ...] = ("python", "annotations", "projected", "calls", "other", "waits", "work")
"""Which of two slices with the same times is around the other."""

_SPANS: tuple[Part, ...] = ("annotations", "projected")
"""What is the span of an annotation where it is on a stream."""

_LAYERS: dict[Part, int] = {"waits": 1, "work": 2}
"""What takes its time from lower layers, and encloses nothing."""


@dataclass(frozen=True)
class AreaSlices:
    """The slices by thread or stream, then by start, the outer ones first.

    Args:
        number: Their numbers in the timeline.
        axis: The thread or stream of each: the index of its first track.
        begin, end: Their times, cut to the area.
        parent: The slice here that is right around each on its thread or stream, or NONE; around a kernel, copy or fill
            the innermost annotation that is open when it begins.
        own_ns: The time of the area that belongs to each.
        covers: Whether each lasts for the whole area, with others inside it.
        is_device: Whether each is on a stream.
        is_span: Whether each is the span of an annotation on a stream: from the first to the last work launched in it.
    """

    number: Ints
    axis: Rows
    begin: Ints
    end: Ints
    parent: Rows
    own_ns: Ints
    covers: Mask
    is_device: Mask
    is_span: Mask

    @classmethod
    def of(cls, timeline: Timeline, from_ns: int, to_ns: int, tracks: Sequence[int]) -> AreaSlices:
        """The slices that reach into [from_ns, to_ns); one of no length does if its start is there."""
        all_tracks = timeline.tracks
        number, track = _slices_within(timeline, from_ns, to_ns, tracks)
        axis = axes_of(all_tracks)[track]
        start, dur = timeline.start_ns[number], timeline.dur_ns[number]
        rank = np.array([_OUTER_FIRST.index(each_track.part) for each_track in all_tracks], np.uint8)[track]
        layer = np.array([_LAYERS.get(each_track.part, 0) for each_track in all_tracks], np.uint8)[track]
        order = _outer_first(axis, start, dur, layer, rank)
        number, track, axis, start, dur = number[order], track[order], axis[order], start[order], dur[order]
        layer = layer[order]
        is_device = np.array([each_track.stream is not None for each_track in all_tracks], bool)[track]
        parent = _parents(axis, start, start + dur, layer == 0)
        begin, end = np.maximum(start, from_ns), np.minimum(start + dur, to_ns)
        own, stack = np.zeros(number.size, np.int64), np.empty(number.size, np.int32)
        _time_on_top(axis, begin, end, layer, stack, own)
        own[is_device & (layer == 0)] = 0
        has_inner = np.zeros(number.size, bool)
        has_inner[parent[parent != NONE]] = True
        covers = (start <= from_ns) & (start + dur >= to_ns) & has_inner
        is_span = spans_on_streams(timeline)[number]
        return cls(number, axis, begin, end, parent, own, covers, is_device, is_span)


def spans_on_streams(timeline: Timeline) -> Mask:
    """Which slices are spans of annotations on streams: their time is that of the work inside them."""
    is_span = [track.stream is not None and track.part in _SPANS for track in timeline.tracks]
    return np.repeat(np.array(is_span, bool), [track.slices for track in timeline.tracks])


def _parents(axis: Rows, start: Ints, end: Ints, can_enclose: Mask) -> Rows:
    outer, inner = np.flatnonzero(can_enclose), np.flatnonzero(~can_enclose)
    parent = np.full(axis.size, NONE, np.int32)
    ranges = axis[outer], start[outer], end[outer]
    parent[outer] = gather(outer, nest(*ranges)[0])
    parent[inner] = gather(outer, innermost(*ranges, axis[inner], start[inner]))
    return parent


def axes_of(tracks: Sequence[Track]) -> Rows:
    """Of each track the first one of its thread or stream."""
    first: dict[tuple[object, ...], int] = {}
    keys = ((track.device, track.stream, track.pid, track.tid) for track in tracks)
    return np.array([first.setdefault(key, number) for number, key in enumerate(keys)], np.int32)


def _slices_within(timeline: Timeline, from_ns: int, to_ns: int, tracks: Sequence[int]) -> tuple[Ints, Ints]:
    """(the slices on the tracks that reach into the time, the track of each)."""
    first, parts, counts = timeline.pyramid.rows.first, [np.empty(0, np.int64)], []
    numbers = sorted(set(tracks))
    for number in numbers:
        track, count = timeline.tracks[number], 0
        for row in range(track.first_row, track.first_row + track.lanes):
            low, high = int(first[row]), int(first[row + 1])
            begin, stop = np.searchsorted(timeline.start_ns[low:high], [from_ns, to_ns]) + low
            if begin > low and timeline.start_ns[begin - 1] + timeline.dur_ns[begin - 1] > from_ns:
                begin -= 1
            parts.append(np.arange(begin, stop))
            count += parts[-1].size
        counts.append(count)
    return np.concatenate(parts), np.repeat(np.array(numbers, np.int64), counts)


def _outer_first(axis: Rows, start: Ints, dur: Ints, layer: NDArray[np.uint8], rank: NDArray[np.uint8]) -> Ints:
    """The order by axis and start, what can enclose others first, then the longest; with the same times, by rank.

    Each row is sorted by start already, which a stable sort makes use of; only what begins together is sorted again.
    """
    by_rank = np.argsort(rank, kind="stable")
    order = by_rank[np.lexsort((start[by_rank], axis[by_rank]))]
    follows = (np.diff(start[order]) == 0) & (np.diff(axis[order]) == 0)
    together = np.flatnonzero(np.append(follows, False) | np.append(False, follows))
    ties = order[together]
    order[together] = ties[np.lexsort((-dur[ties], layer[ties], start[ties], axis[ties]))]
    return order
