"""What if: how long the steps would take if some of their work were faster, by simulating the graph.

The steps are simulated one after the other with shorter delays, from the first step that counts on: a thread that gets
ahead of the device in one step is still ahead in the next, so work that is partly hidden behind other work saves what
it holds back in the long run. Nothing else changes: the same work runs in the same order on the same threads and
streams, and waits for the same things. So other paths become critical by themselves, and shortening work that is hidden
behind other work saves nothing. Nodes before the first step's start keep their times, so no step ends later.

A batch for which the main thread waits in nearly every step comes when the loader's workers have it: earlier only if
loading itself is faster.

The host may be steps ahead of the device when the recording begins, and a recording ends before the device has caught
up. So on average no step gets shorter than what the host needs for it (host_pace.py).

Where the recorder timed steps without the profiler, what recording costs the host is gone in every simulation: savings
are those of such a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE
from ..arrays.native import Function
from ..measures.recording.usual_step import UsualStep
from ..measures.time.step_subset import counted_steps
from ..trace import Trace
from .classes import (
    BETWEEN_ROWS,
    CALL,
    COMMUNICATION,
    COMPUTATION,
    COPY,
    LAUNCH,
    OPERATOR,
    SYNCHRONIZATION,
    own_classes,
)
from .edges import Kind
from .graph import Graph
from .host_pace import HostPace
from .path import LONG_NS

_find_places_after = Function("places_after")
_find_rises = Function("rises")
_mark_far_places = Function("mark_far_places")
_simulate_steps = Function("simulate_steps")

Codes = NDArray[np.int8]
Ints = NDArray[np.int64]

_SAME = -2
LAGS = {
    Kind.LAUNCH: LAUNCH,
    Kind.CALL: CALL,
    Kind.COPY_CALL: CALL,
    Kind.STREAM: BETWEEN_ROWS,
    Kind.OVERLAP: _SAME,
}
"""The class that the lag of a wait belongs to; _SAME: that of the node, which waits for the work of the row before."""
_WAIT_OF_HOST, _WAIT_OF_WORKERS = -3, -4
_PART_OF_LAG = np.array([LAGS.get(kind, NONE) for kind in Kind], np.int8)
_PART_OF_LAG[Kind.SYNC] = _WAIT_OF_HOST
_PART_OF_LAG[Kind.WORKERS] = _WAIT_OF_WORKERS


_INSIDE = (COMPUTATION, COMMUNICATION, COPY, CALL)
"""The classes of a row's start that is inside a call or another row."""

WAITS = np.uint8(128)
"""Added to a percentage: so much of the node's wait for devices is gone, too."""

MAY_WAIT = (SYNCHRONIZATION, CALL, OPERATOR)
"""The classes of the host's time in which it may wait for a device."""
_ALL_NODES = np.empty(0, np.int8)
"""In place of the variant of each node: all have percents of their own in each variant."""
_LITTLE = 0.005  # of a step
_ROUNDING_NS = 1e-3  # by which a sum of floats may be below its whole number
_REACH = 1 << 12
"""Places, a power of two: so many of the last nodes' values fit into a cache, and most nodes wait for these alone."""
_MOST_VALUES = 1 << 24
"""Of one simulation of several variants: where nodes wait for many far ones, fewer are simulated at a time."""


