"""How far the means of a few steps differ by chance: Welch's test, at 99 %.

The standard error of the difference of two means is sqrt(s₁²/n₁ + s₂²/n₂), with s the standard deviation of the values
of the steps and n their number. Times the 99.5 % quantile of Student's t it is a margin within which 99 of 100 pairs
of recordings without any difference lie (B. L. Welch, Biometrika 34, 1947, for unequal variances; the degrees of
freedom are Satterthwaite's). Where only one side has several steps, its spread stands for both.
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
    """Of each row: the variance of its values in the sampled steps, how many those are, and of how many the mean is."""

    variance: Floats
    samples: Floats
    steps: Floats


def quantile(freedom: Floats) -> Floats:
    """Student's t for two-sided 99 %; between rows of the table its logarithm is linear in 1 / freedom."""
    found: Floats = np.exp(np.interp(-1 / freedom, -1 / _FREEDOM, np.log(_QUANTILE)))
    return found


def margin(base: Spread, new: Spread) -> Floats:
    """Within what the difference of the means is noise, per row; NaN where no side has two steps to tell."""
    with np.errstate(divide="ignore", invalid="ignore"):
        base_freedom, new_freedom = base.samples - 1, new.samples - 1
        base_variance = np.where(base_freedom >= 1, base.variance, new.variance)
        new_variance = np.where(new_freedom >= 1, new.variance, base.variance)
        # The borrowed variance is no second piece of evidence: its side adds nothing to the degrees of freedom.
        base_error, new_error = base_variance / base.steps, new_variance / new.steps
        error = base_error + new_error
        known = np.maximum(base_freedom, new_freedom)
        both = error**2 / (base_error**2 / base_freedom + new_error**2 / new_freedom)
        freedom = np.where(np.minimum(base_freedom, new_freedom) >= 1, both, known)
        found = np.where(error > 0, quantile(np.maximum(freedom, 1)) * np.sqrt(error), 0.0)
        is_told = (known >= 1) & (base.steps > 0) & (new.steps > 0)
        return np.where(is_told, found, np.nan)
