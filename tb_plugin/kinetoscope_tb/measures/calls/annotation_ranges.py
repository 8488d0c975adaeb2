"""Annotations: named ranges on the host, how they nest, and the GPU work launched inside them.

A range is inside the innermost annotation around it on its thread. Autograd runs the backward pass on threads of its
own while the main thread waits for it, so a range or a launch there that is in no annotation of its thread is inside
the innermost annotation that is open on the main thread. Copies of annotations on the GPU's timeline
(gpu_user_annotation) are projections of the same ranges and aren't counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather, map_categories, scatter_add
from ...arrays.intervals import Ints, length_within, union
from ...arrays.nesting import innermost, nearest
from ...names.annotations import AnnotationName, annotation_name
from ...trace.model import Trace
from ..recording.server import inference_server
from ..time.breakdown import intervals_of
from ..time.threads import autograd_threads, main_thread
from .call_tree import MergedTree, Rows, merge_calls


class GpuTimes(NamedTuple):
    """GPU time of the work launched inside groups of ranges, in ns.

    Attributes:
        union: When any of the work ran.
        total: The sum of its durations.
        span: From the first to the last of the work of each range; where the spans of ranges overlap, once.
        idle: The part of these spans in which no device ran anything.
    """

    union: Ints
    total: Ints
    span: Ints
    idle: Ints


@dataclass(frozen=True)
class AnnotationRanges:
    """The ranges, the outer ones first, and the device rows launched directly in each.

    Attributes:
        row: The row of host_events of each range; those of the main thread come first.
        parent: The range around each, or NONE.
        code: The number of its name in `names`.
        names: The names, with the numbers of steps and iterations removed.
        start: When each begins.
        dur: How long each lasts.
        step: The step of each, or NONE.
        launch_range: For each row of device_events the range that it was launched in, or NONE.
        around_call: For each row of launches the range that it is in, or NONE.
        around_host: For each row of host_events the range that it is, or is in, or NONE.
    """

    row: Rows
    parent: Rows
    code: Rows
    names: list[AnnotationName]
    start: Ints
    dur: Ints
    step: Rows
    launch_range: Rows
    around_call: Rows
    around_host: Rows

    @classmethod
    def of(cls, trace: Trace, *, with_warmup: bool = False) -> AnnotationRanges:
        """The ranges of a trace, but for those of warm-up unless asked for.

        They end before the recording begins: nothing that was launched in them was recorded.
        """
        host, main = trace.host_events, main_thread(trace)
        is_range = (host["kind"] == "annotation").to_numpy()
        if not with_warmup:
            is_range = is_range & (host["start_ns"] + host["dur_ns"] >= trace.window[0]).to_numpy()
        rows = np.flatnonzero(is_range).astype(np.int32)
        rows = rows[np.argsort(host["thread"].to_numpy()[rows] != main, kind="stable")]
        ranges = host.select("thread", "start_ns", "dur_ns", "step")[rows]
        thread, start, dur = (ranges[name].to_numpy() for name in ("thread", "start_ns", "dur_ns"))
        number = np.full(host.height, NONE, np.int32)
        number[rows] = np.arange(rows.size)
        holder = nearest(is_range, host["parent"].to_numpy())  # the annotation at or around each host event
        around = gather(number, gather(holder, host["parent"].to_numpy()[rows]))
        on_main = _OnMain(trace, main, start[thread == main], (start + dur)[thread == main])
        around = on_main.fill(around, thread, start, start + dur)
        names, code = _names(host["name"], rows, inference_server(trace))
        around_call, around_host = _around(trace, gather(number, holder), on_main)
        launch, op = trace.device_events["launch"].to_numpy(), trace.recorded_op.to_numpy()
        launch_range = np.where(launch != NONE, gather(around_call, launch), gather(around_host, op)).astype(np.int32)
        step = ranges["step"].to_numpy()
        return cls(rows, around, code, names, start, dur, step, launch_range, around_call, around_host)

    def number_of(self, frame: str, row: int) -> int:
        """The range that an event of a trace's frame is, or NONE."""
        numbers = np.flatnonzero(self.row == row) if frame == "host_events" else self.row[:0]
        return int(numbers[0]) if numbers.size else NONE

    def tree(self) -> MergedTree:
        """Ranges with the same names around them as one node."""
        return merge_calls(self.parent, self.code)

    def gpu_times(self, trace: Trace, group: Rows, groups: int) -> GpuTimes:
        """GPU times of groups of ranges; ranges of the group NONE are left out, and no two of a group are nested."""
        device = trace.device_events
        start, dur = device["start_ns"].to_numpy(), device["dur_ns"].to_numpy()
        work, inside = self._work(group)
        of = group[inside]
        first, last = np.full(self.row.size, np.iinfo(np.int64).max), np.zeros(self.row.size, np.int64)
        np.minimum.at(first, inside, start[work])
        np.maximum.at(last, inside, (start + dur)[work])
        has_work = np.zeros(self.row.size, bool)
        has_work[inside] = True
        span_group, begins, ends = union_by_group(group[has_work], first[has_work], last[has_work])
        span, active = ends - begins, length_within(intervals_of(device), begins, ends)
        busy, first_busy, last_busy = union_by_group(of, start[work], (start + dur)[work])
        return GpuTimes(
            scatter_add(busy, last_busy - first_busy, groups),
            scatter_add(of, dur[work], groups),
            scatter_add(span_group, span, groups),
            scatter_add(span_group, span - active, groups),
        )

    def stream_spans(self, trace: Trace) -> pl.DataFrame:
        """From the first to the last work launched inside each range, on each stream: row, device, stream, times."""
        work, inside = self._work(np.zeros(self.row.size, np.int32))
        device = trace.device_events.select(
            "device", "stream", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")
        )
        return (
            device[work]
            .with_columns(row=pl.Series(self.row[inside], dtype=pl.Int32))
            .group_by("row", "device", "stream")
            .agg(pl.col("start_ns").min(), dur_ns=pl.col("end_ns").max() - pl.col("start_ns").min())
            .sort("row", "device", "stream")
        )

    def _work(self, group: Rows) -> tuple[Rows, Rows]:
        """(device row, range) for each range of a group around the launch of each device row."""
        work, inside = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        rows = np.flatnonzero(self.launch_range != NONE).astype(np.int32)
        at = self.launch_range[rows]
        while rows.size:  # once per level of nesting
            counts = group[at] != NONE
            work.append(rows[counts])
            inside.append(at[counts])
            at = self.parent[at]
            rows, at = rows[at != NONE], at[at != NONE]
        return np.concatenate(work), np.concatenate(inside)


