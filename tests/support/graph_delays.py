"""The delays of a graph, spelled out for each edge and node."""

import numpy as np

from kinetoscope_tb.critical_path.classes import CLASSES
from kinetoscope_tb.critical_path.edges import Kind
from kinetoscope_tb.critical_path.graph import Graph
from kinetoscope_tb.critical_path.what_if import LAGS, WhatIf


def lags(graph: Graph) -> list[int]:
    """The lag of each edge."""
    lag, first = np.zeros(graph.predecessor.size, np.int64), graph.first[graph.nodes.starts.start]
    lag[first : first + graph.start_lag.size] = graph.start_lag
    return lag.tolist()


def own_delays(graph: Graph) -> list[int]:
    """Each node's own delay: without the lag of its driving edge."""
    driving, lag = graph.driving_edges(slice(0, graph.nodes.time.size)), lags(graph)
    return [ns - (lag[e] if e >= 0 else 0) for ns, e in zip(graph.delays().tolist(), driving.tolist(), strict=True)]


def class_of_lag(what_if: WhatIf, node: int, edge: int) -> int | None:
    """The class that the lag of an edge to a node belongs to; None if none."""
    kind = Kind(int(what_if.graph.kind[edge]))
    code = int(what_if.part[node]) if kind == Kind.OVERLAP else LAGS.get(kind)
    return code if code in range(len(CLASSES)) else None
