"""How long a step takes without the profiler, by what the recorder timed: `UsualStep.mean_ns`, on every screen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...arrays.gather import NONE
from ...arrays.intervals import Ints, union_of_rows
from ...trace import Trace
from ...trace.meta import positive_int
from ...trace.results import once_per_recording
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
_FIRST_STEPS = 8
"""Fewer steps without a profiler may be unlike later ones: they find batches that were loaded ahead."""
MOST_EVENT_NS = 15_000
"""The most that recording an event of the host costs.

Measured were 0.3 to 5 µs on the host of an H100 (`samples/h100_pairs`, `h100_causes`), and up to 7 µs on a CPU whose
cores were all busy. What recorded steps take longer than that explains, they take for another reason: the first steps
found data that had been loaded ahead, say.
"""


@dataclass(frozen=True)
class UsualStep:
    """A step with and without the profiler.

    Attributes:
        host_ns: How long the host takes for one without the profiler, be it ahead of the devices: the median.
        usual_count: How many of them were timed.
        busy_ns: How long a device is busy with a recorded one: in the long run, no step takes less.
        sure_ns: How long the host takes for a recorded one: the median; where they differ much, no more than nine
            tenths of them take.
        recorded_count: How many of them count: the complete ones, or all if none is complete.
        is_steady: Whether they don't differ much.
        most_cost_ns: The most that recording one can cost: by the events of its host where few were timed, else all.
    """

    host_ns: int
    usual_count: int
    busy_ns: int
    sure_ns: int
    recorded_count: int
    is_steady: bool
    most_cost_ns: int

    @property
    def is_explained(self) -> bool:
        """Whether recording explains all that a recorded step takes longer, or the device does."""
        return self.sure_ns - self.most_cost_ns <= max(self.host_ns, self.busy_ns)

    @property
    def is_slowed(self) -> bool:
        """Whether recording slows the step; what slows some steps alone, such as other jobs, isn't that."""
        return self._is_large(self._whole_ns)

    @property
    def is_host_slowed(self) -> bool:
        """Whether recording slows the host, be it ahead of the devices."""
        return self._is_large(max(self.host_ns, self.sure_ns - self.most_cost_ns))

    def mean_ns(self, recorded_ns: float) -> int:
        """The length of a step without the profiler: what a recorded step takes less what recording costs.

        That is what the median step takes longer, as far as its events explain it; what exceptional steps add to the
        mean, they add without the profiler, too. No step is shorter than a device is busy.

        Args:
            recorded_ns: How long some recorded steps take, on average.
        """
        return self._mean_ns(self._whole_ns, recorded_ns)

    def mean_of_host_ns(self, recorded_ns: float) -> int:
        """The same of the host's time, be it ahead of the devices: if these slow it, it waits in some steps alone."""
        return self._mean_ns(self.host_ns, recorded_ns) if self.is_slowed else self.host_ns

    @property
    def _whole_ns(self) -> int:
        return max(self.host_ns, self.busy_ns, self.sure_ns - self.most_cost_ns)

    def _mean_ns(self, usual_ns: int, recorded_ns: float) -> int:
        recorded_ns = round(recorded_ns)
        return min(recorded_ns, usual_ns + max(0, recorded_ns - self.sure_ns))

    def _is_large(self, usual_ns: int) -> bool:
        return self.sure_ns - usual_ns >= LARGE_OVERHEAD * self.sure_ns


def usual_step(trace: Trace) -> UsualStep | None:
    """How long steps take without the profiler; None if recording isn't known to take much of them."""
    steps = timed_step(trace)
    return steps if steps and steps.is_slowed else None


@once_per_recording
def timed_step(trace: Trace) -> UsualStep | None:
    """What the recorder timed, whatever recording costs; None if that is too little."""
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
    is_steady = start.size < _FEW_FOR_QUARTILES or high - low <= _UNSTEADY * median
    busy_ns = _busy_ns(trace) // trace.steps.height
    most_cost_ns = round(MOST_EVENT_NS * _host_events(trace, start, end)) if count < _FIRST_STEPS else median
    return UsualStep(usual_ns, count, busy_ns, median if is_steady else fast, int(start.size), is_steady, most_cost_ns)


def _host_events(trace: Trace, start: Ints, end: Ints) -> float:
    """How many events of the host begin in some steps, on average: operators, annotations, calls and allocations."""
    frames = (trace.host_events, trace.python_calls, trace.launches)
    times = [np.sort(frame["start_ns"].to_numpy()) for frame in frames] + [np.sort(trace.memory["start_ns"].to_numpy())]
    return sum(int((np.searchsorted(ns, end) - np.searchsorted(ns, start)).sum()) for ns in times) / start.size


def _busy_ns(trace: Trace) -> int:
    """How long the busiest device runs what recorded calls launch: not what was queued before."""
    device, launch = (trace.device_events[name].to_numpy() for name in ("device", "launch"))
    start, dur = (trace.device_events[name].to_numpy() for name in ("start_ns", "dur_ns"))
    unions = (union_of_rows(start, dur, (device == number) & (launch != NONE)) for number in np.unique(device))
    return max((int((end - begin).sum()) for begin, end in unions), default=0)
