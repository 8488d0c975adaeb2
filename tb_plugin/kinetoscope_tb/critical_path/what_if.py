"""What if: how long the steps would take if some of their work were faster, by simulating the graph.

Each step is simulated with shorter delays; nothing else changes: the same work runs in the same order on the same
threads and streams, and waits for the same things. So other paths become critical by themselves, and shortening work
that is hidden behind other work saves nothing. Nodes before the step's start keep their times, so no step gets longer.
A critical path is shortened by no more than the given share of the work on it within the step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..trace import Trace
from .classes import BETWEEN_ROWS, CALL, LAUNCH, own_classes
from .edges import Kind
from .graph import Graph

Ints = NDArray[np.int64]

LAGS = {
    Kind.LAUNCH: LAUNCH,
    Kind.CALL: CALL,
    Kind.COPY_CALL: CALL,
    Kind.STREAM: BETWEEN_ROWS,
}
"""The class that the lag of a wait belongs to; that of an OVERLAP belongs to the work of the row before."""


@dataclass(frozen=True)
class WhatIf:
    """A trace whose steps can be simulated with other delays.

    Attributes:
        graph: Its graph.
        starts: When each step's window begins.
        recorded: Length of each step's window.
        part: The class of each node's own delay.
        lag_part: The class of each edge's lag, or NONE.
        successor: The node that each edge leads to.
        since: The start of each node's step, as Graph.since returns it; the same in every simulation.
    """

    graph: Graph
    starts: Ints
    recorded: Ints
    part: NDArray[np.int8]
    lag_part: NDArray[np.int8]
    successor: Ints
    since: Ints

    @classmethod
    def of(cls, trace: Trace, graph: Graph, parts: NDArray[np.int8] | None = None) -> WhatIf:
        """Return the what-if of a trace; `parts` are the nodes' own_classes, if they are known."""
        start, end = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
        part_of_kind = np.array([LAGS.get(kind, NONE) for kind in Kind], np.int8)
        successor = np.repeat(np.arange(graph.nodes.time.size), np.diff(graph.first))
        own = own_classes(trace, graph) if parts is None else parts
        of_lag = np.where(graph.kind == Kind.OVERLAP, own[successor], part_of_kind[graph.kind])
        return cls(graph, start, end - start, own, of_lag, successor, graph.since(start))

    def delays(self) -> Ints:
        """Each node's own delay plus the lag of its driving edge, as on a path."""
        delay, edge = self.graph.own.copy(), self.graph.driving_edge
        waits = np.flatnonzero(edge >= 0)
        delay[waits] += self.graph.lag[edge[waits]]
        return delay

    def saved_by_part(self, part: int, percent: int) -> Ints:
        """How much shorter each step would be if all of a class took `percent` less."""
        return self.saved(self.part == part, percent)

    def saved(self, nodes: NDArray[np.bool_], percent: int) -> Ints:
        """How much shorter each step would be if the delays of some nodes took `percent` less, 0 to 100."""
        return self.saved_together(np.where(nodes, percent, 0))

    def saved_together(self, percents: Ints) -> Ints:
        """How much shorter each step would be if the delay of each node took its own `percents` less, 0 to 100."""
        graph = self.graph
        if not percents.any():
            return np.zeros_like(self.recorded)
        of_edges = np.where(self.lag_part == self.part[self.successor], percents[self.successor], 0)
        times = graph.times(_less(graph.own, percents), _less(graph.lag, of_edges), self.since)
        earlier = (graph.nodes.time - times)[graph.nodes.step_ends]
        saved: Ints = np.minimum(earlier, self.recorded)
        return saved


def _less(values: Ints, percents: Ints) -> Ints:
    less = values.copy()
    some = np.flatnonzero(percents)
    chosen, percent = values[some], percents[some]
    less[some] -= chosen // 100 * percent + chosen % 100 * percent // 100  # of any size without overflow
    return less
