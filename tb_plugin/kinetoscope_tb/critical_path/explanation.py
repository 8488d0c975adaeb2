"""Graph, critical paths and what-if of a trace, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..measures.time.step_subset import counted_steps
from ..trace import Trace
from ..trace.memo import once_per_recording
from .classes import own_classes
from .graph import Graph
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
        arrays = [value for holder in holders for value in vars(holder).values() if isinstance(value, np.ndarray)]
        owners = {
            id(owner): owner.nbytes for owner in (array if array.base is None else array.base for array in arrays)
        }
        return sum(owners.values()) + int(self.path.estimated_size())


@once_per_recording
def _explanation(trace: Trace) -> Explanation:
    graph = Graph.of(trace)
    parts = own_classes(trace, graph)
    return Explanation(graph, critical_path(trace, graph, parts), WhatIf.of(trace, graph, parts))


def counted_path(trace: Trace) -> pl.DataFrame:
    """The critical paths of the steps that count: PATH."""
    steps, path = counted_steps(trace), Explanation.of(trace).path
    if steps and steps[-1] - steps[0] == len(steps) - 1:
        first, stop = np.searchsorted(path["step"].to_numpy(), [steps[0], steps[-1] + 1]).tolist()
        return path[first:stop]
    return path.filter(pl.col("step").is_in(steps))
