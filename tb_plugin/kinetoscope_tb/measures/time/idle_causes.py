"""Why a device was idle, instant by instant: each gap is split into parts, each with one cause.

A row is queued from the start of the call that launches it to its own start. So the time between two rows has two
parts: up to the first launch of a row that starts later nothing is queued, from then on something is.

Nothing is queued:
* host late: the device had run everything that was launched.
* not shown: the device may have been busy with what isn't recorded. Before the first row of the group (or the first
  after rows whose launch isn't recorded) if that row began late, behind something; around rows whose launch isn't
  recorded; and while all launching threads wait for the device though nothing runs on it.

Something is queued, and each instant belongs to the first of these that applies:
* launch latency: the call hasn't returned, or began within the last QUEUED_NS; or no more than QUEUED_NS in all.
* dependency: the row that ends the gap comes from a graph and waited for a row of another stream, as recorded; its
  stream waits for an event; a row of another stream ended less than QUEUED_NS before it began; or a CPU callback of a
  graph (host node) held up a stream of the device.
* blocked copy: the host is in a copy or a synchronizing call.
* graph launch: the row comes from a graph, and the call that launches the graph hasn't returned.
* unexplained: nothing recorded says what it waits for.

What the host did during a gap is not why it lasted: a queue may run dry long after the call that held the host up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, Ints, length_within, merge, union
from ...arrays.native import Array, Function
from ...names.calls import launches_graph, may_wait
from ...trace.graph_edges import graph_edges, host_nodes
from ...trace.model import Trace
from ...trace.results import once_per_recording
from ...trace.row_filters import device_ends
from ..recording.lost_launches import are_launches_known, is_work_missing
from . import idle
from .host_activity import all_wait, blocking_calls
from .idle import (
    Axis,
    Rows,
    WholeGaps,
    Windows,
    devices_and_streams,
    finest_alike,
    number_rows,
    queue_numbers,
    whole_gaps,
)

_behind_another = Function("behind_another")
_first_launched = Function("first_launched")
_gap_causes = Function("gap_causes")
_gap_of_piece = Function("gap_of_piece")

_PARTS_PER_GAP = 2  # room for them at first

NOT_SHOWN = "not shown"
"""The cause of such time."""
NOT_RECORDED = "Launch or work not recorded"
"""What everyone calls it: the device's work then, or the call that launched the work around it, isn't recorded."""
NOT_IN_RECORDING = "not in the recording"
"""What sentences call a part of the time with that cause."""

SLOW_LAUNCH_NS = 200_000
"""A launch takes 5 to 20 µs: a latency that lasts longer is a call that doesn't return."""

_NOTICEABLE = 0.05

CAUSE_WORDS = {
    "host late": "Host late",
    "launch latency": "Launch latency",
    "dependency": "Waiting for another stream",
    "blocked copy": "Blocked in a copy or sync",
    "graph launch": "Graph launch",
    NOT_SHOWN: NOT_RECORDED,
    "unexplained": "Unexplained",
}
"""What people call each cause."""
CAUSES = tuple(CAUSE_WORDS)
_CAUSE = pl.Enum(CAUSES)

PARTS: dict[str, type[pl.DataType] | pl.DataType] = {
    "device": pl.Int32,  # as in GAPS
    "stream": pl.Int64,
    "gap": pl.Int32,
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "cause": _CAUSE,
    "window": pl.Int32,
}
"""One row is one part of a gap with one cause, in one window. Order: gap, start."""


def gap_parts(trace: Trace, axis: Axis, windows: Windows) -> pl.DataFrame:
    """Return the parts (PARTS) of the gaps in the windows; those of a gap add up to it in each window."""
    if trace.device_events.is_empty():
        return pl.DataFrame(schema=PARTS)
    uncut = _uncut_parts(trace, finest_alike(trace, axis), windows.start[0], windows.end[-1], idle.QUEUED_NS)
    device, stream = devices_and_streams(trace, axis)
    piece, begins, ends, window = windows.cut(uncut.start, uncut.end)
    of = uncut.group[piece]
    why = pl.Series(uncut.cause[piece]).cat.to(_CAUSE)
    columns = (device[of], stream[of], uncut.gap[piece], begins, ends, why, window)
    return pl.DataFrame(dict(zip(PARTS, columns, strict=True)), schema_overrides=PARTS)


