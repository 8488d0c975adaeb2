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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.native import Function
from ..measures.time.idle import QUEUED_NS
from ..measures.time.step_subset import has_steps
from ..measures.time.threads import main_thread
from ..trace import Trace
from ..trace.graph_edges import graph_edges
from .boundaries import RangeBoundaries, count_boundaries, host_boundaries
from .collective_edges import collective_edges
from .collective_ends import end_on_time
from .edges import IN_CALLS, Edges, Kind
from .nodes import Nodes, count_nodes
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
from .thread_edges import fork_edges, join_edges, loader_edges, works_after

_count_chains = Function("count_chains")
_count_edges = Function("count_edges")
_find_driving_delays = Function("driving_delays")
_find_edge_lags = Function("edge_lags")
_insert_edges = Function("insert_edges")
_find_lone_delays = Function("lone_delays")
_move_driving_edges_first = Function("drive_first")
_place_chains = Function("place_chains")
_place_edges = Function("place_edges")

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
_BY_LAUNCH = (Kind.LAUNCH, Kind.CALL, Kind.COPY_CALL)
_HOLDING = (Kind.EVENT, Kind.WAIT_CALL, Kind.OVERLAP, Kind.GRAPH)
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
        first: For each node its first edge in `predecessor` and `kind`, and the number of edges at the end. That is its
            *driving edge*, which it waited for longest; of equals the one whose predecessor is later.
        predecessor: The node that each edge comes from.
        kind: The Kind of each edge.
        start_lag: The least duration of each edge to the start of a row; other edges have none. The first of these
            edges is the first one of the first row's start.
    """

    nodes: Nodes
    first: Rows
    predecessor: Rows
    kind: Codes
    start_lag: Ints

    @classmethod
    def of(cls, trace: Trace) -> Graph:
        """Build the graph of a trace."""
        time = np.empty(count_nodes(trace), np.int64)
        boundaries, ranges = host_boundaries(trace, time[: count_boundaries(trace)])
        end_on_time(trace, boundaries, ranges)
        nodes, streams = Nodes.of(trace, boundaries, time), Streams.of_trace(trace)
        edges = _edges(trace, nodes, ranges, streams)
        del ranges  # whose memory the edges of all nodes need
        first, predecessor, kind = _group(edges, nodes)
        del edges
        trace.release_free_memory()
        lag, since = _lags(first, predecessor, kind, nodes)
        is_held = overlapped_rows(streams, nodes.rows) >= 0
        is_held[graph_edges(trace).between_rows()[0]] = True  # recorded dependencies are complete
        since[is_held] = nodes.time[nodes.starts][is_held]
        row, before = coincidence_edges(trace, streams, since)
        is_possible = nodes.position[before + nodes.ends.start] < nodes.position[row + nodes.starts.start]
        row, before = row[is_possible], before[is_possible]
        if row.size:
            for column in (predecessor, kind, lag):
                column.resize(column.size + row.size, refcheck=False)  # in place, where the allocator can
            before, low = before + np.int32(nodes.ends.start), first[nodes.starts.start]
            new_edges = (row, before, nodes.starts.start, low, Kind.COINCIDENCE)
            _insert_edges(new_edges, first, predecessor, kind, lag)
        _move_driving_edges_first(first, nodes.time, first[nodes.starts.start], predecessor, kind, lag)
        return cls(nodes, first, predecessor, kind, lag)

    @property
    def edges(self) -> tuple[Any, ...]:
        """What compiled functions take: first, predecessor, kind, times of nodes, first edge with a lag, lags."""
        first_lag = self.first[self.nodes.starts.start]
        return self.first, self.predecessor, self.kind, self.nodes.time, first_lag, self.start_lag

    def driving_edges(self, nodes: slice) -> Rows:
        """The driving edge of each of some consecutive nodes, or NONE."""
        first = self.first[nodes.start : nodes.stop + 1]
        return np.where(first[:-1] < first[1:], first[:-1], np.int32(NONE))

    def delays(self) -> Ints:
        """How long after the predecessor of its driving edge each node happened; or 0."""
        delays = np.empty(self.nodes.time.size, np.int64)
        _find_driving_delays(self.first, self.predecessor, self.nodes.time, delays)
        return delays

    def delays_of(self, nodes: Ints) -> Ints:
        """The same of some nodes that wait for others."""
        return np.asarray(self.nodes.time[nodes] - self.nodes.time[self.predecessor[self.first[nodes]]])

    @cached_property
    def holding_row(self) -> Rows:
        """For each row the previous one on its stream, if it began while that one ran and waited for it; else NONE."""
        nodes = self.nodes
        row_before = np.full(nodes.rows, NONE, np.int32)
        first, last = self.first[nodes.starts.start], self.first[nodes.starts.stop]
        overlaps = first + np.flatnonzero(self.kind[first:last] == Kind.OVERLAP).astype(np.int32)
        row = np.searchsorted(self.first, overlaps, "right") - 1 - nodes.starts.start
        before = self.predecessor[overlaps]
        start = nodes.time[nodes.starts][row]
        edge = self.first[nodes.starts.start + row]
        since, kind = nodes.time[self.predecessor[edge]], self.kind[edge]
        waits = np.isin(kind, (Kind.STREAM, Kind.OVERLAP)) | ((start - since > QUEUED_NS) & ~np.isin(kind, IN_CALLS))
        waits &= nodes.time[before] <= since
        row_before[row[waits]] = before[waits] - nodes.starts.start
        return row_before


def _edges(trace: Trace, nodes: Nodes, ranges: RangeBoundaries, streams: Streams) -> list[Edges]:
    boundaries = nodes.boundaries
    row, starts, ends = np.arange(nodes.rows, dtype=np.int32), nodes.starts.start, nodes.ends.start
    launch_point, kinds = launch_boundaries(trace, boundaries, ranges)
    held_by = overlapped_rows(streams, nodes.rows)
    is_work = works_after(trace, boundaries)
    parts = [
        Edges(row, row, Kind.SEQUENCE, starts, ends),
        Edges(launch_point, row, kinds, 0, starts),
        nodes.between_rows((row, stream_order(streams, nodes.rows)), Kind.STREAM),
        Edges(held_by, row, Kind.OVERLAP, starts, starts),
        Edges(held_by, row, Kind.OVERLAP, ends, ends),
        nodes.between_rows(event_edges(trace, streams), Kind.EVENT),
        nodes.between_rows(wait_call_edges(trace, streams), Kind.WAIT_CALL),
        nodes.between_rows(graph_edges(trace).between_rows(), Kind.GRAPH),
        Edges(*fork_edges(trace, boundaries, is_work)[::-1], Kind.FORK),
        Edges(*collective_edges(trace, boundaries, ranges)[::-1], Kind.COLLECTIVE),
        Edges(*join_edges(trace, boundaries, ranges, is_work)[::-1], Kind.JOIN),
        Edges(*loader_edges(trace, ranges)[::-1], Kind.WORKERS),
        *_of_steps(trace, nodes),
    ]
    for waits in sync_edges(trace, streams):
        predecessor = np.where(waits.at_start, waits.row + np.int32(starts), waits.row + np.int32(ends))
        parts.append(Edges(predecessor, ranges.end[waits.call + trace.host_events.height], waits.kind))
    return parts


def _of_steps(trace: Trace, nodes: Nodes) -> list[Edges]:
    """A step ends with its host interval and its device rows; the only step of a trace without steps, with all rows."""
    steps, boundaries = trace.steps, nodes.boundaries
    row, step = (np.arange(count, dtype=np.int32) for count in (nodes.rows, steps.height))
    ends, starts, rows_end = nodes.step_ends.start, nodes.step_starts.start, nodes.ends.start
    if not has_steps(trace):
        lasts = (boundaries.first[1:][np.diff(boundaries.first) > 0] - 1).astype(np.int32)
        return [
            Edges(lasts, np.zeros_like(lasts), Kind.STEP, 0, ends),
            Edges(row, np.zeros_like(row), Kind.STEP, rows_end, ends),
        ]
    main = np.full(steps.height, main_thread(trace), np.int32)
    first_point = boundaries.last_before(main, steps["host_start_ns"].to_numpy())
    over = boundaries.last_before(main, steps["host_end_ns"].to_numpy())
    return [
        Edges(row, trace.device_events["step"].to_numpy(), Kind.STEP, rows_end, ends),
        Edges(over, step, Kind.STEP, 0, ends),
        Edges(first_point, step, Kind.STEP, 0, starts),
        Edges(step[:-1], step[1:], Kind.STEP, ends, starts),
    ]


def _group(parts: list[Edges], nodes: Nodes) -> tuple[Rows, Rows, Codes]:
    """For each node its first edge; predecessor and kind of the edges in the order of their successors.

    To those of the parts come those between consecutive boundaries of a thread.
    """
    first, chains = np.zeros(nodes.time.size + 2, np.int32), nodes.boundaries.first
    _count_chains(chains, nodes.position, first)
    for predecessor, successor, _, *offsets in parts:
        _count_edges(predecessor, successor, *offsets, nodes.position, first)
    np.cumsum(first, out=first)
    predecessors, kinds = np.empty(first[-1], np.int32), np.empty(first[-1], np.int8)
    _place_chains(chains, Kind.SEQUENCE, nodes.position, first, predecessors, kinds)
    for predecessor, successor, kind, *offsets in parts:
        codes = np.atleast_1d(np.asarray(kind, np.int8))
        _place_edges(predecessor, successor, *offsets, codes, nodes.position, first, predecessors, kinds)
    return first[:-1], predecessors, kinds


def _lags(first: Rows, predecessor: Rows, kind: Codes, nodes: Nodes) -> tuple[Ints, Ints]:
    """The lags of all edges to starts of rows, and when all predecessors of these were over.

    Lags of launches and of streams are typical ones, none longer than recorded. If nothing else was over just before, a
    row that begins while the previous one on its stream runs began when that one let it, a while after its start.
    """
    starts, edges = nodes.starts, (first, predecessor, kind, nodes.time)
    lag = np.empty(first[starts.stop] - first[starts.start], np.int64)
    most = np.zeros(len(Kind), np.int64)
    most[Kind.CALL] = np.iinfo(np.int64).max
    for which, others, margin in _TYPICAL:
        count = _find_lone_delays(edges, starts.start, nodes.rows, which, _bits(others), margin, _bits(_HOLDING), lag)
        most[which] = min(int(np.median(lag[:count])), QUEUED_NS) if count else 0
    since = np.empty(nodes.rows, np.int64)
    _find_edge_lags(edges, starts.start, most, Kind.STREAM, Kind.OVERLAP, QUEUED_NS, lag, since)
    return lag, since


def _bits(kinds: tuple[Kind, ...]) -> int:
    return sum(1 << kind for kind in kinds)
