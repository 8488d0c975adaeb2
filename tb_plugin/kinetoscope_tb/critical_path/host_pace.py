"""How long the host takes for a step while no device holds it up: in the long run, no step is shorter.

A recording is short. If the host is ahead of the device when it begins, a simulation with a faster device doesn't show
that the device would catch up, and then wait for the host in each step.

Recording slows the host: on an H100, recorded steps that wait for it took 1.4 to 1.8 times as long
(`samples/h100_pairs`). Where the recorder timed steps without the profiler, the difference is shared out among the
beginnings and ends of ranges of the main thread and of autograd's: each event costs about as much, whatever it holds. A
saving is an upper bound, so where nothing says how long a step takes without the profiler, the host is taken to need
half of its recorded time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays.intervals import Intervals, Ints, length_within, merge
from ..arrays.native import Function
from ..measures.recording.usual_step import UsualStep, timed_step
from ..measures.time.step_subset import counted_steps, has_steps
from ..measures.time.threads import autograd_threads, main_thread
from ..trace import Trace
from .classes import HOST_COMMUNICATION, SYNCHRONIZATION
from .edges import Kind
from .graph import Graph

_count_own_times = Function("count_own_times")
_find_own_times = Function("own_times")
_find_percents_of_delays = Function("percents_of_delays")
_sum_savings = Function("sum_savings_of_host")

_SLOWED = 2.0
_MOST_PERCENT = 90
"""Of the time before the begin or end of a range: recording isn't taken to be all of it."""
_MOST_EVENT_NS = 3_000
"""Recording the begin or end of a range takes 0.5 to 1.2 µs if nothing else slows the host (`samples/h100_pairs`)."""
_NODES_AT_ONCE = 1 << 16
_WAITS = (Kind.SYNC, Kind.FULL_QUEUE, Kind.COLLECTIVE)


