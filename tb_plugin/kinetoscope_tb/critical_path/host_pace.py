"""How long the host takes for a step while no device holds it up: in the long run, no step is shorter.

A recording is short. Where the host is ahead of the device when it begins, the host could launch the recorded steps
later than it did, so their simulation doesn't show that it would fall behind in the steps after them.

Recording slows the host: on an H100, recorded steps that wait for it took 1.4 to 1.8 times as long
(`samples/h100_pairs`). A saving is an upper bound, so where nothing says how long a step takes without the profiler,
the host is taken to need half of its recorded time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather
from ..arrays.intervals import length_within, merge
from ..measures.recording.usual_step import usual_step
from ..measures.time.step_subset import counted_steps, has_steps
from ..measures.time.threads import autograd_threads, main_thread
from ..trace import Trace
from .classes import SYNCHRONIZATION
from .edges import Kind
from .graph import Graph

Ints = NDArray[np.int64]

_SLOWED = 2.0
_WAITS = (Kind.SYNC, Kind.FULL_QUEUE, Kind.COLLECTIVE)


@dataclass(frozen=True)
class HostPace:
    """The host's time per step.

    Attributes:
        step_ns: What it needs at least: on average over the counted steps, without waits for devices and other ranks,
            and without the profiler. 0: unknown.
        own: Per counted step, how long each node of the host takes by itself, in ns; 0 outside of these steps.
    """

    step_ns: float
    own: NDArray[np.float64]

    @classmethod
    def of(cls, trace: Trace, graph: Graph, parts: NDArray[np.int8]) -> HostPace:
        """Return the pace of a trace's host; `parts` are the nodes' own_classes."""
        boundaries = graph.nodes.boundaries
        steps = counted_steps(trace)
        start, end = (trace.steps[side].to_numpy()[steps] for side in ("host_start_ns", "host_end_ns"))
        if not has_steps(trace) or not steps:
            return cls(0.0, np.zeros(boundaries.time.size))
        within = merge([(start, end)])
        time, own = boundaries.time, graph.delays()[: boundaries.time.size]
        inside = length_within(within, time - own, time)
        waits = _waits(trace, graph, own)
        in_calls = np.where(parts[: own.size] == SYNCHRONIZATION, inside, 0)
        wait_ns = int((length_within(within, time - own - waits, time - own) + in_calls).sum())
        step_ns = max(0.0, (int((end - start).sum()) - wait_ns) / len(steps))
        usual = usual_step(trace)
        return cls(min(step_ns, usual.usual_ns) if usual else step_ns / _SLOWED, inside / len(steps))

    def shortest(self, variant: NDArray[np.int8], variants: int, percents: NDArray[np.uint8]) -> NDArray[np.float64]:
        """The host's time per step in each variant of `WhatIf.saved_by_variant`, in ns."""
        of_host = slice(self.own.size)
        less = self.own * percents[of_host] / 100
        is_chosen = variant[of_host] != NONE
        saving = np.bincount(variant[of_host][is_chosen], less[is_chosen], minlength=variants)[:variants]
        return np.asarray(np.maximum(self.step_ns - saving, 0.0))


def _waits(trace: Trace, graph: Graph, own: Ints) -> Ints:
    """How long the main thread and autograd's wait for devices or other ranks before each of the host's nodes."""
    boundaries = graph.nodes.boundaries
    edge = graph.driving_edges(slice(0, boundaries.time.size))
    is_wait = np.isin(gather(graph.kind, edge, missing=np.int8(Kind.SEQUENCE)), _WAITS)
    is_main = autograd_threads(trace)
    is_main[main_thread(trace)] = True
    is_wait &= is_main[boundaries.thread]
    is_wait[1:] &= boundaries.thread[1:] == boundaries.thread[:-1]
    since = np.diff(boundaries.time, prepend=boundaries.time[:1]) - own
    return np.where(is_wait, np.maximum(since, 0), 0)
