"""The graph of a trace, reduced to segments between its sync points with other workers.

At a *sync point*, this worker's part of a collective, other workers decide when it ends. So a step consists of
*segments*: longest paths in the graph from the end of a sync point, or the start of the step, to the start of a sync
point, or the end of the step. Of all paths between two ends only the longest is stored, and for each target only the
MOST_ENDS sources that were over last: these become critical when something gets faster.

Everything before the start of a step's window counts as its start, as for the critical path of one worker.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.native import Array, Function
from ..trace import Trace
from .classes import CLASSES, own_classes
from .graph import Graph

_find_longest_paths = Function("longest_paths")
_mark_ancestors = Function("mark_ancestors")
_list_ancestors = Function("list_ancestors")
_sum = Function("sum_by_class")

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]
MOST_ENDS = 4

SEGMENTS: dict[str, Any] = {
    "step": pl.Int32,  # a row of `steps`
    "sync_point": pl.Int32,  # at whose start it ends, or NONE: at the step's end
    "since": pl.Int32,  # the sync point at whose end it begins, or NONE: at the step's start
    "slack_ns": pl.Int64,  # how long before its target it was over; 0: the target waited for it
    "spent_ns": pl.Array(pl.Int64, len(CLASSES)),  # its length by class, as in CLASSES
}
"""One row is one segment. Order: steps' ends, then sync points, each in order; for each the least slack first."""


def segments(trace: Trace, graph: Graph, start: Ints, end: Ints) -> pl.DataFrame:
    """The frame SEGMENTS.

    Args:
        trace: The trace.
        graph: Its graph.
        start: The node at which each sync point starts, or NONE.
        end: The node at which it ends, or NONE.
    """
    nodes = graph.nodes
    begin, stop = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
    window = (np.searchsorted(begin, nodes.time, "left") - 1).astype(np.int32)
    window[(window < 0) | (nodes.time > stop[window])] = NONE
    ended_by = np.full(nodes.time.size, NONE, np.int32)
    ended_by[end[end >= 0]] = np.flatnonzero(end >= 0)
    since, over, parent = _longest_paths(graph, window, begin, ended_by, MOST_ENDS)
    sync_point = np.flatnonzero((start >= 0) & (window[start] >= 0))
    targets = np.concatenate([np.arange(nodes.step_ends.start, nodes.step_ends.stop), start[sync_point]])
    sync_points = np.concatenate([np.full(trace.steps.height, NONE), sync_point])
    within = np.concatenate([np.arange(trace.steps.height), window[start[sync_point]]])  # a step may have no length
    row, slot = np.nonzero((over[targets] > _NEVER) & (window[targets] == within)[:, None])
    way = targets[row] * MOST_ENDS + slot
    frame = pl.DataFrame(
        {
            "step": window[targets[row]],
            "sync_point": sync_points[row],
            "since": since.ravel()[way],
            "slack_ns": nodes.time[targets[row]] - over.ravel()[way],
            "spent_ns": _time_by_class(trace, graph, way, over.ravel(), parent.ravel(), window, ended_by),
        },
        schema=SEGMENTS,
    )
    return frame[np.lexsort((frame["slack_ns"].to_numpy(), row))]


_NEVER = np.iinfo(np.int64).min // 2


def _time_by_class(
    trace: Trace,
    graph: Graph,
    way: Ints,
    over: Ints,
    parent: Ints,
    window: NDArray[np.int32],
    ended_by: NDArray[np.int32],
) -> NDArray[np.int64]:
    """The time of each class on some paths: [path, class]."""
    nodes = graph.nodes
    reachable = _ancestors(nodes.order, way, parent, MOST_ENDS)
    number = np.full(over.size, NONE, np.int32)
    number[reachable] = np.arange(reachable.size, dtype=np.int32)
    node, above = reachable // MOST_ENDS, parent[reachable]
    step_start = trace.steps["start_ns"].to_numpy()[window[node]]
    duration = over[reachable] - np.where(above >= 0, over[np.maximum(above, 0)], step_start)
    duration[(above < 0) & (ended_by[node] >= 0)] = 0
    part, parents = own_classes(trace, graph)[node], np.where(above >= 0, number[np.maximum(above, 0)], NONE)
    lengths: Ints = _sum_by_class(part, duration, parents, number[way], len(CLASSES))
    return lengths


def _longest_paths(graph: Graph, window: Rows, begin: Ints, ended_by: Rows, most: int) -> tuple[Array, Array, Array]:
    """For each node in a window: source, arrival and predecessor of its longest paths from up to `most` sources.

    A path has the number node × `most` + slot; the first slot is that of the driving edge. Free slots arrive at _NEVER.
    """
    nodes = graph.nodes.time.size
    since = np.full((nodes, most), NONE, np.int32)
    over = np.full((nodes, most), _NEVER, np.int64)
    parent = np.full((nodes, most), NONE, np.int32)
    first, predecessor, _, *delays = graph.edges
    edges = first, predecessor, *delays
    _find_longest_paths(graph.nodes.order, edges, window, begin, ended_by, most, since, over, parent)
    return since, over, parent


def _ancestors(order: Array, way: Array, parent: Array, most: int) -> Array:
    """Some paths with all their predecessors, each after its own, in topological order."""
    is_reachable = np.zeros(parent.size, np.bool_)
    reachable = np.empty(_mark_ancestors(order, way, parent, most, is_reachable), np.int64)
    _list_ancestors(order, most, is_reachable, reachable)
    return reachable


def _sum_by_class(part: Array, duration: Array, parent: Array, path_numbers: Array, classes: int) -> Array:
    """For each class, the duration summed over each requested path and its predecessors, which come before it."""
    sums = np.empty((path_numbers.size, classes), np.int64)
    _sum(part, duration, parent, path_numbers, classes, np.empty(part.size, np.int64), sums)
    return sums
