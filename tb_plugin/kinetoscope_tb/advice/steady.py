"""Where warm-up ends: the first steps that take longer than the others by more than those differ."""

from __future__ import annotations

import numpy as np

from ..arrays.intervals import Ints

_LEAST_REST = 3  # steps: of fewer, a standard deviation says nothing
_LONGER = 1.25  # times the mean of the rest: less than that doesn't mislead anybody
_QUANTILES = (22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.50, 4.30, 4.14)
"""Student's t at 0.999 for 2, 3, … degrees of freedom: one of 1000 normal recordings is taken for a warm-up."""


def warm_up_steps(lengths: Ints) -> int:
    """How many of the first steps are warm-up; 0 if the rest is too short or too noisy to tell.

    Each of them exceeds the upper prediction limit of one more step of the rest (mean + t · s · √(1 + 1/n)).
    """
    for count in range(min(lengths.size // 2, lengths.size - _LEAST_REST), 0, -1):
        rest = lengths[count:].astype(float)
        if not rest.all():
            continue  # steps of no time, behind one that covers them, are no steady ones
        t = _QUANTILES[min(rest.size - 3, len(_QUANTILES) - 1)]
        limit = rest.mean() + t * rest.std(ddof=1) * np.sqrt(1 + 1 / rest.size)
        if lengths[:count].min() > max(limit, _LONGER * rest.mean()):
            return count
    return 0
