"""Idle time: the gaps between device rows, why each lasted, and what the host did meanwhile.

A gap lies between the end of all earlier rows of a stream, a device or a whole worker, and the next row that begins
there. Gaps are cut to windows (steps, or all of them), so the busy time and the gaps of a window add up to it.
The cause of a gap is told by the call that launched the row which ended it:

* host late: the call began after the gap did, so nothing was queued; or nothing more was launched at all.
* launch latency: it was queued in time, and began within QUEUED_NS: what a device needs between two rows.
* dependency: it was queued in time, and its stream was told to wait for an event, or another stream's row ended less
  than QUEUED_NS before it began.
* other: it was queued in time and waited for nothing that was recorded; or the call that launched it isn't known.

What the host did during a gap is not why it lasted: a queue may run dry long after the call that held the host up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, Ints, exclusive_lengths
from ...arrays.jit import Array, compiled
from ...names.calls import synchronises
from ...names.kernels import is_data_loading, step_number
from ...trace.model import Trace
from .breakdown import intervals_of

Rows = NDArray[np.int32]
Axis = Literal["stream", "device", "worker"]

QUEUED_NS = 20_000
"""Rows that were queued begin within 5 µs of each other on NVIDIA's devices and within 20 µs on AMD's (90 % and more of
those in the traces at hand)."""

_NAMES: dict[Axis, list[str]] = {"stream": ["device", "stream"], "device": ["device"], "worker": []}

CAUSES = ("host late", "launch latency", "dependency", "other")
HOST_ACTIVITIES = (
    "data loading",
    "synchronising",
    "runtime call",
    "operator",
    "annotation",
    "python",
    "nothing recorded",
)

_CAUSE = pl.Enum(CAUSES)
GAPS: dict[str, type[pl.DataType] | pl.DataType] = {
    "device": pl.Int32,  # NONE: of all devices of the worker
    "stream": pl.Int64,  # NONE: of all streams
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "cause": _CAUSE,
    "before": pl.Int32,  # the row of device_events whose end began the gap, or NONE
    "after": pl.Int32,  # the row that ended it, or NONE
    "window": pl.Int32,  # which of the windows it lies in
}
"""One row is one gap, or the part of it that lies in one window. Order: device, stream, start."""


@dataclass(frozen=True)
class _Device:
    """The columns of device rows, and what is known of each row's launch.

    Attributes:
        launched: When the call that launched the row began; -1 if no call is known.
        queue: A number for each pair of device and stream.
        has_waited: Whether its stream was told to wait for an event between the launch of the row before and its own.
    """

    start: Ints
    end: Ints
    launched: Ints
    queue: Rows
    has_waited: NDArray[np.bool_]

    @classmethod
    def of(cls, trace: Trace) -> _Device:
        rows = trace.device_events
        start = rows["start_ns"].to_numpy()
        launched = gather(trace.launches["start_ns"].to_numpy(), rows["launch"].to_numpy())
        queue = _numbered(rows, ["device", "stream"])
        return cls(start, start + rows["dur_ns"].to_numpy(), launched, queue, _told_to_wait(trace, launched))


@dataclass(frozen=True)
class Windows:
    """Spans of time that are looked at, in order and disjoint: every step, or all from the first to the last as one."""

    names: list[str]
    start: Ints
    end: Ints

    @classmethod
    def of(cls, trace: Trace, *, each: bool) -> Windows:
        """Return the steps, or what they span, under the name `all`."""
        start, end = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
        return cls(trace.steps["name"].to_list(), start, end) if each else cls(["all"], start[:1], end[-1:])

    def cut(self, start: Ints, end: Ints) -> tuple[NDArray[np.int64], Ints, Ints, Rows]:
        """Cut intervals to the windows: (interval, start, end, window) of each piece; what lies in none is left out."""
        borders = np.unique(np.concatenate([self.start, self.end]))
        first, last = np.searchsorted(borders, start, "right"), np.searchsorted(borders, end, "left")
        count = last - first + 1  # pieces: one more than borders strictly inside
        piece = np.repeat(np.arange(start.size), count)
        nth = np.arange(piece.size) - np.repeat(np.cumsum(count) - count, count)
        begins = np.where(nth == 0, start[piece], borders[first[piece] + nth - 1])
        ends = np.append(begins[1:], 0)  # a piece ends where the next one begins, but for an interval's last
        is_last = nth == count[piece] - 1
        ends[is_last] = end
        window = (np.searchsorted(self.start, begins, "right") - 1).astype(np.int32)
        inside = (window >= 0) & (begins < gather(self.end, window)) & (ends > begins)
        return piece[inside], begins[inside], ends[inside], window[inside]


def axes(trace: Trace, axis: Axis) -> list[tuple[int, int, Rows]]:
    """Return (device, stream, rows of device_events) per stream, per device or once; NONE stands for all of them."""
    order, first = _grouped(trace, axis)
    places = _places(trace, axis, order[first])
    return list(zip(*(column.tolist() for column in places), np.split(order, first[1:]), strict=False))


def _grouped(trace: Trace, axis: Axis) -> tuple[Rows, NDArray[np.int64]]:
    """The rows of device_events group by group, each in order, and where in them each group begins."""
    number = _numbered(trace.device_events, _NAMES[axis])
    order = np.argsort(number, kind="stable").astype(np.int32)
    return order, np.flatnonzero(np.diff(number[order], prepend=-1))


def _places(trace: Trace, axis: Axis, rows: Rows) -> tuple[Rows, Ints]:
    """Device and stream of some rows, NONE where the axis doesn't tell them apart."""
    names = _NAMES[axis]
    device, stream = (
        trace.device_events[name].to_numpy()[rows] if name in names else np.full(rows.size, NONE)
        for name in _NAMES["stream"]
    )
    return device, stream


