"""The graph of a trace: its instants, what each waits for, and the delays in between.

Nodes are the boundaries of the host's threads, and the starts and ends of the device's rows and of the steps. A node
happens its own delay after the last of its predecessors:

    time(node) = max(time(predecessor) + lag over all edges to the node) + own(node)

The own delays are chosen so that this gives the recorded times exactly. Replacing delays gives the times that would
follow from them. A node without predecessors stays at its recorded time.

A row on an empty stream begins LAUNCH's lag after its launch, a queued row begins STREAM's lag after the previous row;
both lags are the medians of this trace, at most QUEUED_NS. The rest of a row's delay is its own. A row that began
before its launching call returned (CALL) could not begin earlier: all of its delay is lag. A row that begins while the
previous one on its stream runs (OVERLAP) waited for that row's work; if it was ready before, all of its delay is lag.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.native import Array, Function
from ..measures.time.idle import QUEUED_NS
from ..measures.time.step_subset import has_steps
from ..measures.time.threads import main_thread
from ..trace import Trace
from ..trace.graph_edges import graph_edges
from .boundaries import HostBoundaries
from .edges import IN_CALLS, Edges, Kind
from .nodes import Nodes
from .stream_edges import (
    coincidence_edges,
    event_edges,
    launch_boundaries,
    overlapped_rows,
    stream_order,
    wait_call_edges,
)
from .streams import Streams
from .sync_edges import sync_edges
from .thread_edges import busy_ranges, fork_edges, join_edges

_find_driving_edges = Function("driving_edges")
_find_latest_arrivals = Function("latest_arrivals")
_group_edges = Function("group_edges")

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).min // 2
_BY_LAUNCH = (Kind.LAUNCH, Kind.CALL, Kind.COPY_CALL)
_TYPICAL = (  # kind with a median lag (of rows that wait for no event), competing kinds, how long these must be over
    (Kind.LAUNCH, (Kind.STREAM,), 0),
    (Kind.COPY_CALL, (Kind.STREAM,), 0),
    (Kind.STREAM, _BY_LAUNCH, QUEUED_NS),
)


@dataclass(frozen=True)
class Graph:
    """Nodes and edges, in compressed sparse row format.

    Attributes:
        nodes: The instants.
        first: For each node its first edge in `predecessor`, `lag` and `kind`, and the number of edges at the end.
        predecessor: The node that each edge comes from; likewise `lag`, its least duration, and `kind`, its Kind.
        driving_edge: For each node the edge that it waited for longest, or NONE; of equals the one whose predecessor is
            later.
        own: Each node's own delay.
    """

    nodes: Nodes
    first: Rows
    predecessor: Rows
    lag: Ints
    kind: NDArray[np.int8]
    driving_edge: Rows
    own: Ints

    @classmethod
    def of(cls, trace: Trace) -> Graph:
        """Build the graph of a trace."""
        nodes, streams = Nodes.of(trace), Streams.of_trace(trace)
        edges = _edges(trace, nodes, streams)
        is_held = overlapped_rows(streams, nodes.rows) >= 0
        is_held[graph_edges(trace).between_rows()[0]] = True  # recorded dependencies are complete
        since = np.where(is_held, nodes.time[nodes.starts], _arrivals(edges, nodes))
        late = coincidence_edges(trace, streams, since)
        edges = Edges.joined([edges, nodes.possible(nodes.between_rows(late, Kind.COINCIDENCE))])
        first, predecessor, lag, kind = _grouped(edges, nodes.time.size)
        driving_edge, own = _driving_edges(first, predecessor, lag, nodes.time)
        return cls(nodes, first, predecessor, lag, kind, driving_edge, own)

    @cached_property
    def holding_row(self) -> Ints:
        """For each row the previous one on its stream, if it began while that one ran and waited for it; else NONE."""
        nodes = self.nodes
        holding = np.full(nodes.rows, NONE, np.int64)
        first, last = self.first[nodes.starts.start], self.first[nodes.starts.stop]
        overlaps = first + np.flatnonzero(self.kind[first:last] == Kind.OVERLAP).astype(np.int32)
        row = np.searchsorted(self.first, overlaps, "right") - 1 - nodes.starts.start
        before = self.predecessor[overlaps]
        begun = nodes.time[nodes.starts][row]
        edge = self.driving_edge[nodes.starts][row]
        since, kind = nodes.time[self.predecessor[edge]], self.kind[edge]
        waits = np.isin(kind, (Kind.STREAM, Kind.OVERLAP)) | ((begun - since > QUEUED_NS) & ~np.isin(kind, IN_CALLS))
        waits &= nodes.time[before] <= since
        holding[row[waits]] = before[waits] - nodes.starts.start
        return holding


def _edges(trace: Trace, nodes: Nodes, streams: Streams) -> Edges:
    boundaries = nodes.boundaries
    row = np.arange(nodes.rows, dtype=np.int32)
    start, end = row + nodes.starts.start, row + nodes.ends.start
    launched, kinds = launch_boundaries(trace, boundaries)
    held_by = overlapped_rows(streams, nodes.rows)
    is_held = np.flatnonzero(held_by >= 0)
    is_busy = busy_ranges(trace)
    parts = [
        Edges.of(start, end, Kind.SEQUENCE),
        _chains(boundaries),
        Edges.of(launched, start, kinds),
        nodes.between_rows((row, stream_order(streams, nodes.rows)), Kind.STREAM),
        Edges.of(start[held_by[is_held]], start[is_held], Kind.OVERLAP),
        Edges.of(end[held_by[is_held]], end[is_held], Kind.OVERLAP),
        nodes.between_rows(event_edges(trace, streams), Kind.EVENT),
        nodes.between_rows(wait_call_edges(trace, streams), Kind.WAIT_CALL),
        nodes.between_rows(graph_edges(trace).between_rows(), Kind.GRAPH),
        Edges.of(*fork_edges(trace, boundaries, is_busy)[::-1], Kind.FORK),
        Edges.of(*join_edges(trace, boundaries, is_busy)[::-1], Kind.JOIN),
        *_of_steps(trace, nodes),
    ]
    for waits in sync_edges(trace, streams):
        predecessor = np.where(waits.at_start, start[waits.row], end[waits.row])
        parts.append(Edges.of(predecessor, boundaries.end[waits.call + trace.host_events.height], waits.kind))
    return _with_lags(nodes.possible(Edges.joined(parts)), nodes)


def _of_steps(trace: Trace, nodes: Nodes) -> list[Edges]:
    """A step ends with its host interval and its device rows; the only step of a trace without steps, with all rows."""
    steps, boundaries = trace.steps, nodes.boundaries
    ends, starts = (np.arange(part.start, part.stop) for part in (nodes.step_ends, nodes.step_starts))
    step = trace.device_events["step"].to_numpy()
    row = np.arange(nodes.rows) + nodes.ends.start
    if not has_steps(trace):
        lasts = boundaries.first[1:][np.diff(boundaries.first) > 0] - 1
        everything = np.concatenate([lasts, row])
        return [Edges.of(everything, np.full(everything.size, ends[0]), Kind.STEP)]
    main = np.full(steps.height, main_thread(trace), np.int32)
    begun = boundaries.last_before(main, steps["host_start_ns"].to_numpy())
    over = boundaries.last_before(main, steps["host_end_ns"].to_numpy())
    return [
        Edges.of(row[step >= 0], ends[step[step >= 0]], Kind.STEP),
        Edges.of(over, ends, Kind.STEP),
        Edges.of(begun, starts, Kind.STEP),
        Edges.of(ends[:-1], starts[1:], Kind.STEP),
    ]


def _chains(boundaries: HostBoundaries) -> Edges:
    predecessor = np.flatnonzero(boundaries.thread[:-1] == boundaries.thread[1:])
    return Edges.of(predecessor, predecessor + 1, Kind.SEQUENCE)


def _with_lags(edges: Edges, nodes: Nodes) -> Edges:
    """The edges with the lags of launches and of streams, none longer than recorded."""
    time, starts = nodes.time, nodes.starts
    lag = np.zeros(edges.kind.size, np.int64)
    calls = np.flatnonzero(edges.kind == Kind.CALL)
    lag[calls] = edges.durations(calls, time)
    reached = {kinds: _reached(edges, nodes, kinds) for kinds in (_BY_LAUNCH, (Kind.STREAM,))}
    waits = _reached(edges, nodes, (Kind.EVENT, Kind.WAIT_CALL, Kind.OVERLAP, Kind.GRAPH)) > _NEVER
    for kind, others, margin in _TYPICAL:
        these = np.flatnonzero(edges.kind == kind)
        row, took = edges.successor[these] - starts.start, edges.durations(these, time)
        alone = (reached[others][row] + margin <= time[edges.predecessor[these]]) & ~waits[row]
        typical = min(int(np.median(took[alone])), QUEUED_NS) if alone.any() else 0
        lag[these] = np.minimum(took, typical)
    _hold(edges, nodes, lag)
    return Edges(edges.predecessor, edges.successor, lag, edges.kind)


def _hold(edges: Edges, nodes: Nodes, lag: Ints) -> None:
    """Set the lags of rows that begin while the previous one on their stream runs.

    If nothing else was over just before, such a row began when the previous one let it, a while after that one's start.
    """
    time, starts = nodes.time, nodes.starts
    overlaps = np.flatnonzero(edges.kind == Kind.OVERLAP)
    overlaps = overlaps[(edges.successor[overlaps] >= starts.start) & (edges.successor[overlaps] < starts.stop)]
    if not overlaps.size:
        return
    row = edges.successor[overlaps] - starts.start
    is_held = np.zeros(nodes.rows, bool)
    is_held[row] = True
    others = tuple(kind for kind in Kind if kind not in (Kind.STREAM, Kind.OVERLAP))
    was_ready = _reached(edges, nodes, others)[row] + QUEUED_NS <= time[starts][row]
    lag[overlaps[was_ready]] = edges.durations(overlaps[was_ready], time)
    streams = np.flatnonzero(edges.kind == Kind.STREAM)
    lag[streams[is_held[edges.successor[streams] - starts.start]]] = 0


def _reached(edges: Edges, nodes: Nodes, kinds: tuple[Kind, ...], lag: Ints | None = None) -> Ints:
    """When the predecessors of each row's start by edges of some kinds were over; _NEVER if there are none."""
    reached = np.full(nodes.rows, _NEVER)
    lags = np.empty(0, np.int64) if lag is None else lag
    columns = edges.predecessor, edges.successor, edges.kind, lags, nodes.time
    _find_latest_arrivals(*columns, sum(1 << kind for kind in kinds), nodes.starts.start, reached)
    return reached


def _arrivals(edges: Edges, nodes: Nodes) -> Ints:
    """When all predecessors of each row's start were over; its own time if it has none."""
    arrival = _reached(edges, nodes, tuple(Kind), edges.lag)
    return np.where(arrival == _NEVER, nodes.time[nodes.starts], arrival)


def _grouped(edges: Edges, nodes: int) -> tuple[Array, Array, Array, Array]:
    """For each node its first edge, and predecessor, lag and kind of the edges in the order of their successors."""
    first = np.zeros(nodes + 1, np.int32)
    columns = tuple(np.empty(edges.kind.size, dtype) for dtype in (np.int32, np.int64, np.int8))
    _group_edges(edges.predecessor, edges.successor, edges.lag, edges.kind, first, columns)
    predecessor, lag, kind = columns
    return first, predecessor, lag, kind


def _driving_edges(first: Array, predecessor: Array, lag: Array, time: Array) -> tuple[Array, Array]:
    edges, own = np.empty(time.size, np.int32), np.empty(time.size, np.int64)
    _find_driving_edges(first, predecessor, lag, time, edges, own)
    return edges, own
