"""Graph, critical paths and what-if of a trace, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ..measures.time.step_subset import counted_steps
from ..trace import Trace
from ..trace.results import once_per_recording
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


@once_per_recording
def path_explanation(trace: Trace) -> Explanation:
    """The explanation of a trace: computed at the first call and cached with it."""
    graph = Graph.of(trace)
    parts = own_classes(trace, graph)
    return Explanation(graph, critical_path(trace, graph, parts), WhatIf.of(trace, graph, parts))


def counted_path(trace: Trace) -> pl.DataFrame:
    """The critical paths of the steps that count: PATH."""
    steps, path = counted_steps(trace), path_explanation(trace).path
    if steps and steps[-1] - steps[0] == len(steps) - 1:
        first, stop = np.searchsorted(path["step"].to_numpy(), [steps[0], steps[-1] + 1]).tolist()
        return path[first:stop]
    return path.filter(pl.col("step").is_in(steps))
