"""The graph of a recording, reduced to what happens between its sync points with other workers.

At a *sync point*, a collective as this worker takes part in it, others decide when it is over. So a step consists of
*segments*: each leads from the end of a sync point, or the begin of the step, to the start of a sync point, or the end
of the step, always along what has to be done or waited for there. Of all ways between two ends only the longest stays,
and of the ends at which a segment may begin the MOST_ENDS that were over last: they become critical when something gets
faster.

What was over when a step's window began is its begin, as for the critical path of one worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.jit import Array, compiled
from ..trace import Trace
from .classes import CLASSES, own_classes
from .graph import Graph

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
MOST_ENDS = 4

SEGMENTS: dict[str, Any] = {
    "step": pl.Int32,  # a row of `steps`
    "sync_point": pl.Int32,  # at whose start it ends, or NONE: at the step's end
    "since": pl.Int32,  # the sync point at whose end it begins, or NONE: at the step's begin
    "slack_ns": pl.Int64,  # how long before what it ends at it was over; 0: it is what was waited for
    "spent_ns": pl.Array(pl.Int64, len(CLASSES)),  # what it consists of: a length for each of CLASSES
}
"""One row is one segment. Order: steps' ends, then sync points, each in order; of each what was over last first."""


def segments(trace: Trace, graph: Graph, start: Ints, end: Ints) -> pl.DataFrame:
    """The frame SEGMENTS.

    Args:
        trace: The trace.
        graph: Its graph.
        start: Of each sync point the node at which it starts, or NONE.
        end: Likewise the one at which it ends.
    """
    nodes = graph.nodes
    begin, stop = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
    window = (np.searchsorted(begin, nodes.time, "left") - 1).astype(np.int32)
    window[(window < 0) | (nodes.time > stop[window])] = NONE
    ended_by = np.full(nodes.time.size, NONE, np.int32)
    ended_by[end[end >= 0]] = np.flatnonzero(end >= 0)
    times = nodes.order, graph.first, graph.predecessor, graph.lag, nodes.time, graph.own, graph.driving_edge
    since, over, parent = _ways(*times, window, begin, ended_by, MOST_ENDS)
    sync_point = np.flatnonzero((start >= 0) & (window[start] >= 0))
    targets = np.concatenate([np.arange(nodes.step_ends.start, nodes.step_ends.stop), start[sync_point]])
    named = np.concatenate([np.full(trace.steps.height, NONE), sync_point])
    row, slot = np.nonzero((over[targets] > _NEVER) & (window[targets] >= 0)[:, None])
    way = targets[row] * MOST_ENDS + slot
    frame = pl.DataFrame(
        {
            "step": window[targets[row]],
            "sync_point": named[row],
            "since": since.ravel()[way],
            "slack_ns": nodes.time[targets[row]] - over.ravel()[way],
            "spent_ns": _spent(trace, graph, way, over.ravel(), parent.ravel(), window, ended_by),
        },
        schema=SEGMENTS,
    )
    return frame[np.lexsort((frame["slack_ns"].to_numpy(), row))]


_NEVER = np.iinfo(np.int64).min // 2


def _spent(
    trace: Trace,
    graph: Graph,
    way: Ints,
    over: Ints,
    parent: Ints,
    window: NDArray[np.int32],
    ended_by: NDArray[np.int32],
) -> NDArray[np.int64]:
    """Of some ways how much of each class they consist of: [way, class]."""
    nodes = graph.nodes
    kept = _on_the_way(nodes.order, way, parent, MOST_ENDS)
    number = np.full(over.size, NONE, np.int32)
    number[kept] = np.arange(kept.size, dtype=np.int32)
    node, above = kept // MOST_ENDS, parent[kept]
    begun = trace.steps["start_ns"].to_numpy()[window[node]]
    taken = over[kept] - np.where(above >= 0, over[np.maximum(above, 0)], begun)
    taken[(above < 0) & (ended_by[node] >= 0)] = 0
    part, parents = own_classes(trace, graph)[node], np.where(above >= 0, number[np.maximum(above, 0)], NONE)
    found: Ints = _summed(part, taken, parents, number[way], len(CLASSES))
    return found


@compiled
def _ways(
    order: Array,
    first: Array,
    predecessor: Array,
    lag: Array,
    time: Array,
    own: Array,
    driving_edge: Array,
    window: Array,
    begin: Array,
    ended_by: Array,
    most: int,
) -> tuple[Array, Array, Array]:
    """Of each node in a window the ends that it is reached from, by when, and by way of which node's which end.

    A way is a node × `most` + a place; the first place is that of what was waited for. Free ones are over at _NEVER.
    """
    since = np.full((time.size, most), NONE, np.int32)
    over = np.full((time.size, most), _NEVER, np.int64)
    parent = np.full((time.size, most), NONE, np.int32)
    for k in range(order.size):
        v = order[k]
        w = window[v]
        if w < 0:
            continue
        if ended_by[v] >= 0:
            since[v, 0], over[v, 0] = ended_by[v], time[v]
            continue
        if driving_edge[v] < 0:
            over[v, 0] = time[v]
        for i in range(first[v], first[v + 1] + 1):  # what was waited for comes first, so it stays of those as late
            e = driving_edge[v] if i == first[v] else i - 1
            if e < 0:
                break
            u = predecessor[e]
            took = lag[e] + own[v]
            if window[u] != w:
                if time[u] + took > begin[w]:
                    _enter(since[v], over[v], parent[v], NONE, time[u] + took, NONE)
                continue
            for j in range(most):
                if over[u, j] > _NEVER:
                    _enter(since[v], over[v], parent[v], since[u, j], over[u, j] + took, u * most + j)
    return since, over, parent


@compiled
def _enter(since: Array, over: Array, parent: Array, source: int, at: int, way: int) -> None:
    """Note that a node is reached from an end by an instant, if it isn't later from there, and there is room."""
    place = 0
    for j in range(over.size):
        if over[j] > _NEVER and since[j] == source:
            place = j
            break
        if over[j] < over[place]:
            place = j
    if at > over[place]:
        since[place], over[place], parent[place] = source, at, way


@compiled
def _on_the_way(order: Array, way: Array, parent: Array, most: int) -> Array:
    """All ways that some ways lead over, themselves too; each after what it came by."""
    is_kept = np.zeros(parent.size, np.bool_)
    for k in range(way.size):
        is_kept[way[k]] = True
    count = 0
    for k in range(order.size - 1, -1, -1):
        for j in range(most):
            i = order[k] * most + j
            if is_kept[i]:
                count += 1
                if parent[i] >= 0:
                    is_kept[parent[i]] = True
    found = np.empty(count, np.int64)
    at = 0
    for k in range(order.size):
        for j in range(most):
            i = order[k] * most + j
            if is_kept[i]:
                found[at] = i
                at += 1
    return found


@compiled
def _summed(part: Array, taken: Array, parent: Array, places: Array, classes: int) -> Array:
    """Of the wanted places what was taken there and by all their parents, which come before them, for each class."""
    found = np.empty((places.size, classes), np.int64)
    so_far = np.empty(part.size, np.int64)
    for c in range(classes):
        for k in range(part.size):
            above = so_far[parent[k]] if parent[k] >= 0 else 0
            so_far[k] = above + (taken[k] if part[k] == c else 0)
        for i in range(places.size):
            found[i, c] = so_far[places[i]]
    return found
