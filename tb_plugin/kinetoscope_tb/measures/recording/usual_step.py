"""How much longer recorded steps take than those that the recorder timed without a profiler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...trace import Trace
from ...trace.meta import positive_int
from ...trace.steps import step_noun

LARGE_OVERHEAD = 0.10
"""Of the steps: that much recording may decide what they wait for."""

_FEW_STEPS = 10
"""Fewer steps without a profiler don't tell how long one usually takes: the first ones compile and allocate."""


@dataclass(frozen=True)
class UsualStep:
    """Medians of steps with and without the profiler.

    Attributes:
        usual_ns: How long a step takes without the profiler.
        usual_count: How many of them were timed.
        recorded_ns: How long the host takes for a recorded one.
        recorded_count: How many of them count: the complete ones, or all if none is complete.
    """

    usual_ns: int
    usual_count: int
    recorded_ns: int
    recorded_count: int

    @property
    def cost_ns(self) -> int:
        """What recording costs the host per step."""
        return self.recorded_ns - self.usual_ns


def usual_step(trace: Trace) -> UsualStep | None:
    """How long steps take without the profiler; None if recording isn't known to take much of them."""
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
    steps = UsualStep(usual_ns, count, int(np.median(end - start)), int(start.size))
    return steps if steps.cost_ns >= LARGE_OVERHEAD * steps.recorded_ns else None
