"""Idle time: the gaps between device rows.

A gap lies between the end of all earlier rows of a stream, a device or a whole worker, and the next row that begins
there. Gaps are cut to windows (steps, or all of them), so the busy time and the gaps of a window add up to it.
measures/time/idle_causes.py says why the device was idle in each part of a gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, group_rows, number_alike
from ...arrays.intervals import Ints, cut
from ...arrays.native import Function
from ...trace.model import Trace
from ...trace.results import once_per_recording

_find_gaps = Function("find_gaps")

Rows = NDArray[np.int32]
Axis = Literal["stream", "device", "worker"]

MOST_GAPS = 5_000
"""How many gaps views list: the longest."""

QUEUED_NS = 20_000
"""Rows that were queued begin within 5 µs of each other on NVIDIA's devices and within 20 µs on AMD's (90 % and more of
those in the traces at hand)."""

_NAMES: dict[Axis, list[str]] = {"stream": ["device", "stream"], "device": ["device"], "worker": []}

GAPS: dict[str, type[pl.DataType] | pl.DataType] = {
    "device": pl.Int32,  # NONE: of all devices of the worker
    "stream": pl.Int64,  # NONE: of all streams
    "gap": pl.Int32,  # its number: the parts of a gap that lies in several windows share it
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "before": pl.Int32,  # the row of device_events whose end began the gap, or NONE
    "after": pl.Int32,  # the row that ended it, or NONE
    "window": pl.Int32,  # which of the windows it lies in
}
"""One row is one gap, or the part of it that lies in one window. Order: device, stream, start."""


class WholeGaps(NamedTuple):
    """The gaps of all groups of an axis, not yet cut to windows; rows are numbers of rows of device_events.

    Attributes:
        group: The group of each gap: an index of `device` and `stream`.
        begin: When it begins.
        end: When it ends.
        before: The row whose end began it, or NONE.
        after: The row that ended it, or NONE.
        device: The device of each group; NONE where the group has all.
        stream: The stream of each group; NONE where the group has all.
        rows: All rows, group by group, each group in the order of time.
        first: Where in `rows` each group begins.
    """

    group: Rows
    begin: Ints
    end: Ints
    before: Rows
    after: Rows
    device: Rows
    stream: Ints
    rows: Rows
    first: NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """Spans of time that are looked at, in order and disjoint: every step, or all from the first to the last as one."""

    names: list[str]
    start: Ints
    end: Ints

    @classmethod
    def of(cls, trace: Trace, *, per_step: bool) -> Windows:
        """Return the steps, or what they span, under the name `all`."""
        start, end = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
        return cls(trace.steps["name"].to_list(), start, end) if per_step else cls(["all"], start[:1], end[-1:])

    @property
    def length_ns(self) -> int:
        """How long all of them are together."""
        return int((self.end - self.start).sum())

    def cut(self, start: Ints, end: Ints) -> tuple[NDArray[np.int64], Ints, Ints, Rows]:
        """Cut intervals to the windows: (interval, start, end, window) of each piece; what lies in none is left out."""
        piece, begins, ends, window = cut(start, end, (self.start, self.end))
        inside = window != NONE
        return piece[inside], begins[inside], ends[inside], window[inside]


def axes(trace: Trace, axis: Axis) -> list[tuple[int, int, Rows]]:
    """Return (device, stream, rows of device_events) per stream, per device or once; NONE stands for all of them."""
    order, first = _rows_by_group(trace, axis)
    columns = _device_and_stream(trace, axis, order[first])
    return list(zip(*(column.tolist() for column in columns), np.split(order, first[1:]), strict=False))


@once_per_recording
def _rows_by_group(trace: Trace, axis: Axis) -> tuple[Rows, NDArray[np.int64]]:
    """The rows of device_events group by group, each in order, and where in them each group begins."""
    rows = trace.device_events.height
    if axis == "worker":
        return np.arange(rows, dtype=np.int32), np.zeros(min(rows, 1), np.int64)
    return group_rows(queue_numbers(trace) if axis == "stream" else number_rows(trace.device_events, _NAMES[axis]))


@once_per_recording
def finest_alike(trace: Trace, axis: Axis) -> Axis:
    """The finest axis with the same groups, in the same order: a device with one stream is that stream."""
    devices = trace.device_events["device"].n_unique()
    streams = int(queue_numbers(trace).max(initial=NONE)) + 1
    groups = {"stream": streams, "device": devices, "worker": 1}
    return next(name for name in _NAMES if groups[name] == groups[axis])


@once_per_recording
def devices_and_streams(trace: Trace, axis: Axis) -> tuple[Rows, Ints]:
    """Device and stream of each group of an axis; NONE where a group has several."""
    order, first = _rows_by_group(trace, axis)
    return _device_and_stream(trace, axis, order[first])


def _device_and_stream(trace: Trace, axis: Axis, rows: Rows) -> tuple[Rows, Ints]:
    """Device and stream of some rows, NONE where the axis doesn't tell them apart."""
    names = _NAMES[axis]
    device, stream = (
        trace.device_events[name].to_numpy()[rows] if name in names else np.full(rows.size, NONE)
        for name in _NAMES["stream"]
    )
    return device, stream