class _UncutParts(NamedTuple):
    """The parts of the gaps of all groups of an axis, not yet cut to windows.

    Attributes:
        group: The number of the group of each part.
        gap: The number of its gap.
        start: When it begins.
        end: When it ends.
        cause: The number of its cause.
    """

    group: Rows
    gap: Rows
    start: Ints
    end: Ints
    cause: NDArray[np.uint8]


@once_per_recording
def _uncut_parts(trace: Trace, axis: Axis, begin: int, end: int, _queued_ns: int) -> _UncutParts:
    """The parts between two instants, computed once for all views; tests vary QUEUED_NS."""
    span = Windows(["all"], np.array([begin]), np.array([end]))
    whole = whole_gaps(trace, axis, span, with_empty=True)
    parents = whole_gaps(trace, axis, span)
    parent = _parents(whole.group, whole.begin, parents.group, parents.end, end)
    gap, start, stop, cause = _parts(trace, whole)
    return _UncutParts(whole.group[gap], parent[gap], start, stop, cause)


def split_gaps_of_devices(trace: Trace) -> None:
    """Compute the parts by device, which most views begin with."""
    if not trace.device_events.is_empty():
        span = Windows.of(trace, per_step=False)
        _uncut_parts(trace, finest_alike(trace, "device"), span.start[0], span.end[-1], idle.QUEUED_NS)


def _parents(group: Array, begin: Array, parent_group: Array, parent_end: Array, until: int) -> Array:
    """Return in which gap each piece of a gap lies; both come sorted by group, then by time.

    Pieces that begin at `until` or later, between rows without a duration behind the last window, lie in none.
    """
    parents = np.full(begin.size, NONE, np.int32)
    _gap_of_piece(group, begin, parent_group, parent_end, until, parents)
    return parents


def _parts(trace: Trace, whole: WholeGaps) -> tuple[Rows, Ints, Ints, NDArray[np.uint8]]:
    """The parts of the gaps: the gap, the begin, the end and the number of the cause of each, in order."""
    start, launch = (trace.device_events[name].to_numpy() for name in ("start_ns", "launch"))
    calls = tuple(trace.launches[name].to_numpy() for name in ("start_ns", "dur_ns"))
    kinds = tuple(map_categories(trace.launches["name"], answer) for answer in (launches_graph, may_wait))
    first = np.empty(whole.begin.size, np.int32)
    _first_launched(start, launch, calls[0], whole.rows, whole.first, whole.group, whole.begin, first)
    gaps = (whole.begin, whole.end, whole.group, whole.before, whole.after, first, _depends(trace, whole))
    spans = (*all_wait(trace, idle.QUEUED_NS), *blocking_calls(trace), *_callbacks(trace, whole.device))
    room = _PARTS_PER_GAP * whole.begin.size
    while True:
        gap, cause, times = np.empty(room, np.int32), np.empty(room, np.uint8), np.empty((2, room), np.int64)
        size = _gap_causes(gaps, launch, calls, kinds, spans, idle.QUEUED_NS, gap, *times, cause)
        if size <= room:
            return gap[:size], times[0, :size].copy(), times[1, :size].copy(), cause[:size].copy()
        room = size


def _depends(trace: Trace, whole: WholeGaps) -> NDArray[np.bool_]:
    """Whether the row that ended each gap waited for a row of another stream, or ended shortly after one."""
    end, queue = device_ends(trace), queue_numbers(trace)
    order = np.argsort(end, kind="stable")
    is_behind: NDArray[np.bool_] = np.empty(whole.end.size, bool)
    last = np.empty(end.size, np.int32)
    gap_queue = gather(queue, whole.after)
    _behind_another(end[order], queue[order], whole.end, gap_queue, idle.QUEUED_NS, last, is_behind)
    waits = _has_event_wait(trace) | _has_recorded_edge(trace, queue)
    is_behind |= gather(waits, whole.after, missing=False)
    return is_behind


def _has_recorded_edge(trace: Trace, queue: Rows) -> NDArray[np.bool_]:
    """Whether each row waited for a row of another stream, according to its graph's recorded dependencies."""
    after, before = graph_edges(trace).between_rows()
    has_edge = np.zeros(queue.size, bool)
    has_edge[after[queue[after] != queue[before]]] = True
    return has_edge


