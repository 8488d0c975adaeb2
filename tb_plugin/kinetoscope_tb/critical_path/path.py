"""The critical path of a step: back from its end along the driving edges, the longest waits.

The segments of a path follow each other without a gap, from the start of the step's window to its end, so they add up
to the step's time exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.native import Function
from ..trace import Trace
from .classes import CLASSES, own_classes
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

LONG_SEGMENTS = {name: PATH[name] for name in ("start_ns", "end_ns", "class", "device_event", "thread")}
"""One row is one segment of a step's path that takes LONG_NS or more. Order: step, time."""

_AT_ONCE = 1 << 16
"""Stretches, which fit into a cache."""


class PathPart(NamedTuple):
    """Consecutive segments or stretches of critical paths.

    Attributes:
        start: When each starts, in ns.
        end: When it ends, in ns.
        part: The class of each, an index of CLASSES.
        row: The row of device_events, or NONE.
        thread: The host thread, or NONE.
    """

    start: Ints
    end: Ints
    part: NDArray[np.int8]
    row: Rows
    thread: Rows

    @classmethod
    def of(cls, path: pl.DataFrame) -> PathPart:
        """Return some or all segments of a path (PATH, LONG_SEGMENTS)."""
        return cls(*(path[name].to_numpy() for name in LONG_SEGMENTS))


@dataclass(frozen=True)
class Stretches:
    """The critical paths of all steps, in the least memory: a stretch is all that follows in one class, row and thread.

    Attributes:
        start: When each path starts; the others of its stretches start at the end of the one before.
        first: The first stretch of each path, and the number of stretches at the end.
        end: When each stretch ends.
        part: The class of each.
        row_or_thread: Its row of device_events; -2 minus its thread; or NONE.
        long_segments: LONG_SEGMENTS.
    """

    start: Ints
    first: Ints
    end: Ints
    part: NDArray[np.int8]
    row_or_thread: Rows
    long_segments: pl.DataFrame

    def parts(self) -> Iterator[PathPart]:
        """The stretches in order, some at a time."""
        is_known = np.diff(self.first) > 0
        first, start = self.first[:-1][is_known], self.start[is_known]
        for low in range(0, self.end.size, _AT_ONCE):
            part = slice(low, low + _AT_ONCE)
            begin, code = np.roll(self.end[part], 1), self.row_or_thread[part]
            begin[0] = self.end[low - 1]
            at = slice(*np.searchsorted(first, [low, low + _AT_ONCE]))
            begin[first[at] - low] = start[at]
            row, thread = np.maximum(code, NONE), np.maximum(-2 - code, NONE)
            yield PathPart(begin, self.end[part], self.part[part], row, thread)

    def lengths(self, amount: Callable[[PathPart], NDArray[Any]]) -> NDArray[np.float64]:
        """The sum of an amount of each stretch by class, such as its time in ns."""
        sums = np.zeros(len(CLASSES))
        for part in self.parts():
            sums += np.bincount(part.part, amount(part), sums.size)
        return sums


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


def path_stretches(trace: Trace, graph: Graph, parts: NDArray[np.int8]) -> Stretches:
    """The critical paths of all steps as stretches; `parts` are the nodes' own_classes."""
    starts, ends = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
    last = np.arange(graph.nodes.step_ends.start, graph.nodes.step_ends.stop)
    walk = graph.edges[:4], parts, last, starts, ends, *_places_of_delays(trace, graph), LONG_NS
    nodes, counts, longs = graph.nodes.time.size, np.zeros(starts.size, np.int64), np.zeros(1, np.int64)
    room, room_of_long = nodes // 2 + 1, min(nodes, int((ends - starts).sum() // LONG_NS)) + 1  # enough for most traces
    while True:
        stretches, segments = _room(_STRETCH, room), _room(_LONG, room_of_long)
        count = _find_stretches(*walk, counts, stretches, longs, segments)
        if count <= room and longs[0] <= room_of_long:
            break
        room, room_of_long, counts = count, int(longs[0]), np.zeros_like(counts)
    for size, columns in ((count, stretches), (int(longs[0]), segments)):
        for column in columns:
            column.resize(size, refcheck=False)  # in place
    end, part, code = stretches
    frame = pl.DataFrame(dict(zip(LONG_SEGMENTS, segments, strict=True)), schema=LONG_SEGMENTS)
    return Stretches(starts, np.append(0, np.cumsum(counts)), end, part, code, frame)


def _room(dtypes: Sequence[type[np.generic]], rows: int) -> tuple[NDArray[Any], ...]:
    return tuple(np.empty(rows, dtype) for dtype in dtypes)


_SEGMENT = (np.int32, np.int64, np.int64, np.int8, np.int8)
"""The types of the columns of PATH that `walk_back` writes."""
_STRETCH = (np.int64, np.int8, np.int32)
"""The types of what `path_stretches` writes of each stretch: end, part, and row or thread."""
_LONG = (np.int64, np.int64, np.int8, np.int32, np.int32)
"""The types of the columns of LONG_SEGMENTS."""


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
    return (boundaries.first, boundaries.inner), of_rows, trace.host_events.height, *kinds