def _numbered(rows: pl.DataFrame, names: list[str]) -> Rows:
    """A number for each row; rows that are alike in the columns `names` have the same one."""
    number = np.zeros(rows.height, np.int64)
    for name in names:
        rank = rows[name].rank("dense").to_numpy().astype(np.int64)
        number = number * (int(rank.max(initial=0)) + 1) + rank
    return np.unique(number, return_inverse=True)[1].astype(np.int32)


def gaps(trace: Trace, axis: Axis, windows: Windows) -> pl.DataFrame:
    """Return the gaps (GAPS) in the windows, per stream, per device or of the whole worker."""
    if trace.device_events.is_empty():
        return pl.DataFrame(schema=GAPS)
    device = _Device.of(trace)
    order, first = _grouped(trace, axis)
    group = np.repeat(np.arange(first.size), np.diff(first, append=order.size))
    lasts = device.end[order] > device.start[order]
    of, begin, end, before, after = _between(device, order[lasts], group[lasts], first.size, windows)
    gap, start, stop, window = windows.cut(begin, end)
    why = pl.Series(CAUSES, dtype=_CAUSE).gather(_causes(device, begin, end, before, after)[gap])
    places = (values[of[gap]] for values in _places(trace, axis, order[first]))
    columns = (*places, start, stop, why, before[gap], after[gap], window)
    return pl.DataFrame(dict(zip(GAPS, columns, strict=True)), schema_overrides=GAPS)


def _between(
    device: _Device, rows: Rows, group: NDArray[np.int64], groups: int, windows: Windows
) -> tuple[NDArray[np.int64], Ints, Ints, Rows, Rows]:
    """The gaps between rows: their group, begin, end, and the rows whose end began and whose begin ended each.

    One lies before each row, and one more behind the last row of each group.
    """
    reach, latest = _reached(device.end, rows, group)
    at = np.arange(rows.size) + group
    of = np.repeat(np.arange(groups), np.bincount(group, minlength=groups) + 1)
    begin = np.full(of.size, windows.start[0])
    end = np.full(of.size, windows.end[-1])
    before, after = np.full(of.size, NONE, np.int32), np.full(of.size, NONE, np.int32)
    begin[at + 1], before[at + 1] = reach, latest
    is_first = np.append(True, of[1:] != of[:-1])
    begin[is_first], before[is_first] = windows.start[0], NONE
    end[at], after[at] = device.start[rows], rows
    real = end > begin
    return of[real], begin[real], end[real], before[real], after[real]


@compiled
def _reached(end: Array, rows: Array, group: Array) -> tuple[Array, Array]:
    """Return up to when the rows of a group so far last, and the latest of them that lasts so long, for each row."""
    reach = np.empty(rows.size, np.int64)
    latest = np.empty(rows.size, np.int32)
    for i in range(rows.size):
        reach[i], latest[i] = end[rows[i]], rows[i]
        if i and group[i] == group[i - 1] and reach[i - 1] > reach[i]:
            reach[i], latest[i] = reach[i - 1], latest[i - 1]
    return reach, latest


def _causes(device: _Device, begin: Ints, end: Ints, before: Rows, after: Rows) -> NDArray[np.uint8]:
    """The index in CAUSES of why each gap lasted."""
    launched = gather(device.launched, after)
    is_last = (after == NONE) & (gather(device.launched, before) != NONE)  # calls are known, and no more came
    is_late = is_last | ((launched != NONE) & (launched >= begin))
    in_time = (launched != NONE) & ~is_late
    waited = gather(device.has_waited, after, missing=False) | _behind_another(device, end, after)
    chosen = np.select([is_late, in_time & (end - begin <= QUEUED_NS), in_time & waited], [0, 1, 2], default=3)
    return chosen.astype(np.uint8)


