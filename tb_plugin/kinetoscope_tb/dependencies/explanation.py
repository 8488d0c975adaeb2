"""All that explains the times of a recording, made once: its graph, its critical paths, and what if."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from ..trace import Trace
from .classes import own_classes
from .graph import Graph
from .path import critical_path
from .what_if import WhatIf

_KEPT = "explanation"


@dataclass(frozen=True)
class Explanation:
    """What several views of a recording begin with.

    Attributes:
        graph: What waits for what.
        path: The critical paths of all steps: PATH.
        what_if: The recording, to be laid out anew.
    """

    graph: Graph
    path: pl.DataFrame
    what_if: WhatIf

    @classmethod
    def of(cls, trace: Trace) -> Explanation:
        """Return that of a trace, made at the first call and kept with the trace, as a cached property is."""
        kept: Explanation | None = vars(trace).get(_KEPT)
        if kept is None:
            graph = Graph.of(trace)
            parts = own_classes(trace, graph)
            kept = cls(graph, critical_path(trace, graph, parts), WhatIf.of(trace, graph, parts))
            vars(trace)[_KEPT] = kept
        return kept

    @property
    def held_bytes(self) -> int:
        """How much memory it takes."""
        holders: tuple[Any, ...] = (self.graph, self.graph.nodes, self.graph.nodes.points, self.what_if)
        arrays = [value for one in holders for value in vars(one).values() if isinstance(value, np.ndarray)]
        return sum(array.nbytes for array in arrays) + int(self.path.estimated_size())
