"""How steps differ: a cost is in every one, in a few that cause it, or grows; and the first ones may be warm-up.

Warm-up are the first steps that take longer than the others by more than those differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.intervals import Ints
from ..names import text

_FEWEST = 3  # steps: of fewer, none is an exception
_FEW = 0.5  # of the steps
_MOST = 0.8  # of the cost
_APART = 2.0  # times what any other step has: such steps aren't the tail of a distribution
_USUAL = 0.5  # of the mean: a step with less doesn't cost what is said of every one
_NEARLY = 0.95  # of the mean share: a step with less has another share
_LISTED = 3
_FEWEST_OF_TREND = 6
_RISES = 0.7  # rank correlation with the number of the step at least, however many there are
_STEADY = 0.95  # rank correlation
_BEYOND_CHANCE = 3.72  # normal deviates: noise alone is beyond that in one of 10,000 recordings
_TIMES = 1.5  # the last third to the first third
_LEAST_REST = 3  # steps: of fewer, a standard deviation says nothing
_LONGER = 1.25  # times the mean of the rest: less than that doesn't mislead anybody
_QUANTILES = (22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.50, 4.30, 4.14)
"""Student's t at 0.999 for 2, 3, … degrees of freedom: one of 1000 normal recordings is taken for a warm-up."""


_MORE_WORK = 0.3  # of what the first steps take longer; the rest may be what later steps overlap


@dataclass(frozen=True)
class Spread:
    """A cost per step, and the steps that it is about: all, or the few that cause most of it.

    Attributes:
        cost: Of each step that counts.
        length: Of each of these steps.
        least: The share of a step from which on the step has the cost.
        usual: The length of each of these steps that the share is of, if some do more for another reason.
    """

    cost: Ints
    length: Ints
    least: float
    usual: Ints | None = None

    @property
    def has(self) -> NDArray[np.bool_]:
        """Which steps have it; where a few have nearly all of it, and each a multiple of any other one, only these."""
        length = self.length if self.usual is None else self.usual
        has: NDArray[np.bool_] = (self.cost >= self.least * length) & (self.cost > 0)
        costs = np.sort(self.cost)[::-1].astype(np.float64)  # the largest first
        is_apart = costs[:-1] >= _APART * costs[1:]
        has_most = costs.cumsum()[:-1] >= _MOST * costs.sum()
        counts = np.flatnonzero(is_apart & has_most) + 1
        if self._are_few(counts[:1].sum()):
            has &= self.cost >= costs[counts[0] - 1]
        return has

    def _are_few(self, count: int) -> bool:
        return self.cost.size >= _FEWEST and 0 < count < _FEW * self.cost.size

    @property
    def is_rare(self) -> bool:
        """Whether a few steps have nearly all of it, so that nothing may be said of the others."""
        has = self.has
        return self._are_few(has.sum()) and bool(self.cost[has].sum() >= _MOST * self.cost.sum())

    @property
    def steps(self) -> NDArray[np.intp]:
        """The steps that it is about."""
        return np.flatnonzero(self.has) if self.is_rare else np.arange(self.cost.size)

    @property
    def cost_ns(self) -> float:
        """The mean over these."""
        return float(self.cost[self.steps].mean())

    @property
    def length_ns(self) -> float:
        """The mean length of these."""
        return float(self.length[self.steps].mean())

    @property
    def has_mean_share(self) -> bool:
        """Whether none of the steps that it is about has a much smaller share of it than they have together."""
        cost, length = (values[self.steps].astype(np.float64) for values in (self.cost, self.length))
        return bool((cost * length.sum() >= _NEARLY * cost.sum() * length).all())

    def steps_in_words(self, names: Sequence[str], noun: str) -> str:
        """Which steps a share is of: every step, the average step, step 25, step 25 and 4 others."""
        if not self.is_rare:
            have_share = (self.cost >= self.least * self.length).all()  # also where a step does more for another reason
            is_usual = have_share and self.has.all() and self.cost.min() >= _USUAL * self.cost.mean()
            return f"every {noun}" if is_usual else f"the average {noun}"
        step_names = [names[step] for step in self.steps]
        if len(step_names) > _LISTED:
            return f"{noun} {names[int(self.cost.argmax())]} and {len(step_names) - 1} others"
        return f"{noun}{'' if len(step_names) == 1 else 's'} {text.enumeration(step_names)}"

    @property
    def trend(self) -> str:
        """How it grows from step to step; empty if it doesn't."""
        first, last = growth(self.cost)
        if not rises(first, last):
            return ""
        return f", growing from {text.time(first)} in the first third of them to {text.time(last)} in the last"