def _callbacks(trace: Trace, devices: Rows) -> tuple[Ints, Ints, NDArray[np.int64]]:
    """When CPU callbacks of graphs ran on the device of each group, or on any; and where those of each group begin."""
    callbacks = host_nodes(trace).drop_nulls("device")
    first, spans = [0], [merge([])]
    for device in devices.tolist():
        rows = callbacks.filter((pl.col("device") == device) | (device == NONE))
        spans.append(union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()))
        first.append(first[-1] + spans[-1][0].size)
    start, end = map(np.concatenate, zip(*spans, strict=True))
    return start, end, np.array(first)


def _count_until(group: Rows, time: Ints, queries: Rows, until: Ints) -> NDArray[np.int64]:
    """How many events are of the group of each query, and not later than its instant."""
    times = np.sort(time)
    width = time.size + 1
    keys = np.sort(group.astype(np.int64) * width + np.searchsorted(times, time, "left"))
    first = queries.astype(np.int64) * width
    count: NDArray[np.int64] = np.searchsorted(keys, first + np.searchsorted(times, until, "right"), "left")
    return count - np.searchsorted(keys, first, "left")


def _has_event_wait(trace: Trace) -> NDArray[np.bool_]:
    """Whether each row's stream was made to wait for an event between the launch of the row before and its own."""
    has_wait = np.zeros(trace.device_events.height, bool)
    waits = trace.syncs.filter(pl.col("sync_kind").cast(pl.String) == "Stream Wait Event")
    if waits.is_empty():
        return has_wait
    launch_ns = gather(trace.launches["start_ns"].to_numpy(), trace.device_events["launch"].to_numpy())
    queues = pl.concat([frame.select("device", "stream") for frame in (trace.device_events, waits)])
    queue = number_rows(queues, ["device", "stream"])
    own, wait_queue = queue[: launch_ns.size], queue[launch_ns.size :]
    rows = np.flatnonzero(launch_ns != NONE)
    rows = rows[np.lexsort((rows, launch_ns[rows], own[rows]))]
    so_far = _count_until(wait_queue, waits["start_ns"].to_numpy(), own[rows], launch_ns[rows])
    is_first = np.diff(own[rows], prepend=-1) != 0
    has_wait[rows] = np.where(is_first, so_far, np.diff(so_far, prepend=0)) > 0
    return has_wait


def matters(hidden_ns: int, whole_ns: int) -> bool:
    """Whether so much of a time isn't in the recording that it changes what is said of all of it."""
    return hidden_ns > _NOTICEABLE * whole_ns


def not_shown(trace: Trace, device: int = NONE) -> Intervals:
    """When a device may have run what isn't in the recording; NONE: any, while none runs what is.

    It is the time whose cause is `not shown`. Of a part of a trace it is what all of it shows: a part begins amid work
    that the trace has.
    """
    return _hidden_by_device(trace.whole).get(device, merge([]))


def not_shown_times(trace: Trace, start: Ints, end: Ints, device: int = NONE) -> Ints:
    """How much of that lies in each window."""
    lengths: Ints = np.asarray(length_within(not_shown(trace, device), start, end))
    return lengths


def hidden_work(trace: Trace, device: int) -> Intervals:
    """When it isn't known whether a device was busy: that time, unless all that isn't recorded is what launched work.

    Then the work itself is all there, and the device was idle between it, for whatever reason.
    """
    lacks_only_launches = not are_launches_known(trace.whole) and not is_work_missing(trace.whole)
    return merge([]) if lacks_only_launches else not_shown(trace, device)


@once_per_recording
def _hidden_by_device(trace: Trace) -> dict[int, Intervals]:
    """The times of each device, and of all together as those of NONE; from the first step's start to the last's end."""
    axes: tuple[Axis, ...] = ("worker", "device")
    parts = pl.concat([gap_parts(trace, axis, Windows.of(trace, per_step=False)) for axis in axes])
    spans = parts.filter(pl.col("cause") == NOT_SHOWN).partition_by("device", as_dict=True)
    return {
        int(device): union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()) for (device,), rows in spans.items()
    }
