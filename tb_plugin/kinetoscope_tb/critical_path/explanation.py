"""Graph, critical paths and what-if of a trace, each computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from ..trace import Trace
from ..trace.results import once_per_recording
from .classes import CLASSES, ON_DEVICE, own_classes
from .graph import Graph
from .path import critical_path, path_stretches
from .what_if import WhatIf


@dataclass(frozen=True)
class Explanation:
    """What several views of a trace share.

    Attributes:
        graph: The graph of waits.
        stretches: The critical paths of all steps: STRETCHES.
        what_if: Estimates of step times if some work were faster.
    """

    graph: Graph
    stretches: pl.DataFrame
    what_if: WhatIf

    @cached_property
    def share_on_device(self) -> float:
        """Which share of the paths' time is a device's."""
        is_of_device = np.zeros(len(CLASSES), bool)
        is_of_device[list(ON_DEVICE)] = True
        length = (self.stretches["end_ns"] - self.stretches["start_ns"]).to_numpy()
        return float(length[is_of_device[self.stretches["class"].to_numpy()]].sum() / max(1, length.sum()))


@once_per_recording
def path_explanation(trace: Trace) -> Explanation:
    """The explanation of a trace: computed at the first call and cached with it."""
    graph = Graph.of(trace)
    parts = own_classes(trace, graph)
    return Explanation(graph, path_stretches(trace, graph, parts), WhatIf.of(trace, graph, parts))


@once_per_recording
def critical_paths(trace: Trace) -> pl.DataFrame:
    """The critical paths of all steps (PATH): computed at the first call and cached with the trace."""
    explanation = path_explanation(trace)
    return critical_path(trace, explanation.graph, explanation.what_if.part)


def explanation_for_advice(trace: Trace) -> Explanation:
    """The same, with what simulations of advice begin with, whatever it is about."""
    explanation = path_explanation(trace)
    what_if = explanation.what_if
    _ = explanation.share_on_device, what_if.long_host_nodes, what_if.far_places
    return explanation
