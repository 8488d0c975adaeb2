"""What if: how long the steps would take if some of their work were faster, by the graph.

All of the recording is laid out anew with shorter delays; nothing else changes: the same work is done in the same order
on the same threads and streams, and waits for the same things. So other paths become critical by themselves, and what
is hidden behind other work saves nothing. What was over when the first step began stays where it was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..trace import Trace
from .classes import BETWEEN_ROWS, CALL, LAUNCH
from .edges import IN_CALLS, Kind
from .graph import Graph

Ints = NDArray[np.int64]

LAGS = {LAUNCH: (Kind.LAUNCH,), CALL: IN_CALLS, BETWEEN_ROWS: (Kind.STREAM,)}
"""The waits whose lags belong to a class."""


@dataclass(frozen=True)
class WhatIf:
    """A recording that can be laid out anew.

    Attributes:
        graph: Its graph.
        since: When the first step's window begins.
        recorded: How long each step's window is.
    """

    graph: Graph
    since: int
    recorded: Ints

    @classmethod
    def of(cls, trace: Trace, graph: Graph) -> WhatIf:
        """Return the recording as it is."""
        start, end = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
        return cls(graph, int(start[0]), end - start)

    def saved(self, nodes: NDArray[np.bool_], percent: int, whole: int | None = None) -> Ints:
        """How much shorter each step would be if the own delays of some nodes took `percent` less.

        Args:
            nodes: Which of them.
            percent: How much less, 0 to 100.
            whole: The class that these nodes are all of; the lags that belong to it take less too.
        """
        graph = self.graph
        own = np.where(nodes, _less(graph.own, percent), graph.own)
        lag = graph.lag
        if whole in LAGS:
            lag = np.where(np.isin(graph.kind, LAGS[whole]), _less(lag, percent), lag)
        times = graph.times(own, lag, self.since)
        return self.recorded - (times[graph.nodes.step_ends] - times[graph.nodes.step_starts])


def _less(values: Ints, percent: int) -> Ints:
    return values - values * percent // 100
