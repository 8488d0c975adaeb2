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
_node_times = Function("node_times")

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
        own: Each node's own delay.
        first: For each node its first edge in `predecessor`, `lag` and `kind`, and the number of edges at the end.
        predecessor: The node that each edge comes from; likewise `lag`, its least duration, and `kind`, its Kind.
    """

    nodes: Nodes
    own: Ints
    first: Ints
    predecessor: Ints
    lag: Ints
    kind: NDArray[np.int8]

    @classmethod
    def of(cls, trace: Trace) -> Graph:
        """Build the graph of a trace."""
        nodes, streams = Nodes.of(trace), Streams.of_trace(trace)
        edges = _edges(trace, nodes, streams)
        is_held = overlapped_rows(streams, nodes.rows) >= 0
        is_held[graph_edges(trace).between_rows()[0]] = True  # recorded dependencies are complete
        since = np.where(is_held, nodes.time[nodes.starts], _arrivals(edges, nodes.time)[nodes.starts])
        late = coincidence_edges(trace, streams, since)
        edges = Edges.joined([edges, nodes.possible(nodes.between_rows(late, Kind.COINCIDENCE))])
        edges = edges.select(np.argsort(edges.successor, kind="stable"))
        first = np.searchsorted(edges.successor, np.arange(nodes.time.size + 1))
        own = nodes.time - _arrivals(edges, nodes.time)
        return cls(nodes, own, first, edges.predecessor, edges.lag, edges.kind)

    @cached_property
    def holding_row(self) -> Ints:
        """For each row the previous one on its stream, if it began while that one ran and waited for it; else NONE."""
        nodes = self.nodes
        holding = np.full(nodes.rows, NONE, np.int64)
        first, last = self.first[nodes.starts.start], self.first[nodes.starts.stop]
        overlaps = first + np.flatnonzero(self.kind[first:last] == Kind.OVERLAP)
        row = np.searchsorted(self.first, overlaps, "right") - 1 - nodes.starts.start
        before = self.predecessor[overlaps]
        begun = nodes.time[nodes.starts][row]
        edge = self.driving_edge[nodes.starts][row]
        since, kind = nodes.time[self.predecessor[edge]], self.kind[edge]
        waits = np.isin(kind, (Kind.STREAM, Kind.OVERLAP)) | ((begun - since > QUEUED_NS) & ~np.isin(kind, IN_CALLS))
        waits &= nodes.time[before] <= since
        holding[row[waits]] = before[waits] - nodes.starts.start
        return holding

    @cached_property
    def driving_edge(self) -> Ints:
        """For each node the edge that it waited for longest, or NONE; of equals the one whose predecessor is later."""
        edges: Ints = _driving_edges(self.first, self.predecessor, self.lag, self.nodes.time)
        return edges

    def since(self, starts: Ints) -> Ints:
        """For each node the start of its step, if the steps start then; before the first, a time beyond all."""
        step = np.searchsorted(starts, self.nodes.time, "left") - 1
        return np.where(step >= 0, starts[step], np.iinfo(np.int64).max)

    def times(self, own: Ints, lag: Ints, since: Ints) -> Ints:
        """When each node would happen with these delays and lags, if each step began at its recorded time.

        Steps are simulated separately: nodes before a step's start keep their times. `since` is what the method of this
        name returns.
        """
        nodes = self.nodes
        simulated: Ints = _times(nodes.order, self.first, self.predecessor, lag, nodes.time, own, since)
        return simulated


def _edges(trace: Trace, nodes: Nodes, streams: Streams) -> Edges:
    boundaries = nodes.boundaries
    row = np.arange(nodes.rows)
    start, end = row + nodes.starts.start, row + nodes.ends.start
    launched, kinds = launch_boundaries(trace, boundaries)
    held_by = overlapped_rows(streams, nodes.rows)
    is_held = np.flatnonzero(held_by >= 0)
    is_busy = busy_ranges(trace)
    parts = [
        Edges.of(start, end, Kind.SEQUENCE),
        _chains(boundaries),
        Edges.of(launched, start, kinds),
        nodes.between_rows((row.astype(np.int32), stream_order(streams, nodes.rows)), Kind.STREAM),
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
    return _with_lags(nodes.possible(Edges.joined(parts)), nodes.time, nodes.starts)


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


def _with_lags(edges: Edges, time: Ints, starts: slice) -> Edges:
    """The edges with the lags of launches and of streams, none longer than recorded."""
    took = time[edges.successor] - time[edges.predecessor]
    lag = np.where(edges.kind == Kind.CALL, took, 0)
    reached = {}
    for kinds in (_BY_LAUNCH, (Kind.STREAM,)):
        these = np.isin(edges.kind, kinds)
        reached[kinds] = np.full(time.size, _NEVER)
        np.maximum.at(reached[kinds], edges.successor[these], time[edges.predecessor[these]])
    waits = np.zeros(time.size, bool)
    waits[edges.successor[np.isin(edges.kind, (Kind.EVENT, Kind.WAIT_CALL, Kind.OVERLAP, Kind.GRAPH))]] = True
    for kind, others, margin in _TYPICAL:
        these = edges.kind == kind
        alone = these & (reached[others][edges.successor] + margin <= time[edges.predecessor]) & ~waits[edges.successor]
        typical = min(int(np.median(took[alone])), QUEUED_NS) if alone.any() else 0
        lag[these] = np.minimum(took[these], typical)
    held = _held_lags(edges, time, lag, starts)
    return Edges(edges.predecessor, edges.successor, held, edges.kind)


def _held_lags(edges: Edges, time: Ints, lag: Ints, starts: slice) -> Ints:
    """The lags, with those of rows that begin while the previous one on their stream runs.

    If nothing else was over just before, such a row began when the previous one let it, a while after that one's start.
    """
    overlaps = edges.kind == Kind.OVERLAP
    overlaps &= (edges.successor >= starts.start) & (edges.successor < starts.stop)
    is_held = np.zeros(time.size, bool)
    is_held[edges.successor[overlaps]] = True
    others = ~np.isin(edges.kind, (Kind.STREAM, Kind.OVERLAP))
    reached = np.full(time.size, _NEVER)
    np.maximum.at(reached, edges.successor[others], time[edges.predecessor[others]])
    took = time[edges.successor] - time[edges.predecessor]
    was_ready = reached[edges.successor] + QUEUED_NS <= time[edges.successor]
    lag = np.where(overlaps & was_ready, took, lag)
    return np.where((edges.kind == Kind.STREAM) & is_held[edges.successor], 0, lag)


def _arrivals(edges: Edges, time: Ints) -> Ints:
    """When all predecessors of each node were over; its own time if it has none."""
    arrival = np.full(time.size, _NEVER)
    np.maximum.at(arrival, edges.successor, time[edges.predecessor] + edges.lag)
    return np.where(arrival == _NEVER, time, arrival)


def _driving_edges(first: Array, predecessor: Array, lag: Array, time: Array) -> Array:
    edges = np.empty(time.size, np.int64)
    _find_driving_edges(first, predecessor, lag, time, edges)
    return edges


def _times(order: Array, first: Array, predecessor: Array, lag: Array, time: Array, own: Array, since: Array) -> Array:
    times = np.empty(time.size, np.int64)
    _node_times(order, first, predecessor, lag, time, own, since, times)
    return times
