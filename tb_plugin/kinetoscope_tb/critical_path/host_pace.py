"""How long the host takes for a step while no device holds it up: in the long run, no step is shorter.

A recording is short. If the host is ahead of the device when it begins, a simulation with a faster device doesn't show
that the device would catch up, and then wait for the host in each step.

Recording slows the host: on an H100, recorded steps that wait for it took 1.4 to 1.8 times as long
(`samples/h100_pairs`). A saving is an upper bound, so where nothing says how long a step takes without the profiler,
the host is taken to need half of its recorded time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..arrays.intervals import Intervals, Ints, length_within, merge
from ..measures.recording.usual_step import usual_host_ns
from ..measures.time.step_subset import counted_steps, has_steps
from ..measures.time.threads import autograd_threads, main_thread
from ..trace import Trace
from .classes import SYNCHRONIZATION
from .edges import Kind
from .graph import Graph

_SLOWED = 2.0
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
        usual_ns: How long the host takes for a step without the profiler, if recording is known to slow it.
    """

    graph: Graph
    parts: NDArray[np.int8]
    start: Ints
    end: Ints
    is_main: NDArray[np.bool_]
    usual_ns: int | None

    @classmethod
    def of(cls, trace: Trace, graph: Graph, parts: NDArray[np.int8]) -> HostPace:
        """Return the pace of a trace's host; `parts` are the nodes' own_classes."""
        steps = counted_steps(trace) if has_steps(trace) else []
        start, end = (trace.steps[side].to_numpy()[steps] for side in ("host_start_ns", "host_end_ns"))
        is_main, main = autograd_threads(trace), main_thread(trace)
        is_main[main : main + 1] = True
        return cls(graph, parts, start, end, is_main, usual_host_ns(trace))

    @property
    def most_ns(self) -> float:
        """No less than what the host needs for a step; 0: unknown."""
        return self._without_profiler(float((self.end - self.start).sum()) / max(1, self.start.size))

    def shortest(self, variant: NDArray[np.int8], variants: int, percents: NDArray[np.uint8]) -> NDArray[np.float64]:
        """What the host needs for a step in each variant of `WhatIf.saved_by_variant`, on average, in ns."""
        of_host = slice(self.own_in_steps.size)
        in_percent = np.bincount(variant[of_host] + 1, self.own_in_steps * percents[of_host], minlength=variants + 1)
        saving = in_percent[1 : variants + 1] / 100
        return np.asarray(np.maximum(self.step_ns - saving / max(1, self.start.size), 0.0))

    @cached_property
    def step_ns(self) -> float:
        """What the host needs for a step, on average: without waits for devices and other ranks; 0: unknown."""
        in_calls = int(self.own_in_steps[self.parts[: self._own.size] == SYNCHRONIZATION].sum())
        at, waits = _waits(self.graph, self._own, self.is_main)
        begins = self.graph.nodes.boundaries.time[at] - self._own[at]
        wait_ns = length_within(self._steps, begins - waits, begins)
        whole = float((self.end - self.start).sum())
        return self._without_profiler(max(0.0, whole - in_calls - int(wait_ns.sum())) / max(1, self.start.size))

    @cached_property
    def own_in_steps(self) -> Ints:
        """How long each node of the host takes by itself in these steps, in ns."""
        time = self.graph.nodes.boundaries.time
        return np.asarray(length_within(self._steps, time - self._own, time))

    @cached_property
    def _own(self) -> Ints:
        return self.graph.delays()[: self.graph.nodes.boundaries.time.size]

    @property
    def _steps(self) -> Intervals:
        return merge([(self.start, self.end)])

    def _without_profiler(self, ns: float) -> float:
        return ns / _SLOWED if self.usual_ns is None else min(ns, self.usual_ns)


def _waits(graph: Graph, own: Ints, is_main: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """The host's nodes before which some threads wait for devices or other ranks, and how long before each."""
    boundaries, first = graph.nodes.boundaries, graph.first
    is_wait = np.zeros(len(Kind), bool)
    is_wait[list(_WAITS)] = True
    edges = np.flatnonzero(is_wait[graph.kind[: first[boundaries.time.size]]])
    at = np.searchsorted(first, edges, "right") - 1
    at = at[(first[at] == edges) & (at > 0)]
    thread = boundaries.thread
    at = at[is_main[thread[at]] & (thread[at] == thread[at - 1])]
    since = boundaries.time[at] - boundaries.time[at - 1] - own[at]
    return at[since > 0], since[since > 0]
