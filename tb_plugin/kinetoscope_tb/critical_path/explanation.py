"""Graph, critical paths and what-if of a trace, each computed once."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from ..trace import Trace
from ..trace.results import once_per_recording
from .classes import ON_DEVICE, own_classes
from .graph import Graph
from .path import Stretches, critical_path, path_stretches
from .what_if import WhatIf


@dataclass(frozen=True)
class Explanation:
    """What several views of a trace share.

    Attributes:
        graph: The graph of waits.
        what_if: Estimates of step times if some work were faster.
    """

    graph: Graph
    what_if: WhatIf


@once_per_recording
def path_explanation(trace: Trace) -> Explanation:
    """The explanation of a trace: computed at the first call and cached with it."""
    graph = Graph.of(trace)
    return Explanation(graph, WhatIf.of(trace, graph, own_classes(trace, graph)))


@once_per_recording
def critical_paths(trace: Trace) -> pl.DataFrame:
    """The critical paths of all steps (PATH): computed at the first call and cached with the trace."""
    explanation = path_explanation(trace)
    return critical_path(trace, explanation.graph, explanation.what_if.part)


@once_per_recording
def critical_stretches(trace: Trace) -> Stretches:
    """The same as stretches."""
    explanation = path_explanation(trace)
    return path_stretches(trace, explanation.graph, explanation.what_if.part)


@once_per_recording
def share_on_device(trace: Trace) -> float:
    """Which share of the time on all critical paths is a device's."""
    lengths = critical_stretches(trace).lengths(lambda part: part.end - part.start)
    return float(lengths[list(ON_DEVICE)].sum() / max(1, lengths.sum()))


def prepare_simulations(trace: Trace) -> None:
    """Compute what simulations of advice begin with, whatever it is about."""
    what_if = path_explanation(trace).what_if
    _ = what_if.long_host_nodes, what_if.far_places
