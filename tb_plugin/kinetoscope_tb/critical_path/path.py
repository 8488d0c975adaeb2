"""The critical path of a step: back from its end along the driving edges, the longest waits.

The segments of a path follow each other without a gap, from the start of the step's window to its end, so they add up
to the step's time exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.native import Function
from ..trace import Trace
from .classes import own_classes
from .edges import IN_CALLS, Kind
from .graph import Graph

_find_node_events = Function("node_events")
_find_stretches = Function("path_stretches")
_merge_segments = Function("merge_segments")
_walk_back = Function("walk_back")

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]

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

LONG_NS = 200_000
"""Of a call or an operator between two boundaries: without a wait, launching takes µs."""

STRETCHES = {
    **{name: PATH[name] for name in ("start_ns", "end_ns", "class", "device_event", "thread")},
    "is_long": pl.Boolean,  # a segment of LONG_NS or more
}
"""One row is one long segment of a step's path, or shorter ones of one class, row and thread. Order: step, time."""


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
    own = own_classes(trace, graph) if parts is None else parts
    walk = graph.edges[:4], own, target, starts, ends, Kind.SEQUENCE
    count = _walk_back(*walk, np.empty(0, np.int32), tuple(np.empty(0, dtype) for dtype in _SEGMENT))
    node: Rows = np.empty(count, np.int32)
    segments = tuple(np.empty(count, dtype) for dtype in _SEGMENT)
    _walk_back(*walk, node, segments)
    columns = dict(zip(PATH, (*segments, *events_of_nodes(trace, graph, node)), strict=True))
    left = _merge_segments(tuple(columns.values()))
    return pl.DataFrame({name: column[:left] for name, column in columns.items()}, schema=PATH)


def path_stretches(trace: Trace, graph: Graph, parts: NDArray[np.int8]) -> pl.DataFrame:
    """The critical paths of all steps as STRETCHES; `parts` are the nodes' own_classes."""
    starts, ends = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
    last = np.arange(graph.nodes.step_ends.start, graph.nodes.step_ends.stop)
    walk = graph.edges[:4], parts, last, starts, ends, *_places_of_delays(trace, graph), LONG_NS
    count = _find_stretches(*walk, tuple(np.empty(0, dtype) for dtype in _STRETCH))
    columns = tuple(np.empty(count, dtype) for dtype in _STRETCH)
    _find_stretches(*walk, columns)
    return pl.DataFrame(dict(zip(STRETCHES, columns, strict=True)), schema=STRETCHES)


_SEGMENT = (np.int32, np.int64, np.int64, np.int8, np.int8)
"""The types of the columns of PATH that `walk_back` writes."""
_STRETCH = (np.int64, np.int64, np.int8, np.int32, np.int32, np.bool_)
"""The types of the columns of STRETCHES."""


def events_of_nodes(trace: Trace, graph: Graph, node: Rows) -> tuple[Rows, Rows, Rows, Rows]:
    """Where the delays of some nodes are: the columns host_event, launch, device_event and thread of PATH."""
    event, call, row, thread = (np.empty(node.size, np.int32) for _ in range(4))
    _find_node_events(node, graph.edges[:3], *_places_of_delays(trace, graph), (event, call, row, thread))
    return event, call, row, thread


def _places_of_delays(trace: Trace, graph: Graph) -> tuple[Any, ...]:
    """What compiled functions take to say where the delay of a node is."""
    boundaries, in_call = graph.nodes.boundaries, sum(1 << kind for kind in IN_CALLS)
    columns = (trace.device_events["launch"], trace.launches["host"], trace.launches["thread"])
    of_rows = (graph.holding_row, *(column.to_numpy() for column in columns))
    kinds = (Kind.FORK, in_call, in_call | 1 << Kind.LAUNCH)
    return (boundaries.thread, boundaries.inner), of_rows, trace.host_events.height, *kinds