@dataclass(frozen=True)
class HostPace:
    """The host's time per step.

    Attributes:
        graph: The graph of the trace.
        parts: The class of each node's own delay.
        start: When the host begins each counted step; none if no step was marked.
        end: When it ends it.
        is_main: For each thread whether it is the main one or one of autograd's.
        usual: How long a step takes without the profiler, if recording is known to slow the host.
    """

    graph: Graph
    parts: NDArray[np.int8]
    start: Ints
    end: Ints
    is_main: NDArray[np.bool_]
    usual: UsualStep | None

    @classmethod
    def of(cls, trace: Trace, graph: Graph, parts: NDArray[np.int8]) -> HostPace:
        """Return the pace of a trace's host; `parts` are the nodes' own_classes."""
        steps = counted_steps(trace) if has_steps(trace) else []
        start, end = (trace.steps[side].to_numpy()[steps] for side in ("host_start_ns", "host_end_ns"))
        is_main, main = autograd_threads(trace).copy(), main_thread(trace)
        is_main[main : main + 1] = True
        usual = timed_step(trace)
        return cls(graph, parts, start, end, is_main, usual if usual and usual.is_host_slowed else None)

    @property
    def most_ns(self) -> float:
        """No less than what the host needs for a step; 0: unknown."""
        return self._without_profiler(self._recorded_ns)

    @cached_property
    def recording(self) -> NDArray[np.uint8]:
        """Which part of the delay of each node of the host recording costs, in percent; empty: none is known."""
        if not self._recording_ns:
            return np.empty(0, np.uint8)
        graph, boundaries = self.graph, self.graph.nodes.boundaries
        event_ns = self._event_ns(self._recording_ns * self.start.size)
        recording = np.empty(boundaries.time.size, np.uint8)
        edges = graph.first, graph.predecessor, graph.nodes.time
        _find_percents_of_delays(*edges, boundaries.first, self.is_main, event_ns, _MOST_PERCENT, recording)
        return recording

    def also_slowed(self, recording: NDArray[np.uint8], rest_ns: float) -> NDArray[np.uint8]:
        """The same, where recording costs more than events explain: all that the host does is slower alike.

        So are collectives through the host: they take the cores' time, and wait for ranks that may be recorded, too.

        Args:
            recording: What events explain, in percent.
            rest_ns: What recording costs besides, per step.
        """
        boundaries, slower_ns, is_slower = self.graph.nodes.boundaries, 0.0, np.empty(recording.size, bool)
        for nodes in self._runs:
            own_ns = self._own_ns(nodes)
            which = boundaries.are_of(self.is_main, nodes) | (self.parts[nodes] == HOST_COMMUNICATION)
            is_slower[nodes] = which
            slower_ns += float(np.dot(own_ns[which], 1 - recording[nodes][which] / 100))
        left_ns = slower_ns / max(1, self.start.size)
        share = min(rest_ns / left_ns, 1.0) if left_ns else 0.0
        more = (100 - np.arange(100, -1, -1) * (1 - share)).round().astype(np.uint8)
        return np.where(is_slower, more[recording], recording)

    def shortest(
        self, variant: NDArray[np.int8], variants: int, percents: NDArray[np.uint8], recording: NDArray[np.uint8]
    ) -> NDArray[np.float64]:
        """What the host needs for a step in each variant of `WhatIf.saved_by_variant`, on average, in ns.

        Args:
            variant: The variant that each node belongs to; empty: each to all.
            variants: How many there are.
            percents: By how much the delay of each node is shorter in its variant, or in each: [variant, node].
            recording: Which part of it is what recording costs; empty: none is known.
        """
        savings = np.zeros(variants)
        changes = variant, percents.ravel(), self.graph.nodes.time.size, recording
        _sum_savings(*self._own, self._boundaries, *changes, _NODES_AT_ONCE, np.empty(variants), savings)
        return np.asarray(np.maximum(self.step_ns - savings / max(1, self.start.size), 0.0))

    @cached_property
    def step_ns(self) -> float:
        """What the host needs for a step, on average: without waits for devices and other ranks; 0: unknown."""
        return self._without_profiler(self._recorded_without_waits_ns)

    @property
    def _recorded_ns(self) -> float:
        """The host's time for a recorded step, on average."""
        return float((self.end - self.start).sum()) / max(1, self.start.size)

    @cached_property
    def _recording_ns(self) -> float:
        """What recording costs the host per step, be it ahead of the devices or not; 0: nothing is known."""
        if self.usual is None or not self.usual.is_slowed:
            return 0.0
        whole_ns = self._recorded_ns
        of_host_ns = self._recorded_without_waits_ns - self.usual.mean_of_host_ns(whole_ns)
        cost_ns = max(0.0, of_host_ns, whole_ns - self.usual.mean_ns(whole_ns))
        return min(cost_ns, float(self.usual.most_cost_ns))

    @cached_property
    def _recorded_without_waits_ns(self) -> float:
        begins, waits = _waits(self.graph, self.is_main)
        wait_ns = self._own_times[0] + int(length_within(self._steps, begins - waits, begins).sum())
        return max(0.0, self._recorded_ns - wait_ns / max(1, self.start.size))

    @property
    def _boundaries(self) -> int:
        return int(self.graph.nodes.boundaries.time.size)

    @property
    def _runs(self) -> Iterator[slice]:
        """The nodes of the host by runs: arrays of all of them take much memory, and these fit into a cache."""
        for first in range(0, self._boundaries, _NODES_AT_ONCE):
            yield slice(first, min(first + _NODES_AT_ONCE, self._boundaries))

    def _own_ns(self, nodes: slice) -> Ints:
        """How long each of some nodes takes in these steps, since the last of what it waited for."""
        own_ns = np.empty(nodes.stop - nodes.start, np.int64)
        _find_own_times(*self._own, nodes.start, own_ns)
        return own_ns

    @cached_property
    def _own(self) -> tuple[object, ...]:
        """What compiled functions take to say that: edges, times of nodes, and the steps' union."""
        start, end = self._steps
        before = np.append(0, np.cumsum(end - start))
        return self.graph.first, self.graph.predecessor, self.graph.nodes.time, start, end, before

    @cached_property
    def _own_times(self) -> tuple[int, Ints]:
        """How long nodes take that wait in calls, in all; and how many of main threads take each time, in ns.

        The last one is how many take as long or longer.
        """
        counts, threads = np.zeros(2 * _MOST_EVENT_NS + 1, np.int64), self.graph.nodes.boundaries.first
        return _count_own_times(*self._own, threads, self.is_main, self.parts, SYNCHRONIZATION, counts), counts

    def _event_ns(self, whole_ns: float) -> int:
        """How much of each delay of main threads is recording, at most, so that all of them have the whole."""
        counts = self._own_times[1]
        most = np.arange(counts.size) * (_MOST_PERCENT / 100)
        return bisect_left(range(_MOST_EVENT_NS), whole_ns, lo=1, key=lambda ns: float(counts @ np.minimum(most, ns)))

    @property
    def _steps(self) -> Intervals:
        return merge([(self.start, self.end)])

    def _without_profiler(self, ns: float) -> float:
        if self.usual is None:
            return ns / _SLOWED
        return min(max(0.0, ns - self._recording_ns), self.usual.mean_of_host_ns(self._recorded_ns))


def _waits(graph: Graph, is_main: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """When some threads' waits for devices or other ranks end, and how long each of these lasts."""
    boundaries, first = graph.nodes.boundaries, graph.first
    is_wait = np.zeros(len(Kind), bool)
    is_wait[list(_WAITS)] = True
    edges = np.flatnonzero(is_wait[graph.kind[: first[boundaries.time.size]]]).astype(np.int32)
    at = np.searchsorted(first, edges, "right") - 1
    at = at[(first[at] == edges) & (at > 0)]
    thread = boundaries.thread_of(at)
    at = at[is_main[thread] & (boundaries.first[thread] < at)]
    ends = boundaries.time[at] - graph.delays_of(at)
    waits = ends - boundaries.time[at - 1]
    return ends[waits > 0], waits[waits > 0]
