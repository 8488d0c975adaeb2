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

from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather, map_categories
from ...arrays.intervals import Intervals, Ints, cut, merge
from ...arrays.native import Array, Function
from ...names.calls import launches_graph, may_wait
from ...trace.graph_edges import graph_edges, host_nodes
from ...trace.memo import once_per_trace
from ...trace.model import Trace
from . import idle
from .host_activity import all_wait, blocking_calls
from .idle import Axis, Rows, WholeGaps, Windows, finest_alike, numbered, places, whole_gaps

_gap_of_piece = Function("gap_of_piece")
_find_earliest_launch = Function("earliest_launch")

CAUSES = (
    "host late",
    "launch latency",
    "dependency",
    "blocked copy",
    "graph launch",
    "not shown",
    "unexplained",
)
_LATE, _LATENCY, _DEPENDENCY, _BLOCKED, _GRAPH, _NOT_SHOWN, _UNEXPLAINED = range(len(CAUSES))
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


class _Launches(NamedTuple):
    """What is recorded of the launch of each device row.

    Attributes:
        start: When the call that launched the row began; NONE if no call is recorded.
        end: When that call returned; NONE as well.
        submitted: The same if the call does no more than submit work: it launches no graph and can't block.
        is_graph: Whether the call launched a graph.
        queue: A number for each pair of device and stream.
        has_event_wait: Whether its stream was made to wait for an event after the launch of the row before.
    """

    start: Ints
    end: Ints
    submitted: Ints
    is_graph: NDArray[np.bool_]
    queue: Rows
    has_event_wait: NDArray[np.bool_]

    @classmethod
    def of(cls, trace: Trace) -> _Launches:
        launch = trace.device_events["launch"].to_numpy()
        begins, dur = (trace.launches[name].to_numpy() for name in ("start_ns", "dur_ns"))
        graphs, blocks = (map_categories(trace.launches["name"], answer) for answer in (launches_graph, may_wait))
        start = gather(begins, launch)
        queue = numbered(trace.device_events, ["device", "stream"])
        is_graph, may_block = (gather(is_so, launch, missing=False) for is_so in (graphs, blocks))
        end = gather(begins + dur, launch)
        submitted = np.where(is_graph | may_block, start, end)
        return cls(start, end, submitted, is_graph, queue, _has_event_wait(trace, start))


_launches = once_per_trace(_Launches.of)


class _Pieces(NamedTuple):
    """Pieces of gaps: the gap, the begin and the end of each."""

    gap: NDArray[np.int64]
    start: Ints
    end: Ints

    def where(self, is_so: NDArray[np.bool_]) -> _Pieces:
        return _Pieces(*(column[is_so] for column in self))

    def split(self, spans: Intervals) -> tuple[_Pieces, _Pieces]:
        """Return what lies within some intervals, and what doesn't."""
        piece, start, end, span = cut(self.start, self.end, spans)
        pieces = _Pieces(self.gap[piece], start, end)
        return pieces.where(span != NONE), pieces.where(span == NONE)


def gap_parts(trace: Trace, axis: Axis, windows: Windows) -> pl.DataFrame:
    """Return the parts (PARTS) of the gaps in the windows; those of a gap add up to it in each window."""
    if trace.device_events.is_empty():
        return pl.DataFrame(schema=PARTS)
    uncut = _uncut_parts(trace, finest_alike(trace, axis), windows.start[0], windows.end[-1], idle.QUEUED_NS)
    device, stream = places(trace, axis)
    piece, begins, ends, window = windows.cut(uncut.start, uncut.end)
    of = uncut.group[piece]
    why = pl.Series(CAUSES, dtype=_CAUSE).gather(uncut.cause[piece])
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

    group: NDArray[np.int64]
    gap: NDArray[np.int64]
    start: Ints
    end: Ints
    cause: NDArray[np.uint8]


@once_per_trace
def _uncut_parts(trace: Trace, axis: Axis, begin: int, end: int, _queued_ns: int) -> _UncutParts:
    """The parts between two instants, computed once for all views; tests vary QUEUED_NS."""
    span = Windows(["all"], np.array([begin]), np.array([end]))
    whole = whole_gaps(trace, axis, span, with_empty=True)
    parents = whole_gaps(trace, axis, span)
    parent = _parents(whole.group, whole.begin, parents.group, parents.end, end)
    parts, causes = _joined(*_parts(trace, whole))
    return _UncutParts(whole.group[parts.gap], parent[parts.gap], parts.start, parts.end, causes)


@dataclass(frozen=True)
class SharedParts:
    """The parts of gaps that views of a trace share; `gap_parts` finds them by the trace.

    Args:
        held_bytes: Memory of those of all axes.
    """

    held_bytes: int

    @classmethod
    def of(cls, trace: Trace) -> SharedParts:
        """Compute the parts by device, which most views need; for other axes they take as much memory."""
        if trace.device_events.is_empty():
            return cls(0)
        span = Windows.of(trace, each=False)
        alike = {finest_alike(trace, axis) for axis in get_args(Axis)}
        parts = _uncut_parts(trace, finest_alike(trace, "device"), span.start[0], span.end[-1], idle.QUEUED_NS)
        return cls(len(alike) * sum(column.nbytes for column in parts))


