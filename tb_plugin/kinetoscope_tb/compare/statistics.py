"""How much the means of a few steps differ by chance: Welch's test, at 99 %.

The standard error of the difference of two means is sqrt(s₁²/n₁ + s₂²/n₂), with s the standard deviation of the values
of the steps and n their number. Times the 99.5 % quantile of Student's t it is the margin that contains 99 of 100 pairs
of traces without a real difference (B. L. Welch, Biometrika 34, 1947, for unequal variances; the degrees of freedom
are Satterthwaite's). If only one side has several steps, its variance is used for both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Student's t, two-sided 99 %, by degrees of freedom; any table of the distribution has it.
_FREEDOM = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 40, 60, 120, np.inf])
_FEW = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169)
_QUANTILE = np.array([*_FEW, 3.055, 2.947, 2.845, 2.750, 2.704, 2.660, 2.617, 2.576])


@dataclass(frozen=True)
class Spread:
    """Per row: the variance of its values in the sampled steps, the number of samples, and of the mean's steps."""

    variance: Floats
    samples: Floats
    steps: Floats


def quantile(freedom: Floats) -> Floats:
    """Student's t for two-sided 99 %; its logarithm is interpolated linearly in 1 / freedom."""
    quantiles: Floats = np.exp(np.interp(-1 / freedom, -1 / _FREEDOM, np.log(_QUANTILE)))
    return quantiles


def margin(base: Spread, new: Spread) -> Floats:
    """The margin within which the difference of the means is noise, per row; NaN if no side has two steps."""
    with np.errstate(divide="ignore", invalid="ignore"):
        base_freedom, new_freedom = base.samples - 1, new.samples - 1
        base_variance = np.where(base_freedom >= 1, base.variance, new.variance)
        new_variance = np.where(new_freedom >= 1, new.variance, base.variance)
        # The borrowed variance adds no evidence: its side adds nothing to the degrees of freedom.
        base_error, new_error = base_variance / base.steps, new_variance / new.steps
        error = base_error + new_error
        larger_freedom = np.maximum(base_freedom, new_freedom)
        both = error**2 / (base_error**2 / base_freedom + new_error**2 / new_freedom)
        freedom = np.where(np.minimum(base_freedom, new_freedom) >= 1, both, larger_freedom)
        margins = np.where(error > 0, quantile(np.maximum(freedom, 1)) * np.sqrt(error), 0.0)
        is_estimable = (larger_freedom >= 1) & (base.steps > 0) & (new.steps > 0)
        return np.where(is_estimable, margins, np.nan)
