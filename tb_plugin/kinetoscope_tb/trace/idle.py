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

from ..call_names import synchronises
from ..intervals import Intervals, Ints, exclusive_lengths
from ..kernel_names import is_data_loading, step_number
from .breakdown import intervals_of
from .lookup import by_name, take
from .model import NONE, Trace

Rows = NDArray[np.int32]
Axis = Literal["stream", "device", "worker"]

QUEUED_NS = 20_000
"""Rows that were queued begin within 5 µs of each other on NVIDIA's devices and within 20 µs on AMD's (90 % and more of
those in the traces at hand)."""

_NAMES: dict[Axis, list[str]] = {"stream": ["device", "stream"], "device": ["device"], "worker": []}

CAUSES = ("host late", "launch latency", "dependency", "other")
OCCUPANTS = ("data loading", "synchronising", "runtime call", "operator", "annotation", "python", "nothing recorded")

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
        launched = take(trace.launches["start_ns"].to_numpy(), rows["launch"].to_numpy())
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
        inside = (window >= 0) & (begins < take(self.end, window)) & (ends > begins)
        return piece[inside], begins[inside], ends[inside], window[inside]


def axes(trace: Trace, axis: Axis) -> list[tuple[int, int, Rows]]:
    """Return (device, stream, rows of device_events) per stream, per device or once; NONE stands for all of them."""
    device = trace.device_events
    names = _NAMES[axis]
    number = _numbered(device, names)
    order = np.argsort(number, kind="stable").astype(np.int32)
    groups = np.split(order, np.flatnonzero(np.diff(number[order])) + 1) if order.size else []
    first = device.select(*_NAMES["stream"])
    keys = [{"device": NONE, "stream": NONE} | {n: first[n][int(rows[0])] for n in names} for rows in groups]
    return [(key["device"], key["stream"], rows) for key, rows in zip(keys, groups, strict=True)]


def _numbered(device: pl.DataFrame, names: list[str]) -> Rows:
    """A number for each row of device_events; rows that are alike in the columns `names` have the same one."""
    number = np.zeros(device.height, np.int64)
    for name in names:
        rank = device[name].rank("dense").to_numpy().astype(np.int64)
        number = number * (int(rank.max(initial=0)) + 1) + rank
    return number.astype(np.int32)


def gaps(trace: Trace, axis: Axis, windows: Windows) -> pl.DataFrame:
    """Return the gaps (GAPS) in the windows, per stream, per device or of the whole worker."""
    device = _Device.of(trace)
    found = [_gaps_of(device, windows, *group) for group in axes(trace, axis)]
    return pl.concat(found) if found else pl.DataFrame(schema=GAPS)


def _gaps_of(device: _Device, windows: Windows, index: int, stream: int, rows: Rows) -> pl.DataFrame:
    rows = rows[device.end[rows] > device.start[rows]]
    reach = np.maximum.accumulate(device.end[rows])
    latest = np.maximum.accumulate(np.where(device.end[rows] == reach, np.arange(rows.size), 0))
    begin = np.concatenate([windows.start[:1], reach])
    end = np.concatenate([device.start[rows], [max(int(windows.end[-1]), int(begin[-1]))]])
    before = np.concatenate([[NONE], rows[latest]]).astype(np.int32)
    after = np.concatenate([rows, [NONE]]).astype(np.int32)
    real = end > begin
    begin, end, before, after = begin[real], end[real], before[real], after[real]
    gap, start, stop, window = windows.cut(begin, end)
    why = pl.Series(CAUSES, dtype=_CAUSE).gather(_causes(device, begin, end, before, after)[gap])
    of = (np.full(gap.size, index), np.full(gap.size, stream))
    columns = (*of, start, stop, why, before[gap], after[gap], window)
    return pl.DataFrame(dict(zip(GAPS, columns, strict=True)), schema_overrides=GAPS)


def _causes(device: _Device, begin: Ints, end: Ints, before: Rows, after: Rows) -> NDArray[np.uint8]:
    """The index in CAUSES of why each gap lasted."""
    launched = take(device.launched, after)
    is_last = (after == NONE) & (take(device.launched, before) != NONE)  # calls are known, and no more came
    is_late = is_last | ((launched != NONE) & (launched >= begin))
    in_time = (launched != NONE) & ~is_late
    waited = take(device.has_waited, after, missing=False) | _behind_another(device, end, after)
    chosen = np.select([is_late, in_time & (end - begin <= QUEUED_NS), in_time & waited], [0, 1, 2], default=3)
    return chosen.astype(np.uint8)


def _behind_another(device: _Device, end: Ints, after: Rows) -> NDArray[np.bool_]:
    """Whether a row of another stream than that of the row which ended the gap ended less than QUEUED_NS before it."""
    ended = np.sort(device.end)
    count = np.searchsorted(ended, end, "right") - np.searchsorted(ended, end - QUEUED_NS, "right")
    queue = take(device.queue, after)
    for own in np.unique(queue):
        these = queue == own
        ended = np.sort(device.end[device.queue == own])
        until = np.searchsorted(ended, end[these], "right") - np.searchsorted(ended, end[these] - QUEUED_NS, "right")
        count[these] -= until
    behind: NDArray[np.bool_] = count > 0
    return behind


def _told_to_wait(trace: Trace, launched: Ints) -> NDArray[np.bool_]:
    """Whether each row's stream was told to wait for an event between the launch of the row before and its own."""
    waited = np.zeros(launched.size, bool)
    waits = trace.syncs.filter(pl.col("sync_kind").cast(pl.String) == "Stream Wait Event")
    if waits.is_empty():
        return waited
    rows = trace.device_events.select("device", "stream", at=pl.Series(launched)).with_row_index("row")
    for key, part in rows.filter(pl.col("at") != NONE).sort("at", "row").group_by("device", "stream"):
        told = waits.filter((pl.col("device") == key[0]) & (pl.col("stream") == key[1]))["start_ns"].sort().to_numpy()
        so_far = np.searchsorted(told, part["at"].to_numpy(), "right")
        waited[part["row"].to_numpy()] = np.diff(so_far, prepend=0) > 0
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
    loads = by_name(host["name"], is_data_loading)
    is_op = (host["kind"] == "operator").to_numpy()
    ranges = ~loads & ~by_name(host["name"], lambda name: step_number(name) is not None)
    inner = take(is_op & ranges, host["parent"].to_numpy(), missing=False)
    within = take(ranges, host["parent"].to_numpy(), missing=False)
    waits = by_name(launches["name"], synchronises)
    outermost = launching[python["thread"].to_numpy()] & (python["parent"].to_numpy() == NONE)
    return {
        "data loading": intervals_of(host, on_host & loads),
        "synchronising": intervals_of(launches, on_calls & waits),
        "runtime call": intervals_of(launches, on_calls & ~waits),
        "operator": intervals_of(host, on_host & is_op & ranges & ~inner),
        "annotation": intervals_of(host, on_host & ~is_op & ranges & ~within),
        "python": intervals_of(python, outermost),
    }


def occupants(trace: Trace, gaps: pl.DataFrame) -> dict[str, Ints]:
    """How long the host did each of OCCUPANTS during each gap; each instant counts for the first that applies."""
    active = host_activities(trace)
    groups = [active[name] for name in OCCUPANTS[:-1]]
    lengths = exclusive_lengths(groups, gaps["start_ns"].to_numpy(), gaps["end_ns"].to_numpy())
    return dict(zip(OCCUPANTS, map(np.asarray, lengths), strict=True))