def _parents(group: Array, begin: Array, parent_group: Array, parent_end: Array, until: int) -> Array:
    """Return in which gap each piece of a gap lies; both come sorted by group, then by time.

    Pieces that begin at `until` or later, between rows without a duration behind the last window, lie in none.
    """
    parents = np.full(begin.size, NONE, np.int64)
    _gap_of_piece(group, begin, parent_group, parent_end, until, parents)
    return parents


def _parts(trace: Trace, whole: WholeGaps) -> tuple[_Pieces, NDArray[np.uint8]]:
    """The parts of the gaps, and the number of each one's cause."""
    launches = _launches(trace)
    first = _first_launched(trace, launches, whole)
    queued = np.where(first == NONE, whole.end, gather(launches.start, first))
    answered = np.maximum(queued, gather(launches.submitted, first)) + idle.QUEUED_NS
    queued, answered = (np.clip(time, whole.begin, whole.end) for time in (queued, answered))
    hidden = _is_hidden(launches, whole)
    every = _Pieces(np.arange(whole.begin.size), whole.begin, whole.end)
    not_shown, recorded = every.where(hidden), every.where(~hidden)
    empty = recorded._replace(end=queued[recorded.gap])
    waiting, late = _while_all_wait(trace, whole, empty)
    causes = [(not_shown, _NOT_SHOWN), (waiting, _NOT_SHOWN), (late, _LATE)]
    causes += _while_queued(trace, launches, whole, (queued, answered), recorded)
    parts = [(pieces.where(pieces.end > pieces.start), cause) for pieces, cause in causes]
    number = np.concatenate([np.full(pieces.gap.size, cause, np.uint8) for pieces, cause in parts])
    columns = zip(*(pieces for pieces, _ in parts), strict=True)
    return _Pieces(*(np.concatenate(column) for column in columns)), number


def _joined(parts: _Pieces, causes: NDArray[np.uint8]) -> tuple[_Pieces, NDArray[np.uint8]]:
    """The same parts in order, with those joined that follow each other and have the same cause."""
    order = np.lexsort((parts.start, parts.gap))
    gap, start, end = (column[order] for column in parts)
    causes = causes[order]
    is_first = np.ones(gap.size, bool)
    is_first[1:] = (np.diff(gap) != 0) | (np.diff(causes.astype(np.int8)) != 0)
    is_last = np.ones(gap.size, bool)
    is_last[:-1] = is_first[1:]
    return _Pieces(gap[is_first], start[is_first], end[is_last]), causes[is_first]


def _first_launched(trace: Trace, launches: _Launches, whole: WholeGaps) -> Rows:
    """The row that was launched first of those that start after each gap began; NONE if no launch is recorded."""
    start, rows = trace.device_events["start_ns"].to_numpy(), whole.rows
    first = _earliest_launch(start[rows], launches.start[rows], whole.row_group, whole.group, whole.begin)
    return gather(rows, first)


def _earliest_launch(start: Array, launched: Array, row_group: Array, gap_group: Array, begin: Array) -> Array:
    """Return the place of the row that was launched first, of a gap's group, that starts after the gap began; or -1.

    Rows and gaps come sorted by group, then by time: a sweep from the last to the first.
    """
    first = np.empty(begin.size, np.int32)
    _find_earliest_launch(start, launched, row_group, gap_group, begin, first)
    return first


def _is_hidden(launches: _Launches, whole: WholeGaps) -> NDArray[np.bool_]:
    """Whether the device may have been busy in a gap with work that the recording doesn't hold."""
    is_open = gather(launches.start, whole.before) == NONE  # nothing before, or work with an unknown launch
    returned = np.maximum(gather(launches.end, whole.after), whole.begin)
    is_behind = is_open & (whole.end > returned + idle.QUEUED_NS)
    is_unknown = gather(launches.start, whole.after) == NONE
    hidden: NDArray[np.bool_] = np.where(whole.after == NONE, is_open, is_unknown | is_behind)
    return hidden


def _while_all_wait(trace: Trace, whole: WholeGaps, empty: _Pieces) -> tuple[_Pieces, _Pieces]:
    """The instants of an empty queue at which all threads wait for a device that runs nothing, and the other ones.

    A call returns a moment after what it waited for: QUEUED_NS from the start of the gap on don't count.
    """
    grace = _Pieces(empty.gap, empty.start, np.minimum(empty.end, whole.begin[empty.gap] + idle.QUEUED_NS))
    later = empty._replace(start=np.maximum(grace.end, empty.start))
    waiting, working = later.where(later.end > later.start).split(all_wait(trace, idle.QUEUED_NS))
    grace = grace.where(grace.end > grace.start)
    return waiting, _Pieces(*map(np.concatenate, zip(grace, working, strict=True)))


