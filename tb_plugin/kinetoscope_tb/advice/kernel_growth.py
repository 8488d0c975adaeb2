"""Operators whose kernels take longer from step to step: what they work on grows, in size or in number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE, scatter_add
from ..arrays.intervals import Ints
from ..measures.calls.kernel_work import KernelWork
from .facts import LEAST_SHARE, Facts
from .spread import growth, is_steady, rises


@dataclass(frozen=True)
class KernelGrowth:
    """What kernels of some operators take longer than in the first steps.

    Attributes:
        names: The operators, or kernels without one, that grow; the one that grows most first.
        is_growing: Which kernels are theirs.
        less: By which share of its time each of these would be shorter if its operator took as long as at first.
        more_ns: How much longer they take than at first, in each step.
        times_ns: What they take in each step that counts.
        step: The number of each of these steps, as it is marked.
    """

    names: list[str]
    is_growing: NDArray[np.bool_]
    less: NDArray[np.float64]
    more_ns: Ints
    times_ns: Ints
    step: Ints

    @property
    def rise_ns(self) -> tuple[float, float]:
        """(what they take in the first third of the steps, in the last), per step."""
        return growth(self.times_ns)

    @property
    def slope_ns(self) -> float:
        """By how much longer they take from step to step, by least squares; 0 if they don't grow steadily."""
        return float(np.polyfit(self.step, self.times_ns, 1)[0]) if is_steady(self.times_ns) else 0.0

    @classmethod
    def of(cls, facts: Facts, work: KernelWork, is_free: NDArray[np.bool_]) -> KernelGrowth:
        """Look at the kernels that no other rule claimed; of several devices together."""
        names = [group.name or group.kernel for group in work.groups]
        distinct, operator = np.unique(names, return_inverse=True)
        of_kernel = operator[work.group]
        step = facts.trace.device_events["step"].to_numpy()[facts.kernel_rows]
        steps = facts.length.size
        index = np.where(is_free, of_kernel * steps + step, NONE)
        times = scatter_add(index, facts.kernels["dur_ns"].to_numpy(), distinct.size * steps).reshape(
            distinct.size, steps
        )
        first = np.array([_at_first(facts, own) for own in times])
        more = np.where(first[:, None] > 0, np.maximum(times - first[:, None], 0), 0).astype(np.int64)
        grows = first > 0
        is_growing = is_free & grows[of_kernel]
        less = (more / np.maximum(times, 1))[of_kernel, step] * is_growing
        order = np.argsort(-more.sum(axis=1), kind="stable")[: int(grows.sum())]
        return cls(
            distinct[order].tolist(),
            is_growing,
            less,
            more.sum(axis=0),
            times[grows].sum(axis=0)[facts.is_counted],
            _numbers(facts),
        )


def _numbers(facts: Facts) -> Ints:
    """The number of each step that counts, as it is marked: marks may be missing; else its place in their order."""
    rows, names = np.flatnonzero(facts.is_counted), facts.windows.names
    numbers = [int(names[row]) for row in rows if names[row].isdecimal()]
    is_in_order = len(numbers) == rows.size and bool((np.diff(numbers) > 0).all())
    return np.array(numbers, np.int64) if is_in_order else rows


def _at_first(facts: Facts, times: Ints) -> float:
    """What an operator takes per step at first if it rises by much; else 0."""
    first, last = growth(times[facts.is_counted])
    return first if rises(first, last) and facts.share(last) >= LEAST_SHARE else 0.0
