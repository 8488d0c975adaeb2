"""How much longer recorded steps take than those that the recorder timed without a profiler."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...arrays.gather import NONE
from ...arrays.intervals import union_of_rows
from ...trace import Trace
from ...trace.meta import positive_int
from ...trace.steps import step_noun

LARGE_OVERHEAD = 0.10
"""Of the steps: that much recording may decide what they wait for."""

_QUANTILES = (0.1, 0.25, 0.5, 0.75)
_FEW_FOR_QUARTILES = 6
_UNSTEADY = 0.25  # of the median: more between the quartiles is no noise that averages out
_FEW_STEPS = 3
"""Fewer steps without a profiler don't tell how long one usually takes.

The first ones of a training may compile and allocate, and so take longer: then recording seems to slow steps less than
it does. While the host runs ahead of its devices, steps are shorter than they can be in the long run, in which no step
takes less time than a device needs for it."""


@dataclass(frozen=True)
class UsualStep:
    """Medians of steps with and without the profiler.

    Attributes:
        usual_ns: How long a step takes without the profiler, and no less than a device is busy with a recorded one.
        usual_count: How many of them were timed.
        recorded_ns: How long the host takes for a recorded one.
        recorded_count: How many of them count: the complete ones, or all if none is complete.
        sure_ns: The same; where recorded ones differ much, no more than nine tenths of them take.
    """

    usual_ns: int
    usual_count: int
    recorded_ns: int
    recorded_count: int
    sure_ns: int

    @property
    def cost_ns(self) -> int:
        """What recording costs the host per step."""
        return self.sure_ns - self.usual_ns

    @property
    def other_ns(self) -> int:
        """By how much more than that the median recorded step takes longer: other work slows most of them."""
        return self.recorded_ns - self.sure_ns

    def mean_ns(self, recorded_ns: int) -> int:
        """How long the average step takes without the profiler: what exceptional ones add to it, they add there, too.

        Args:
            recorded_ns: How long the average recorded step takes.
        """
        return self.usual_ns + max(0, recorded_ns - self.sure_ns)


def usual_step(trace: Trace) -> UsualStep | None:
    """How long steps take without the profiler; None if recording isn't known to take much of them."""
    steps = _usual_step_of_host(trace)
    if steps is None:
        return None
    return _with_large_cost(replace(steps, usual_ns=max(steps.usual_ns, _busy_ns(trace) // trace.steps.height)))


def usual_host_ns(trace: Trace) -> int | None:
    """How long the host takes for a step without the profiler, be it ahead of the devices; None as above."""
    steps = _usual_step_of_host(trace)
    return steps.usual_ns if steps and _with_large_cost(steps) else None


def _with_large_cost(steps: UsualStep) -> UsualStep | None:
    """The steps if recording slows them; what slows some of them alone, such as other jobs, isn't that."""
    return steps if steps.cost_ns >= LARGE_OVERHEAD * steps.sure_ns else None


def _usual_step_of_host(trace: Trace) -> UsualStep | None:
    """What the recorder timed; None if that is too little."""
    usual = trace.meta.producer.get("usual_step")
    is_of_loop = step_noun(trace.steps) == "step" and trace.steps["name"].to_list() != ["all"]
    if not isinstance(usual, dict) or not is_of_loop:
        return None
    usual_ns, count = positive_int(usual.get("median_ns")), positive_int(usual.get("steps"))
    complete = trace.steps["is_complete"].to_numpy()
    counts = complete if complete.any() else np.ones_like(complete)
    start, end = (trace.steps[side].to_numpy()[counts] for side in ("host_start_ns", "host_end_ns"))
    if not usual_ns or count < _FEW_STEPS or not start.size:
        return None
    fast, low, median, high = (int(ns) for ns in np.quantile(end - start, _QUANTILES))
    is_unsteady = start.size >= _FEW_FOR_QUARTILES and high - low > _UNSTEADY * median
    sure_ns = fast if is_unsteady else median
    return UsualStep(usual_ns, count, median, int(start.size), sure_ns)


def _busy_ns(trace: Trace) -> int:
    """How long the busiest device runs what recorded calls launch: not what was queued before."""
    device, launch = (trace.device_events[name].to_numpy() for name in ("device", "launch"))
    start, dur = (trace.device_events[name].to_numpy() for name in ("start_ns", "dur_ns"))
    unions = (union_of_rows(start, dur, (device == number) & (launch != NONE)) for number in np.unique(device))
    return max((int((end - begin).sum()) for begin, end in unions), default=0)
