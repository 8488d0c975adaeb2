"""Graph, critical paths and what-if of a trace, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..trace import Trace
from ..trace.memo import once_per_trace
from .classes import own_classes
from .graph import Graph
from .names import Places
from .path import critical_path
from .what_if import WhatIf


@dataclass(frozen=True)
class Explanation:
    """What several views of a trace share.

    Attributes:
        graph: The graph of waits.
        path: The critical paths of all steps: PATH.
        what_if: Estimates of step times if some work were faster.
    """

    graph: Graph
    path: pl.DataFrame
    what_if: WhatIf

    @classmethod
    def of(cls, trace: Trace) -> Explanation:
        """Return the explanation of a trace: computed at the first call and cached as long as the trace exists."""
        return _explanation(trace)

    @property
    def held_bytes(self) -> int:
        """Memory that it uses."""
        holders: tuple[Any, ...] = (self.graph, self.graph.nodes, self.graph.nodes.boundaries, self.what_if)
        arrays = [value for one in holders for value in vars(one).values() if isinstance(value, np.ndarray)]
        owners = {
            id(owner): owner.nbytes for owner in (array if array.base is None else array.base for array in arrays)
        }
        return sum(owners.values()) + int(self.path.estimated_size())


@once_per_trace
def _explanation(trace: Trace) -> Explanation:
    graph = Graph.of(trace)
    parts = own_classes(trace, graph)
    return Explanation(graph, critical_path(trace, graph, parts), WhatIf.of(trace, graph, parts))


@once_per_trace
def places_of_nodes(trace: Trace) -> Places:
    """Return where the nodes of the trace's graph are."""
    return Places.of_nodes(trace, Explanation.of(trace).graph)
