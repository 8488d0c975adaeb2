"""The graph of a recording: its instants, what each had to wait for, and what lay between.

Nodes are the points of the host's threads, and the starts and ends of the device's rows and of the steps. A node
happens when the last of what it waits for is over, and then after an own delay:

    time(node) = max(time(before) + lag over all that it waits for) + own(node)

The own delays are chosen so that this gives the recorded times exactly. So the graph explains the recording whole, and
another delay gives the times that would follow from it. A node that waits for nothing stays at its recorded time.

A row of a stream that had nothing to run begins LAUNCH's lag after its launch, one that was queued begins STREAM's lag
after the row before: both are the medians of this recording, at most QUEUED_NS. What a row began later than that is its
own delay. A row that began while its launching call was going on (CALL) could not begin earlier: all of that is lag.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.jit import Array, compiled
from ..measures.time.idle import QUEUED_NS
from ..measures.time.step_subset import has_steps
from ..trace import Trace
from .boundaries import HostBoundaries
from .edges import Edges, Kind
from .nodes import Nodes
from .stream_edges import event_edges, launching_points, moments, stream_order, wait_call_edges
from .streams import Streams
from .sync_edges import sync_edges
from .thread_edges import busy_ranges, fork_edges, join_edges, main_thread

Ints = NDArray[np.int64]
_NEVER = np.iinfo(np.int64).min // 2
_BY_LAUNCH = (Kind.LAUNCH, Kind.CALL, Kind.COPY_CALL)
_TYPICAL = (  # the waits whose lag is a median: of rows that wait for no event, the others being over for so long
    (Kind.LAUNCH, (Kind.STREAM,), 0),
    (Kind.COPY_CALL, (Kind.STREAM,), 0),
    (Kind.STREAM, _BY_LAUNCH, QUEUED_NS),
)


@dataclass(frozen=True)
class Graph:
    """What waits for what.

    Attributes:
        nodes: The instants.
        own: Each node's own delay.
        first: For each node its first edge in `predecessor`, `lag` and `kind`; one more entry says where the last ends.
        predecessor: The node that is waited for; likewise how long that takes at least, and what kind of wait it is.
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
        late = moments(trace, streams, _arrivals(edges, nodes.time)[nodes.starts])
        edges = Edges.joined([edges, nodes.possible(nodes.between_rows(late, Kind.MOMENT))])
        edges = edges.select(np.argsort(edges.successor, kind="stable"))
        first = np.searchsorted(edges.successor, np.arange(nodes.time.size + 1))
        own = nodes.time - _arrivals(edges, nodes.time)
        return cls(nodes, own, first, edges.predecessor, edges.lag, edges.kind)

    @cached_property
    def driving_edge(self) -> Ints:
        """For each node the edge that it waited for longest, or NONE; of two the one that was over later."""
        found: Ints = _driving_edges(self.first, self.predecessor, self.lag, self.nodes.time)
        return found

    def times(self, own: Ints, lag: Ints, starts: Ints) -> Ints:
        """When each node would happen with these delays and lags, if the steps began when they did.

        Each step is laid out alone: what was over when it began stays where it was.
        """
        nodes = self.nodes
        step = np.searchsorted(starts, nodes.time, "left") - 1
        since = np.where(step >= 0, starts[step], np.iinfo(np.int64).max)
        found: Ints = _times(nodes.order, self.first, self.predecessor, lag, nodes.time, own, since)
        return found


def _edges(trace: Trace, nodes: Nodes, streams: Streams) -> Edges:
    boundaries = nodes.boundaries
    row = np.arange(nodes.rows)
    start, end = row + nodes.starts.start, row + nodes.ends.start
    launched, kinds = launching_points(trace, boundaries)
    is_busy = busy_ranges(trace)
    parts = [
        Edges.of(start, end, Kind.ITSELF),
        _chains(boundaries),
        Edges.of(launched, start, kinds),
        nodes.between_rows((row.astype(np.int32), stream_order(streams, nodes.rows)), Kind.STREAM),
        nodes.between_rows(event_edges(trace, streams), Kind.EVENT),
        nodes.between_rows(wait_call_edges(trace, streams), Kind.WAIT_CALL),
        Edges.of(*fork_edges(trace, boundaries, is_busy)[::-1], Kind.HAND_OVER),
        Edges.of(*join_edges(trace, boundaries, is_busy)[::-1], Kind.JOIN),
        *_of_steps(trace, nodes),
    ]
    for found in sync_edges(trace, streams):
        predecessor = np.where(found.at_start, start[found.row], end[found.row])
        parts.append(Edges.of(predecessor, boundaries.end[found.call + trace.host_events.height], found.kind))
    return _with_lags(nodes.possible(Edges.joined(parts)), nodes.time)


def _of_steps(trace: Trace, nodes: Nodes) -> list[Edges]:
    """A step ends with its host interval and its device rows; the one step of a recording without steps, with all."""
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
    return Edges.of(predecessor, predecessor + 1, Kind.ITSELF)


def _with_lags(edges: Edges, time: Ints) -> Edges:
    """The edges with the lags of launches and of streams, none longer than it took."""
    took = time[edges.successor] - time[edges.predecessor]
    lag = np.where(edges.kind == Kind.CALL, took, 0)
    reached = {}
    for kinds in (_BY_LAUNCH, (Kind.STREAM,)):
        these = np.isin(edges.kind, kinds)
        reached[kinds] = np.full(time.size, _NEVER)
        np.maximum.at(reached[kinds], edges.successor[these], time[edges.predecessor[these]])
    waits = np.zeros(time.size, bool)
    waits[edges.successor[np.isin(edges.kind, (Kind.EVENT, Kind.WAIT_CALL))]] = True
    for kind, others, margin in _TYPICAL:
        these = edges.kind == kind
        alone = these & (reached[others][edges.successor] + margin <= time[edges.predecessor]) & ~waits[edges.successor]
        typical = min(int(np.median(took[alone])), QUEUED_NS) if alone.any() else 0
        lag[these] = np.minimum(took[these], typical)
    return Edges(edges.predecessor, edges.successor, lag, edges.kind)


def _arrivals(edges: Edges, time: Ints) -> Ints:
    """When all that each node waits for was over; its own time if it waits for nothing."""
    arrival = np.full(time.size, _NEVER)
    np.maximum.at(arrival, edges.successor, time[edges.predecessor] + edges.lag)
    return np.where(arrival == _NEVER, time, arrival)


@compiled
def _driving_edges(first: Array, predecessor: Array, lag: Array, time: Array) -> Array:
    found = np.empty(time.size, np.int64)
    for v in range(time.size):
        found[v] = NONE
        for e in range(first[v], first[v + 1]):
            if found[v] < 0:
                found[v] = e
                continue
            best = found[v]
            ahead = time[predecessor[e]] + lag[e] - time[predecessor[best]] - lag[best]
            if ahead > 0 or (ahead == 0 and time[predecessor[e]] > time[predecessor[best]]):
                found[v] = e
    return found


@compiled
def _times(order: Array, first: Array, predecessor: Array, lag: Array, time: Array, own: Array, since: Array) -> Array:
    found = np.empty(time.size, np.int64)
    for k in range(order.size):
        v = order[k]
        found[v] = time[v]
        if time[v] <= since[v] or first[v] == first[v + 1]:
            continue
        reached = _NEVER
        for e in range(first[v], first[v + 1]):
            u = predecessor[e]
            reached = max(reached, (found[u] if time[u] > since[v] else time[u]) + lag[e])
        found[v] = reached + own[v]
    return found