def number_rows(rows: pl.DataFrame, names: list[str]) -> Rows:
    """A number for each row; rows that are alike in the columns `names` have the same one, and those sort as these."""
    number = np.zeros(rows.height, np.int64)
    for name in names:
        ranks = _ranks(rows[name].to_numpy())
        number = number * (int(ranks.max(initial=0)) + 1) + ranks
    return _ranks(number)


def _ranks(values: Ints | Rows) -> Rows:
    """The place of each value among the distinct ones in order; these are few."""
    first, numbers = number_alike(values.astype(np.int64, copy=False))
    order = np.argsort(values[first])
    rank = np.empty(first.size, np.int32)
    rank[order] = np.arange(first.size, dtype=np.int32)
    return rank[numbers]


@once_per_recording
def queue_numbers(trace: Trace) -> Rows:
    """A number for each device row: that of its device and stream, in their order."""
    return number_rows(trace.device_events, _NAMES["stream"])


def whole_gaps(trace: Trace, axis: Axis, windows: Windows, *, with_empty: bool = False) -> WholeGaps:
    """Return the gaps from the first window's start to the last one's end, per stream, per device or of the worker.

    One lies before each row, and one more behind the last row of each group. Rows without a duration end no gap, unless
    they are to: then gaps are split where such a row is.
    """
    start, dur = (trace.device_events[name].to_numpy() for name in ("start_ns", "dur_ns"))
    rows, first = _rows_by_group(trace, axis)
    span = int(windows.start[0]), int(windows.end[-1])
    times, numbers = np.empty((2, rows.size + first.size), np.int64), np.empty((3, rows.size + first.size), np.int32)
    group, before, after = numbers
    size = _find_gaps(start, dur, rows, first, *span, with_empty, group, *times, before, after)
    (begin, end), (group, before, after) = times[:, :size], numbers[:, :size]
    return WholeGaps(group, begin, end, before, after, *_device_and_stream(trace, axis, rows[first]), rows, first)


def gaps(trace: Trace, axis: Axis, windows: Windows) -> pl.DataFrame:
    """Return the gaps (GAPS) in the windows, per stream, per device or of the whole worker."""
    if trace.device_events.is_empty():
        return pl.DataFrame(schema=GAPS)
    whole = whole_gaps(trace, axis, windows)
    gap, start, stop, window = windows.cut(whole.begin, whole.end)
    of = whole.group[gap]
    columns = (whole.device[of], whole.stream[of], gap, start, stop, whole.before[gap], whole.after[gap], window)
    return pl.DataFrame(dict(zip(GAPS, columns, strict=True)), schema_overrides=GAPS)
