"""What the time on a path went to: the class of the time between two nodes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather
from ..arrays.native import Function
from ..arrays.nesting import nearest
from ..measures.calls.waiting_calls import waits_for_devices
from ..measures.time.breakdown import loading_ranges
from ..measures.time.idle import QUEUED_NS
from ..trace import Trace
from ..trace.row_filters import is_operator
from .edges import IN_CALLS, Kind
from .graph import Graph

_find_parts_before = Function("parts_before")

Codes = NDArray[np.int8]

CLASSES = (
    "computation",
    "device communication",
    "copy",
    "launch latency",
    "between GPU events",
    "unexplained wait",
    "data loading",
    "host communication",
    "operator",
    "runtime call",
    "synchronization",
    "between operators",
)
COMPUTATION, COMMUNICATION, COPY, LAUNCH, BETWEEN_ROWS, UNEXPLAINED = range(6)
LOADING, HOST_COMMUNICATION, OPERATOR, CALL, SYNCHRONIZATION, BETWEEN = range(6, 12)
ON_DEVICE = range(6)
"""The classes of device time; all others are host time."""
WAIT_CLASSES = (UNEXPLAINED, SYNCHRONIZATION)
"""The classes without work: a wait is shorter if what it waits for is, or if nothing waits for that."""


def range_classes(trace: Trace) -> Codes:
    """The class of a thread's time while each range is the innermost one; ranges are numbered as in HostBoundaries.

    Everything inside data loading is data loading, and operators inside a communication are communication, but for
    those of another annotation in it: a backend's range may stay open while the program goes on.
    """
    host, calls = trace.host_events, trace.launches
    parent = host["parent"].to_numpy()

    loads = nearest(loading_ranges(trace), parent) >= 0
    is_op, own = is_operator(trace), host["is_communication"].to_numpy()
    communicates = gather(own, nearest(own | (host["kind"] == "annotation").to_numpy(), parent), missing=False)
    in_op = nearest(is_op, parent) >= 0
    ranges = np.full(host.height, BETWEEN, np.int8)
    for is_of_class, number in ((in_op, OPERATOR), (communicates, HOST_COMMUNICATION), (loads, LOADING)):
        ranges[is_of_class] = number
    is_loading = gather(loads, calls["host"].to_numpy(), missing=False)
    of_calls = np.select([is_loading, waits_for_devices(trace)], [LOADING, SYNCHRONIZATION], default=CALL)
    return np.concatenate([ranges, of_calls.astype(np.int8)])


def row_classes(trace: Trace) -> Codes:
    """The class of each row of device_events."""
    device = trace.device_events
    computes = (device["kind"] == "kernel").to_numpy()
    communicates = device["is_communication"].to_numpy()
    return np.select([communicates, computes], [COMMUNICATION, COMPUTATION], default=COPY).astype(np.int8)


def own_classes(trace: Trace, graph: Graph) -> Codes:
    """The class of each node's own delay; for a boundary, of what its thread did before it.

    A row that waits while the previous one on its stream runs waits for that one's work.
    """
    nodes = graph.nodes
    classes = np.full(nodes.time.size, BETWEEN, np.int8)
    boundaries = nodes.boundaries.first, nodes.boundaries.inner
    _find_parts_before(graph.edges[:3], *boundaries, Kind.FORK, range_classes(trace), BETWEEN, classes)
    edge = graph.driving_edges(nodes.starts)
    kind = np.where(edge >= 0, graph.kind[np.maximum(edge, 0)], NONE) if graph.kind.size else edge
    in_call = np.isin(kind, IN_CALLS)
    since = nodes.time[graph.predecessor[edge]]
    is_long = (edge < 0) | (nodes.time[nodes.starts] - since > QUEUED_NS)
    classes[nodes.starts] = np.select(
        [in_call, is_long, kind == Kind.LAUNCH], [CALL, UNEXPLAINED, LAUNCH], default=BETWEEN_ROWS
    )
    classes[nodes.ends] = of_rows = row_classes(trace)
    waits = np.flatnonzero(graph.holding_row >= 0)
    classes[nodes.starts.start + waits] = of_rows[graph.holding_row[waits]]
    return classes
