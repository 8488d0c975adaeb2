"""The instants of a recording: when threads begin or end something, and when rows of devices and steps start or end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..trace import Trace
from .boundaries import HostBoundaries
from .edges import Edges, Kind

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Nodes:
    """All nodes of a graph.

    A node is a number: first come the points of the host, then the starts of the device's rows and their ends, then the
    starts of the steps' windows and their ends.

    Attributes:
        boundaries: Those of the host.
        rows: How many rows the device has.
        steps: How many steps there are.
        time: When each node happened.
        order: The nodes, each after all that it may have to wait for.
    """

    boundaries: HostBoundaries
    rows: int
    steps: int
    time: Ints
    order: Ints

    @classmethod
    def of(cls, trace: Trace) -> Nodes:
        """Return the nodes of a trace.

        At one instant rows end before threads go on, and these go on before rows start; what ends without having lasted
        ends after that, and steps last of all.
        """
        boundaries = HostBoundaries.of(trace)
        start, dur = trace.device_events["start_ns"].to_numpy(), trace.device_events["dur_ns"].to_numpy()
        windows = trace.steps["start_ns"].to_numpy(), trace.steps["end_ns"].to_numpy()
        times = (boundaries.time, start, start + dur, windows[1], windows[0])
        rank = np.repeat(np.array([1, 2, 0, 4, 5], np.int8), [at.size for at in times])
        ends = boundaries.time.size + start.size
        rank[ends : ends + start.size][dur == 0] = 3
        time = np.concatenate(times)
        by_rank = np.argsort(rank, kind="stable")
        order = by_rank[np.argsort(time[by_rank], kind="stable")]
        return cls(boundaries, start.size, trace.steps.height, time, order)

    def _part(self, part: int) -> slice:
        sizes = (self.boundaries.time.size, self.rows, self.rows, self.steps, self.steps)
        return slice(sum(sizes[:part]), sum(sizes[: part + 1]))

    @property
    def starts(self) -> slice:
        """The nodes at which the device's rows start, in their order."""
        return self._part(1)

    @property
    def ends(self) -> slice:
        """The nodes at which they end."""
        return self._part(2)

    @property
    def step_ends(self) -> slice:
        """The nodes at which the steps' windows end."""
        return self._part(3)

    @property
    def step_starts(self) -> slice:
        """The nodes at which they start."""
        return self._part(4)

    def between_rows(self, found: tuple[Rows, Rows], kind: Kind) -> Edges:
        """Rows that wait, and the rows whose ends they wait for."""
        successor, predecessor = (np.asarray(side, np.int64) for side in found)
        return Edges.of(
            np.where(predecessor >= 0, predecessor + self.ends.start, NONE), successor + self.starts.start, kind
        )

    def possible(self, edges: Edges) -> Edges:
        """Only the pairs of which the one that is waited for comes first."""
        place = np.empty(self.order.size, np.int64)
        place[self.order] = np.arange(self.order.size)
        return edges.select(place[edges.predecessor] < place[edges.successor])
