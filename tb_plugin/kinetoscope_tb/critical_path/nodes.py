"""The nodes of the graph: boundaries of threads, and starts and ends of device rows and of steps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays.native import Function
from ..trace import Trace
from .boundaries import HostBoundaries, count_boundaries
from .edges import Edges, Kind

_invert = Function("invert")
_sort_by_time = Function("sort_by_time")

Rows = NDArray[np.int32]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Nodes:
    """All nodes of a graph.

    A node is a number: first come the boundaries of the host, then the starts of the device rows and their ends, then
    the ends of the steps' windows and their starts.

    Attributes:
        boundaries: Of the host's threads.
        rows: Number of device rows.
        steps: Number of steps.
        time: When each node happened.
        position: The position of each node in topological order: after everything that it may wait for.
    """

    boundaries: HostBoundaries
    rows: int
    steps: int
    time: Ints
    position: Rows

    @classmethod
    def of(cls, trace: Trace, boundaries: HostBoundaries, time: Ints) -> Nodes:
        """Return the nodes of a trace and its boundaries, whose times are the beginning of `time`, for those of all.

        At one instant rows end before threads continue, and threads continue before rows start; rows without a duration
        end after that, and steps last.
        """
        start, dur = trace.device_events["start_ns"].to_numpy(), trace.device_events["dur_ns"].to_numpy()
        windows = trace.steps["start_ns"].to_numpy(), trace.steps["end_ns"].to_numpy()
        hosts = boundaries.time.size
        np.concatenate((start, start + dur, windows[1], windows[0]), out=time[hosts:])
        return cls(boundaries, start.size, trace.steps.height, time, _positions(time, hosts, start.size))

    @cached_property
    def order(self) -> Rows:
        """The nodes in topological order. Building a graph takes most memory, and doesn't need it."""
        order = np.empty_like(self.position)
        _invert(self.position, order)
        return order

    def _part(self, part: int) -> slice:
        sizes = (self.boundaries.time.size, self.rows, self.rows, self.steps, self.steps)
        return slice(sum(sizes[:part]), sum(sizes[: part + 1]))

    @property
    def starts(self) -> slice:
        """The nodes at which the device's rows start, in their order."""
        return self._part(1)

    @property
    def ends(self) -> slice:
        """The nodes at which the device's rows end."""
        return self._part(2)

    @property
    def step_ends(self) -> slice:
        """The nodes at which the steps' windows end."""
        return self._part(3)

    @property
    def step_starts(self) -> slice:
        """The nodes at which the steps' windows start."""
        return self._part(4)

    def between_rows(self, pairs: tuple[Rows, Rows] | tuple[Ints, Ints], kind: Kind) -> Edges:
        """Edges from (rows that wait, rows whose ends they wait for)."""
        successor, predecessor = (np.asarray(side, np.int32) for side in pairs)
        return Edges(predecessor, successor, kind, self.ends.start, self.starts.start)


def count_nodes(trace: Trace) -> int:
    """How many nodes the graph of a trace has."""
    return count_boundaries(trace) + 2 * (trace.device_events.height + trace.steps.height)


_NODES_PER_BUCKET = 4


def _positions(time: Ints, first_start: int, rows: int) -> Rows:
    """The position of each node among them by time; those at one instant are in the order of `Nodes.of`."""
    bucket = np.zeros(max(1 << (time.size // _NODES_PER_BUCKET).bit_length(), 2) + 1, np.int32)
    order, position = np.empty(time.size, np.int32), np.empty(time.size, np.int32)
    _sort_by_time(time, first_start, rows, bucket, np.empty_like(order), order, position)
    return position
