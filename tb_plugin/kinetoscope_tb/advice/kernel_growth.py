"""Operators whose kernels take longer from step to step: what they work on grows, in size or in number."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..arrays.gather import NONE, scatter_add
from ..arrays.intervals import Ints
from ..measures.calls.kernel_work import KernelWork
from .facts import LEAST_SHARE, Facts
from .spread import growth, rises


@dataclass(frozen=True)
class KernelGrowth:
    """What kernels of some operators take longer than in the first steps.

    Attributes:
        names: The operators, or kernels without one, that grow; the one that grows most first.
        is_growing: Which kernels are theirs.
        less: By which share of its time each of these would be shorter if its operator took as long as at first.
        more_ns: How much longer they take than at first, in each step.
        rise_ns: (what they take in the first third of the steps, in the last), per step.
    """

    names: list[str]
    is_growing: NDArray[np.bool_]
    less: NDArray[np.float64]
    more_ns: Ints
    rise_ns: tuple[float, float]

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
            growth(times[grows].sum(axis=0)[facts.is_counted]),
        )


def _at_first(facts: Facts, times: Ints) -> float:
    """What an operator takes per step at first if it rises by much; else 0."""
    first, last = growth(times[facts.is_counted])
    return first if rises(first, last) and facts.share(last) >= LEAST_SHARE else 0.0
