"""Where a trace's collectives begin and end in its graph, and their events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE, gather
from ...critical_path.boundaries import host_boundaries
from ...critical_path.graph import Graph
from ...trace import Trace
from ..collectives.calls import CallRows

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


@dataclass(frozen=True)
class SyncPoints:
    """The calls of a trace, in the order of CALLS.

    Attributes:
        start: The node at which the transfer of each begins, or NONE if unknown.
        end: The node at which it ends, likewise.
        row: The row of device_events that it ends with, or NONE.
        event: The row of host_events that it begins and ends with, if it has no device row, or NONE.
    """

    start: Ints
    end: Ints
    row: Rows
    event: Rows

    @classmethod
    def of(cls, trace: Trace, graph: Graph, calls: CallRows) -> SyncPoints:
        """Return the sync points of calls in the graph of a trace."""
        nodes, begins = graph.nodes, np.full(calls.host_transfer.size, NONE, np.int32)
        ends = begins
        if (calls.host_transfer != NONE).any():
            _, ranges = host_boundaries(trace)
            begins, ends = gather(ranges.start, calls.host_transfer), gather(ranges.end, calls.host_transfer)
        on_device = calls.kernel >= 0
        start = np.where(on_device, calls.kernel + nodes.starts.start, begins)
        end = np.where(on_device, calls.last + nodes.ends.start, ends)
        return cls(start.astype(np.int64), end.astype(np.int64), calls.last, calls.host_transfer)