def growth(values: NDArray[np.integer] | NDArray[np.floating]) -> tuple[float, float]:
    """(mean of the first third, mean of the last third) if values rise from step to step; (0, 0) if they don't.

    They rise if their ranks follow their order (Spearman's correlation) more than chance explains: its hyperbolic
    arctangent varies by √(1.06 / (n − 3)) (Fieller, Hartley and Pearson, Biometrika 44, 1957).
    """
    if values.size < _FEWEST_OF_TREND or np.ptp(values) == 0:
        return 0.0, 0.0
    least = max(_RISES, np.tanh(_BEYOND_CHANCE * np.sqrt(1.06 / (values.size - 3))))
    if _rank_correlation(values) < least:
        return 0.0, 0.0
    third = values.size // 3
    return float(values[:third].mean()), float(values[-third:].mean())


def is_steady(values: NDArray[np.integer] | NDArray[np.floating]) -> bool:
    """Whether nearly each value is above the ones before it."""
    return values.size >= _FEWEST_OF_TREND and np.ptp(values) > 0 and _rank_correlation(values) >= _STEADY


def _rank_correlation(values: NDArray[np.integer] | NDArray[np.floating]) -> float:
    """Spearman's correlation of values with their order; equal ones have the mean of their ranks."""
    ranks = pl.Series(values).rank("average").to_numpy()
    return float(np.corrcoef(ranks, np.arange(values.size))[0, 1])


def rises(first: float, last: float) -> bool:
    """Whether what grows from `first` to `last` is worth a word."""
    return last >= _TIMES * max(first, 1)


def warm_up_steps(lengths: Ints, work: Ints) -> int:
    """How many of the first steps are warm-up; 0 if the rest is too short or too noisy to tell.

    Each of them exceeds the upper prediction limit of one more step of the rest (mean + t · s · √(1 + 1/n)). They do
    more `work` than the rest, too: where the host runs ahead of the device, the first step only overlaps less.
    """
    count = _longer_steps(lengths)
    longer, more = (values[:count].mean() - values[count:].mean() if count else 0.0 for values in (lengths, work))
    return count if more >= _MORE_WORK * longer else 0


def _longer_steps(lengths: Ints) -> int:
    most = min(lengths.size // 2, lengths.size - _LEAST_REST)
    if most < 1:
        return 0
    counts = np.arange(1, most + 1)
    size = lengths.size - counts
    center = lengths.mean()
    sums, squares = (np.cumsum((lengths - center)[::-1] ** power)[::-1][counts] for power in (1, 2))
    mean = center + sums / size
    deviation = np.sqrt(np.maximum(squares - sums**2 / size, 0) / (size - 1))
    t = np.array(_QUANTILES)[np.minimum(size - _LEAST_REST, len(_QUANTILES) - 1)]
    limit = np.maximum(mean + t * deviation * np.sqrt(1 + 1 / size), _LONGER * mean)
    # Steps of no time, behind one that covers them, are no steady ones.
    takes_time = np.minimum.accumulate(lengths[::-1])[::-1][counts] > 0
    is_longer = (np.minimum.accumulate(lengths)[counts - 1] > limit) & takes_time
    return int(counts[is_longer].max(initial=0))