def _behind_another(device: _Device, end: Ints, after: Rows) -> NDArray[np.bool_]:
    """Whether a row of another stream than that of the row which ended the gap ended less than QUEUED_NS before it."""
    ended = np.sort(device.end)
    count = np.searchsorted(ended, end, "right") - np.searchsorted(ended, end - QUEUED_NS, "right")
    queue = gather(device.queue, after)
    own = _counted(device.queue, device.end, queue, end) - _counted(device.queue, device.end, queue, end - QUEUED_NS)
    behind: NDArray[np.bool_] = count > own
    return behind


def _counted(group: Rows, time: Ints, asked: Rows, until: Ints) -> NDArray[np.int64]:
    """How many of some events are of the group that is asked for, and not later than the instant beside it."""
    ordered = np.sort(time)
    width = time.size + 1
    keys = np.sort(group.astype(np.int64) * width + np.searchsorted(ordered, time, "left"))
    first = asked.astype(np.int64) * width
    count: NDArray[np.int64] = np.searchsorted(keys, first + np.searchsorted(ordered, until, "right"), "left")
    return count - np.searchsorted(keys, first, "left")


def _told_to_wait(trace: Trace, launched: Ints) -> NDArray[np.bool_]:
    """Whether each row's stream was told to wait for an event between the launch of the row before and its own."""
    waited = np.zeros(launched.size, bool)
    waits = trace.syncs.filter(pl.col("sync_kind").cast(pl.String) == "Stream Wait Event")
    if waits.is_empty():
        return waited
    places = pl.concat([frame.select("device", "stream") for frame in (trace.device_events, waits)])
    queue = _numbered(places, ["device", "stream"])
    own, waiting = queue[: launched.size], queue[launched.size :]
    rows = np.flatnonzero(launched != NONE)
    rows = rows[np.lexsort((rows, launched[rows], own[rows]))]
    so_far = _counted(waiting, waits["start_ns"].to_numpy(), own[rows], launched[rows])
    is_first = np.diff(own[rows], prepend=-1) != 0
    waited[rows] = np.where(is_first, so_far, np.diff(so_far, prepend=0)) > 0
    return waited


def launching_threads(trace: Trace) -> NDArray[np.bool_]:
    """Which threads launched any device row."""
    launching = np.zeros(trace.threads.height, bool)
    rows = trace.device_events["launch"].to_numpy()
    launching[trace.launches["thread"].to_numpy()[rows[rows != NONE]]] = True
    return launching


def host_activities(trace: Trace) -> dict[str, Intervals]:
    """When the threads that launch device work do each of OCCUPANTS but the last, overlaps included.

    Only outermost ranges and frames are looked at: they cover what is in them.
    """
    launching = launching_threads(trace)
    host, launches, python = trace.host_events, trace.launches, trace.python_calls
    on_host = launching[host["thread"].to_numpy()]
    on_calls = launching[launches["thread"].to_numpy()]
    loads = map_categories(host["name"], is_data_loading)
    is_op = (host["kind"] == "operator").to_numpy()
    ranges = ~loads & ~map_categories(host["name"], lambda name: step_number(name) is not None)
    inner = gather(is_op & ranges, host["parent"].to_numpy(), missing=False)
    within = gather(ranges, host["parent"].to_numpy(), missing=False)
    waits = map_categories(launches["name"], synchronises)
    outermost = launching[python["thread"].to_numpy()] & (python["parent"].to_numpy() == NONE)
    return {
        "data loading": intervals_of(host, on_host & loads),
        "synchronising": intervals_of(launches, on_calls & waits),
        "runtime call": intervals_of(launches, on_calls & ~waits),
        "operator": intervals_of(host, on_host & is_op & ranges & ~inner),
        "annotation": intervals_of(host, on_host & ~is_op & ranges & ~within),
        "python": intervals_of(python, outermost),
    }


def host_activity(trace: Trace, gaps: pl.DataFrame) -> dict[str, Ints]:
    """How long the host did each of OCCUPANTS during each gap; each instant counts for the first that applies."""
    active = host_activities(trace)
    groups = [active[name] for name in HOST_ACTIVITIES[:-1]]
    lengths = exclusive_lengths(groups, gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy())
    return dict(zip(HOST_ACTIVITIES, map(np.asarray, lengths), strict=True))
