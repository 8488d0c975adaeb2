"""When a GPU's clock fell while kernels ran, by samples of its clock.

A low clock alone proves nothing: an idle GPU lowers its clock, and raises it within milliseconds once work arrives. So
a sample counts only if kernels ran in most of the time from the sample before it to the one after it. Samples of such
time without a break form a loaded stretch. The clock fell where it is far below an earlier one of the same stretch, in
two samples at least, since one may be wrong. What is found is a least value: a clock that was low from the beginning of
a stretch isn't counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...arrays.intervals import Intervals, length_within
from .hardware_counters import HardwareCounter

LOW = 0.9  # of an earlier clock: power and temperature move the clock of a healthy GPU by a few percent
_LOADED = 0.9  # of the time between samples
_LONGEST_GAP = 10  # median times between samples; what happened in a longer one is unknown
_CLOCKS = {
    "SM Clock",
    "GPC Clock Frequency",
}  # of torch's Cuspy and of Nsight Systems; SMs run at the clock of their GPC

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Throttling:
    """The times in which the clock of a device was low.

    Args:
        start, end: The times.
        highest_mhz: The highest clock of a loaded stretch.
        lowest_mhz: The lowest clock in these times.
        kernel_ns: How long any kernel ran in them.
        share: Of the time in which any kernel ran.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    highest_mhz: float
    lowest_mhz: float
    kernel_ns: int
    share: float

    @property
    def length_ns(self) -> int:
        """The times together."""
        return int((self.end - self.start).sum())


def is_sm_clock(counter: HardwareCounter) -> bool:
    """Whether a counter is the clock of the SMs."""
    return counter.name in _CLOCKS and counter.unit == "MHz"


def throttling(clock: HardwareCounter, kernels: Intervals) -> Throttling | None:
    """When the clock of a device fell while kernels ran; None if no sample proves that it did.

    Args:
        clock: The samples of its clock.
        kernels: When any kernel of the device ran.
    """
    if clock.time_ns.size < 4 or not kernels[0].size:
        return None
    is_loaded = _loaded_samples(clock, kernels)
    earlier = _highest_before(clock.value, is_loaded)
    low = is_loaded & (np.where(is_loaded, clock.value, np.inf) < LOW * earlier)
    low &= np.append(low[1:], False) | np.append(False, low[:-1])
    if not low.any():
        return None
    edges = np.diff(np.concatenate([[0], low.astype(np.int8), [0]]))
    start, end = clock.time_ns[np.flatnonzero(edges > 0)], clock.time_ns[np.flatnonzero(edges < 0)]
    kernel_ns = int(length_within(kernels, start, end).sum())
    return Throttling(
        start,
        end,
        float(earlier[low].max()),
        float(clock.value[low].min()),
        kernel_ns,
        kernel_ns / int((kernels[1] - kernels[0]).sum()),
    )


def _loaded_samples(clock: HardwareCounter, kernels: Intervals) -> Flags:
    """Which samples have a value, and kernels in most of the time from the one before to the one after."""
    lengths = np.diff(clock.time_ns)
    busy = length_within(kernels, clock.time_ns[:-1], clock.time_ns[1:])
    is_full = (busy >= _LOADED * lengths) & (lengths <= _LONGEST_GAP * clock.interval_ns)
    is_known = np.nan_to_num(clock.value) > 0
    is_loaded: Flags = is_known & np.append(is_full, False) & np.append(False, is_full)
    return is_loaded


def _highest_before(value: NDArray[np.float64], is_loaded: Flags) -> NDArray[np.float64]:
    """The highest value up to each loaded sample in its stretch; 0 elsewhere."""
    values = np.where(is_loaded, value, 0.0)
    lift = 2 * float(values.max(initial=0.0)) * np.cumsum(~is_loaded)  # a stretch lies above all before it
    highest: NDArray[np.float64] = np.maximum.accumulate(values + lift) - lift
    return np.where(is_loaded, highest, 0.0)
