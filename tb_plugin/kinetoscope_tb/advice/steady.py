"""Where warm-up ends: the first steps that take longer than the others by more than those differ."""

from __future__ import annotations

import numpy as np

from ..arrays.intervals import Ints

_LEAST_REST = 3  # steps: of fewer, a standard deviation says nothing
_LONGER = 1.25  # times the mean of the rest: less than that doesn't mislead anybody
_QUANTILES = (22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.50, 4.30, 4.14)
"""Student's t at 0.999 for 2, 3, … degrees of freedom: one of 1000 normal recordings is taken for a warm-up."""


_MORE_WORK = 0.3  # of what the first steps take longer; the rest may be what later steps overlap


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