@dataclass(frozen=True)
class WhatIf:
    """A trace whose steps can be simulated with other delays.

    Attributes:
        graph: Its graph.
        recorded: Length of each step's window.
        part: The class of each node's own delay.
        counted_range: The first step that counts, and the one after the last. The steps before are simulated by
            themselves.
        window: Where the first step and the first one that counts begin in the graph's order of nodes, and the number
            of nodes at the end.
        pace: The host's own time for a step.
    """

    graph: Graph
    recorded: Ints
    part: Codes
    counted_range: tuple[int, int]
    window: Ints
    pace: HostPace

    @classmethod
    def of(cls, trace: Trace, graph: Graph, parts: Codes | None = None) -> WhatIf:
        """Return the what-if of a trace; `parts` are the nodes' own_classes, if they are known."""
        start, end = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
        nodes, steps, window = graph.nodes, counted_steps(trace), np.empty(2, np.int64)
        _find_places_after(nodes.order, nodes.time, start[[0, steps[0]]], window)
        own = own_classes(trace, graph) if parts is None else parts
        return cls(
            graph,
            end - start,
            own,
            (steps[0], steps[-1] + 1),
            np.append(window, nodes.time.size),
            HostPace.of(trace, graph, own),
        )

    def delays(self) -> Ints:
        """Each node's own delay plus the lag of its driving edge, as on a path.

        0 at the start of a row inside the call or the row that it waited for: the end of that has this time, too.
        """
        delays = self.graph.delays()
        starts = self.graph.nodes.starts
        delays[starts][np.isin(self.part[starts], _INSIDE)] = 0
        return delays

    def computation_of(self, rows: NDArray[np.integer]) -> NDArray[np.bool_]:
        """The nodes whose delays are the computation of some rows of device_events."""
        nodes, holder = self.graph.nodes, self.graph.holding_row
        is_target = np.zeros(nodes.rows + 1, bool)  # NONE is the last one
        is_target[rows] = True
        is_computation = np.zeros(nodes.time.size, bool)
        is_computation[nodes.starts], is_computation[nodes.ends] = is_target[holder], is_target[:-1]
        is_computation &= self.part == COMPUTATION
        return is_computation

    @cached_property
    def waiting_nodes(self) -> Ints:
        """The nodes at which calls return that waited for a device."""
        edges = np.flatnonzero(self.graph.kind == Kind.SYNC).astype(np.int32)
        return np.unique(np.searchsorted(self.graph.first, edges, "right") - 1)

    @cached_property
    def long_host_nodes(self) -> Ints:
        """The nodes at which a call or an operator goes on after a long time, though no wait is recorded."""
        time = self.graph.nodes.boundaries.time
        at = np.empty(_find_rises(time, LONG_NS, np.empty(0, np.int64)), np.int64)
        _find_rises(time, LONG_NS, at)
        at = at[np.isin(self.part[at], MAY_WAIT)]
        return at[~np.isin(at, self.waiting_nodes)]

    def savings_of(self, nodes: NDArray[np.bool_], percent: int) -> Ints:
        """How much shorter each step would be if the delays of some nodes took `percent` less, 0 to 100."""
        return self.saved_together(np.where(nodes, np.uint8(percent), np.uint8(0)))

    def saved_together(self, percents: NDArray[np.uint8]) -> Ints:
        """How much shorter each step would be if the delay of each node took its own `percents` less.

        Args:
            percents: 0 to 100 for each node; with WAITS, so much of a host's wait for the device is gone, too.
        """
        saved_ns: Ints = self.saved_by_change(percents[None])[0]
        return saved_ns

    def saved_by_change(self, percents: NDArray[np.uint8]) -> NDArray[np.int64]:
        """How much shorter each step would be by some changes, each by itself: [change, step].

        Args:
            percents: As `saved_together` takes them, of each change: [change, node].
        """
        return self._savings(_ALL_NODES, len(percents), percents)

    def saved_by_variant(self, variant: Codes, variants: int, percent: int) -> NDArray[np.int64]:
        """How much shorter each step would be in some variants: [variant, step].

        In each, the delays of its own nodes take `percent` less.

        Args:
            variant: The number of the variant that each node belongs to, or NONE.
            variants: How many there are.
            percent: 0 to 100.
        """
        return self._savings(variant, variants, np.full(variant.size, percent, np.uint8))

    def _savings(self, variant: Codes, variants: int, percents: NDArray[np.uint8]) -> NDArray[np.int64]:
        """What each step saves without the profiler, as far as it is known what that costs."""
        recording, recording_ns = self._recording
        savings = self._savings_of_recorded(variant, variants, percents, recording)
        return np.clip(savings - recording_ns, 0, self.lengths) if recording.size else savings

    @cached_property
    def lengths(self) -> Ints:
        """How long each step takes without what recording costs: what savings are of.

        The mean of those that count is `UsualStep.mean_ns`: what the simulation is off by is shared out evenly.
        """
        lengths, steps = self.recorded - self._recording[1], slice(*self.counted_range)
        if self.pace.usual is not None and self._recording[0].size:
            lengths[steps] += round(self._usual_ns(self.pace.usual) - float(lengths[steps].mean()))
        not_negative: Ints = np.maximum(lengths, 0)
        return not_negative

    def _usual_ns(self, usual: UsualStep) -> int:
        """How long the average step that counts takes without the profiler."""
        return usual.mean_ns(self.recorded[slice(*self.counted_range)].mean())

    @cached_property
    def _recording(self) -> tuple[NDArray[np.uint8], Ints]:
        """Which part of each node's own delay is what recording costs, in percent, and what that is of each step.

        Nothing and 0 if the recorder timed no steps without the profiler, or they take as long.
        """
        recording = self.pace.recording
        if not recording.size or self.pace.usual is None:
            return recording, np.zeros(self.recorded.size, np.int64)
        cost_ns = self._cost_of(recording)
        first, after = self.counted_range
        mean_ns = float(self.recorded[first:after].mean())
        rest_ns = mean_ns - float(cost_ns[first:after].mean()) - self._usual_ns(self.pace.usual)
        if rest_ns > _LITTLE * mean_ns:
            recording = self.pace.also_slowed(recording, rest_ns)
            cost_ns = self._cost_of(recording)
        return recording, cost_ns

    def _cost_of(self, recording: NDArray[np.uint8]) -> Ints:
        no_change = np.zeros((1, self.part.size), np.uint8)
        cost_ns: Ints = self._savings_of_recorded(_ALL_NODES, 1, no_change, recording)[0]
        return cost_ns

    def _savings_of_recorded(
        self, variant: Codes, variants: int, percents: NDArray[np.uint8], recording: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        """What each step adds to the time by which all of them are over earlier.

        What a later step loses again, because everything waits for something else there, isn't saved.
        """
        earlier, end = (
            self._earlier(variant, variants, percents, recording),
            self.graph.nodes.time[self.graph.nodes.step_ends],
        )
        first, after = self.counted_range
        before, since = (_in_order(earlier[:, part], end[part]) for part in (slice(first), slice(first, None)))
        within = _least_of_later(since[:, : after - first])
        last = np.maximum(_least_of_later(since[:, after - first :]), within[:, -1:])
        savings = np.diff(np.hstack([_least_of_later(before), within, last]), axis=1, prepend=0)
        savings[:, first] = within[:, 0]
        savings = np.minimum(savings, self.recorded)
        mean, length_ns = savings[:, first:after].mean(axis=1), self.recorded[first:after].mean()
        if (mean > length_ns - self.pace.most_ns).any():
            most = np.maximum(length_ns - self.pace.shortest(variant, variants, percents, recording), 0.0)
            savings[:, first:after] = _at_most(savings[:, first:after], mean, most)
        return savings

    def _earlier(
        self, variant: Codes, variants: int, percents: NDArray[np.uint8], recording: NDArray[np.uint8]
    ) -> NDArray[np.int64]:
        """By how much each step ends earlier: [variant, step]."""
        graph, nodes, steps = self.graph, self.graph.nodes, self.recorded.size
        far, together = self.far_places, max(1, min(_MOST_VALUES // (_REACH + self.far_places.size), variants))
        room = np.empty((_REACH + far.size) * together, np.int64)
        of_graph = nodes.order, nodes.position, *graph.edges
        of_variants = self.part, _PART_OF_LAG, variant, percents.ravel(), recording, self.window, far, _REACH
        earlier = np.zeros((variants, steps), np.int64)
        for first in range(0, variants, together):
            of_steps = np.zeros((steps, min(together, variants - first)), np.int64)
            ends = nodes.step_ends.start
            _simulate_steps(of_graph, of_variants, first, of_steps.shape[1], ends, room, of_steps.ravel())
            earlier[first : first + together] = of_steps.T
        return earlier

    @cached_property
    def far_places(self) -> Ints:
        """The places of nodes, in order, that others wait for which come _REACH places later or more."""
        nodes, is_far = self.graph.nodes, np.zeros(self.graph.nodes.time.size, bool)
        _mark_far_places(nodes.order, nodes.position, self.graph.edges[:2], self.window, _REACH, is_far)
        return np.flatnonzero(is_far)


def _in_order(earlier: NDArray[np.int64], end: Ints) -> NDArray[np.int64]:
    """By how much steps are over earlier, where each is over no earlier than the one before it."""
    return end - np.maximum.accumulate(end - earlier, axis=1)


def _least_of_later(earlier: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least by which a step and all later ones end earlier: what later steps don't lose again."""
    return np.minimum.accumulate(earlier[:, ::-1], axis=1)[:, ::-1]


def _at_most(savings: NDArray[np.int64], mean: NDArray[np.float64], most: NDArray[np.float64]) -> NDArray[np.int64]:
    """The savings, less where their mean is more than what is possible: [variant, step].

    Their sum is rounded, and not each, so that equal means stay equal.
    """
    share = np.divide(most, mean, out=np.ones_like(mean), where=mean > most)
    until = np.floor(np.cumsum(savings * share[:, None], axis=1) + _ROUNDING_NS).astype(np.int64)
    return np.where(share[:, None] < 1, np.diff(until, axis=1, prepend=0), savings)