def _while_queued(
    trace: Trace, launches: _Launches, whole: WholeGaps, times: tuple[Ints, Ints], recorded: _Pieces
) -> list[tuple[_Pieces, int]]:
    """The causes of the parts of gaps in which something is queued, from the first of `times` on.

    The second one is when a device may be expected to have begun.
    """
    queued, answered = (time[recorded.gap] for time in times)
    begun = np.where(recorded.end - queued <= idle.QUEUED_NS, recorded.end, answered)
    latency, rest = recorded._replace(start=queued, end=begun), recorded._replace(start=begun)
    rest = rest.where(rest.end > rest.start)
    after = whole.after[rest.gap]
    depends = gather(launches.has_event_wait, after, missing=False) | _behind_another(trace, launches, rest.end, after)
    depends |= gather(_has_recorded_edge(trace, launches), after, missing=False)
    dependency, rest = rest.where(depends), rest.where(~depends)
    callback, rest = _while_callback_runs(trace, whole, rest)
    blocked, rest = rest.split(blocking_calls(trace))
    after = whole.after[rest.gap]
    returned = np.where(gather(launches.is_graph, after, missing=False), gather(launches.end, after), rest.start)
    returned = np.clip(returned, rest.start, rest.end)
    graph, rest = rest._replace(end=returned), rest._replace(start=returned)
    numbers = (_LATENCY, _DEPENDENCY, _DEPENDENCY, _BLOCKED, _GRAPH, _UNEXPLAINED)
    return list(zip((latency, dependency, callback, blocked, graph, rest), numbers, strict=True))


def _has_recorded_edge(trace: Trace, launches: _Launches) -> NDArray[np.bool_]:
    """Whether each row waited for a row of another stream, according to its graph's recorded dependencies."""
    after, before = graph_edges(trace).between_rows()
    has_edge = np.zeros(launches.queue.size, bool)
    has_edge[after[launches.queue[after] != launches.queue[before]]] = True
    return has_edge


def _while_callback_runs(trace: Trace, whole: WholeGaps, pieces: _Pieces) -> tuple[_Pieces, _Pieces]:
    """The instants at which a CPU callback of a graph of the same device ran, and the other ones."""
    callbacks = host_nodes(trace)
    device, ran, rest = whole.device[whole.group[pieces.gap]], [], pieces
    for number in np.unique(callbacks["device"].to_numpy()):
        rows = callbacks.filter(pl.col("device") == number)
        same = np.isin(device, (number, NONE))
        inside, outside = rest.where(same).split(merge([(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())]))
        ran.append(inside)
        rest = _Pieces(*map(np.concatenate, zip(outside, rest.where(~same), strict=True)))
        device = whole.device[whole.group[rest.gap]]
    none = pieces.where(np.zeros(pieces.gap.size, bool))
    return _Pieces(*map(np.concatenate, zip(none, *ran, strict=True))), rest


def _behind_another(trace: Trace, launches: _Launches, end: Ints, after: Rows) -> NDArray[np.bool_]:
    """Whether a row of another stream than that of the row which ended the gap ended less than QUEUED_NS before it."""
    device = trace.device_events
    ends = device["start_ns"].to_numpy() + device["dur_ns"].to_numpy()
    ordered = np.sort(ends)
    count = np.searchsorted(ordered, end, "right") - np.searchsorted(ordered, end - idle.QUEUED_NS, "right")
    queue = gather(launches.queue, after)
    own = _count_until(launches.queue, ends, queue, end)
    own -= _count_until(launches.queue, ends, queue, end - idle.QUEUED_NS)
    behind: NDArray[np.bool_] = count > own
    return behind


def _count_until(group: Rows, time: Ints, queries: Rows, until: Ints) -> NDArray[np.int64]:
    """How many events are of the group of each query, and not later than its instant."""
    ordered = np.sort(time)
    width = time.size + 1
    keys = np.sort(group.astype(np.int64) * width + np.searchsorted(ordered, time, "left"))
    first = queries.astype(np.int64) * width
    count: NDArray[np.int64] = np.searchsorted(keys, first + np.searchsorted(ordered, until, "right"), "left")
    return count - np.searchsorted(keys, first, "left")


def _has_event_wait(trace: Trace, launched: Ints) -> NDArray[np.bool_]:
    """Whether each row's stream was made to wait for an event between the launch of the row before and its own."""
    has_wait = np.zeros(launched.size, bool)
    waits = trace.syncs.filter(pl.col("sync_kind").cast(pl.String) == "Stream Wait Event")
    if waits.is_empty():
        return has_wait
    places = pl.concat([frame.select("device", "stream") for frame in (trace.device_events, waits)])
    queue = numbered(places, ["device", "stream"])
    own, waiting = queue[: launched.size], queue[launched.size :]
    rows = np.flatnonzero(launched != NONE)
    rows = rows[np.lexsort((rows, launched[rows], own[rows]))]
    so_far = _count_until(waiting, waits["start_ns"].to_numpy(), own[rows], launched[rows])
    is_first = np.diff(own[rows], prepend=-1) != 0
    has_wait[rows] = np.where(is_first, so_far, np.diff(so_far, prepend=0)) > 0
    return has_wait
