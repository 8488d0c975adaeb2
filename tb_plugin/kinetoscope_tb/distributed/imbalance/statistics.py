"""What noise reaches: how much values spread from one to the next, and how far it carries any of many of them."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW_TO_COUNT = 16  # degrees of freedom below which medians say too little
SPREAD = 1.4826  # from the median of absolute deviations to a standard deviation
OF_MEDIAN = 1.2533  # standard error of a median ÷ that of a mean
EFFICIENCY = 0.37  # of the median absolute deviation


def spread_of(over: Floats) -> tuple[float, float]:
    """(the standard deviation of values from one to the next of the same line, its degrees of freedom).

    Told by the median change from one to the next, which knows nothing of the lines' typical values; unless there are
    so few that a median would say nothing. Of two lines of excesses, what one exceeds the other falls short of, so they
    count as one.

    Args:
        over: [line, number]: such as the excess of each rank in each step; NaN where there is none.
    """
    ranks, steps = over.shape
    freedom = (ranks if ranks > 2 else 1) * (steps - 1)
    if freedom < FEW_TO_COUNT:
        around = over - np.nanmean(over, axis=1)[:, None]
        return float(np.sqrt(np.nanmean(around**2) * steps / (steps - 1))), freedom
    change = float(np.nanmedian(np.abs(np.diff(over, axis=1))))
    return SPREAD * change / np.sqrt(2), EFFICIENCY * freedom


def quantile(tail: float, freedom: float) -> float:
    """Student's t beyond which lies `tail`, by the expansion of Cornish and Fisher (Abramowitz and Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(1 - tail)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2
