"""The critical path of a step: back from its end along the driving edges, the longest waits.

The segments of a path follow each other without a gap, from the start of the step's window to its end, so they add up
to the step's time exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import gather
from ..arrays.native import Array, Function
from ..trace import Trace
from .classes import inner_before, own_classes
from .edges import IN_CALLS, Kind
from .graph import Graph

_find_segment_events = Function("segment_events")
_walk = Function("walk_back")

Ints = NDArray[np.int64]

PATH = {
    "step": pl.Int32,  # a row of `steps`
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "class": pl.Int8,  # an index of CLASSES
    "kind": pl.Int8,  # a Kind: why it could not begin earlier
    "host_event": pl.Int32,  # the innermost range of the thread, or NONE
    "launch": pl.Int32,  # the innermost call of the thread, or the call that launched the row, or NONE
    "device_event": pl.Int32,  # the row that runs, or that waits, or NONE
    "thread": pl.Int32,  # the host thread, or NONE: the time is a device's
}
"""One row is one segment of a step's path. Order: step, time."""


def critical_path(trace: Trace, graph: Graph, parts: NDArray[np.int8] | None = None) -> pl.DataFrame:
    """The critical paths (PATH) of all steps; `parts` are the nodes' own_classes, if they are known."""
    starts, ends = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
    last = np.arange(graph.nodes.step_ends.start, graph.nodes.step_ends.stop)
    return trace_back(trace, graph, last, starts, ends, parts)


def trace_back(
    trace: Trace, graph: Graph, target: Ints, starts: Ints, ends: Ints, parts: NDArray[np.int8] | None = None
) -> pl.DataFrame:
    """Paths back from some nodes along the driving edges: PATH, whose `step` is the index of the target.

    Args:
        trace: The trace.
        graph: Its graph.
        target: The nodes to start from.
        starts: Start of each path; it has no gap, even where no predecessor is known.
        ends: End of each path; no later than its node.
        parts: The nodes' own_classes, if they are known.
    """
    columns_reversed = _walk_back(graph.driving_edge, graph.predecessor, graph.nodes.time, target, starts, ends)
    node, edge, start, step = (column[::-1] for column in columns_reversed)
    end = ends[step]
    end[:-1] = np.where(step[:-1] == step[1:], start[1:], end[:-1])
    kind = gather(graph.kind, edge, missing=Kind.SEQUENCE)
    columns = {
        "step": step,
        "start_ns": start,
        "end_ns": end,
        "class": (own_classes(trace, graph) if parts is None else parts)[node],
        "kind": kind,
        **_whereabouts(trace, graph, node, kind),
    }
    return pl.DataFrame(_merge_equal_neighbors(columns), schema=PATH)


def _whereabouts(trace: Trace, graph: Graph, node: Ints, kind: NDArray[np.int8]) -> dict[str, NDArray[np.int32]]:
    """The events in which the segment before each node runs."""
    names = ("host_event", "launch", "device_event", "thread")
    columns = {name: np.empty(node.size, np.int32) for name in names}
    launched = (trace.device_events["launch"], trace.launches["host"], trace.launches["thread"])
    in_call = sum(1 << kind for kind in IN_CALLS)
    _find_segment_events(
        (node.astype(np.int32), kind, *inner_before(graph), graph.holding_row),
        tuple(column.to_numpy() for column in launched),
        trace.host_events.height,
        in_call,
        in_call | 1 << Kind.LAUNCH,
        tuple(columns.values()),
    )
    return columns


def _merge_equal_neighbors(columns: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Merge consecutive segments of the same events and class; they come in order."""
    is_first = np.ones(columns["step"].size, bool)
    if not is_first.size:
        return columns
    same = ("step", "class", "host_event", "launch", "device_event", "thread")
    is_first[1:] = np.any([columns[name][1:] != columns[name][:-1] for name in same], axis=0)
    first = np.flatnonzero(is_first)
    last = np.append(first[1:], is_first.size) - 1
    return {name: values[last if name == "end_ns" else first] for name, values in columns.items()}


def _walk_back(
    driving_edge: Array, predecessor: Array, time: Array, target: Array, start: Array, end: Array
) -> tuple[Array, Array, Array, Array]:
    """Return (node, edge that led to it, start, path) of each segment; the last one of the last path first."""
    room, count = 0, 1024
    while count > room:
        room = count
        columns = tuple(np.empty(room, np.int64) for _ in range(4))
        count = _walk(driving_edge, predecessor, time, target, start, end, columns)
    node, edge, begin, step = (column[:count] for column in columns)
    return node, edge, begin, step
