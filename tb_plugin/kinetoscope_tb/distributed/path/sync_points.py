"""Where a recording's calls begin and end in its graph, and what was recorded of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import gather
from ...critical_path import Graph
from ..collectives.calls import CallRows

Ints = NDArray[np.int64]
Rows = NDArray[np.int32]


@dataclass(frozen=True)
class SyncPoints:
    """The calls of a recording, in the order of CALLS.

    Attributes:
        start: The node at which each begins to move data, or NONE where the recording doesn't tell.
        end: Likewise the one at which it has.
        row: The row of device_events that it ends with, or NONE.
        event: The row of host_events that it begins and ends with, if that is no device row, or NONE.
    """

    start: Ints
    end: Ints
    row: Rows
    event: Rows

    @classmethod
    def of(cls, graph: Graph, found: CallRows) -> SyncPoints:
        """Return where calls lie in a graph."""
        nodes, points = graph.nodes, graph.nodes.boundaries
        on_device = found.kernel >= 0
        start = np.where(on_device, found.kernel + nodes.starts.start, gather(points.start, found.timed))
        end = np.where(on_device, found.last + nodes.ends.start, gather(points.end, found.timed))
        return cls(start.astype(np.int64), end.astype(np.int64), found.last, found.timed)