class _OnMain:
    """The annotations of the main thread, to look up what is open there."""

    def __init__(self, trace: Trace, main: int, start: Ints, end: Ints) -> None:
        self._start, self._end = start, end  # in order; these are the first ranges
        self._waits_for = autograd_threads(trace).copy()
        self._waits_for[main : main + 1] = False

    def fill(self, around: Rows, thread: Rows, start: Ints, end: Ints) -> Rows:
        """The range around each event; autograd's events that have none are in that which encloses them here."""
        blank = np.flatnonzero((around == NONE) & self._waits_for[thread])
        blank = blank[np.argsort(start[blank], kind="stable")]
        none = np.zeros(self._start.size, np.int32)
        outer = innermost(none, self._start, self._end, np.zeros(blank.size, np.int32), start[blank])
        ranges = around.copy()
        ranges[blank] = np.where(gather(self._end, outer) >= end[blank], outer, NONE)
        return ranges


def _around(trace: Trace, holder: Rows, on_main: _OnMain) -> tuple[Rows, Rows]:
    """The range around each runtime call, and around each host event; an annotation's own is the range that it is."""
    host, calls = trace.host_events, trace.launches
    around = []
    for frame, own in ((calls, gather(holder, calls["host"].to_numpy())), (host, holder)):
        start = frame["start_ns"].to_numpy()
        around.append(on_main.fill(own, frame["thread"].to_numpy(), start, start))
    return around[0], around[1]


def _names(names: pl.Series, rows: Rows, server: str) -> tuple[list[AnnotationName], Rows]:
    """(the distinct names, the number of each range's)."""
    numbers: dict[AnnotationName, int] = {}
    code = map_categories(
        names.gather(rows), lambda text: numbers.setdefault(annotation_name(text, server), len(numbers)), missing=NONE
    )
    return list(numbers), code.astype(np.int32)


def union_by_group(group: Rows, start: Ints, end: Ints) -> tuple[Rows, Ints, Ints]:
    """(group, start, end) of the union of each group's intervals; the groups lie one behind the other on an axis."""
    first, last = (int(start.min()), int(end.max())) if start.size else (0, 0)
    width = last - first + 1
    base = group.astype(np.int64) * width - first
    begins, ends = union(start + base, end + base)
    of = begins // width
    return of.astype(np.int32), begins - of * width + first, ends - of * width + first
