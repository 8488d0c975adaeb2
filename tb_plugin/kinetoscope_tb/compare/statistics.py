"""How much the means of a few steps of two recordings differ by chance: Welch's test at 99 %, for dependent steps.

The standard error of the difference of two means is sqrt(s₁²/n₁ + s₂²/n₂), with s the standard deviation of the values
of the steps and n their effective number. Times the 99.5 % quantile of Student's t it is the margin for 99 of 100 pairs
(B. L. Welch, Biometrika 34, 1947, for unequal variances; the degrees of freedom are Satterthwaite's).

Steps that follow each other resemble each other, so n of them are worth fewer independent ones. With the correlation r
of a step with the next, their mean is worth n (1 − r) / (1 + r) independent steps, their variance n (1 − r²) / (1 + r²)
(G. V. Bayley and J. M. Hammersley, 1946, for a first-order process). The estimate of r is biased by −(1 + 3 r) / n
(F. H. C. Marriott and J. A. Pope, Biometrika 41, 1954), which is corrected; a negative r counts as 0.

All of it is about the steps of these two recordings. What differs between processes of the same code is not in them.
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

_FEWEST_OF_BIAS = (
    8  # values; of fewer, r is too uncertain to multiply: the bias is taken as −1 / n, as of independent ones
)
_MOST_CORRELATION = 0.95


@dataclass(frozen=True)
class Spread:
    """Per row: the variance of its values in the sampled steps, their number, and the correlation of neighbors.

    Args:
        variance: Sample variance; NaN with fewer than two values.
        samples: Number of values.
        correlation: Of a value with the next one, 0 to 1.
        steps: Number of steps that the compared mean is taken of.
    """

    variance: Floats
    samples: Floats
    correlation: Floats
    steps: Floats

    @classmethod
    def of(cls, values: Floats) -> Spread:
        """The spread of the mean of each row of `values` (rows × steps, in order; NaN is no value)."""
        number = np.isfinite(values).sum(axis=1).astype(np.float64)
        or_zero = np.where(np.isfinite(values), values, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = or_zero.sum(axis=1) / number
            away = np.where(np.isfinite(values), values - mean[:, None], 0.0)
            squares = (away**2).sum(axis=1)
            variance = np.where(number > 1, squares / (number - 1), np.nan)
        return cls(variance, number, _correlation(away, squares, number), number)


def _correlation(away: Floats, squares: Floats, number: Floats) -> Floats:
    """The correlation of neighbors, without its bias."""
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = (away[:, 1:] * away[:, :-1]).sum(axis=1) / squares
        scale = np.where(number >= _FEWEST_OF_BIAS, 1 - 3 / number, 1.0)
        corrected_r = (estimate + 1 / number) / scale
    is_known = (number > 1) & (squares > 0)
    return np.where(is_known, np.clip(corrected_r, 0.0, _MOST_CORRELATION), 0.0)


def quantile(freedom: Floats) -> Floats:
    """Student's t for two-sided 99 %; its logarithm is interpolated linearly in 1 / freedom."""
    quantiles: Floats = np.exp(np.interp(-1 / freedom, -1 / _FREEDOM, np.log(_QUANTILE)))
    return quantiles


def margin(base: Spread, new: Spread) -> Floats:
    """What the difference of the means stays below by chance, per row; NaN unless both sides have two values."""
    with np.errstate(divide="ignore", invalid="ignore"):
        base_error, new_error = _squared_error(base), _squared_error(new)
        error = base_error + new_error
        freedom = error**2 / (base_error**2 / _freedom(base) + new_error**2 / _freedom(new))
        margins = np.where(error > 0, quantile(np.maximum(freedom, 1)) * np.sqrt(error), 0.0)
        is_known = (np.minimum(base.samples, new.samples) >= 2) & (base.steps > 0) & (new.steps > 0)
        return np.where(is_known, margins, np.nan)


def _squared_error(side: Spread) -> Floats:
    """The squared standard error of the mean; one step has no neighbor in its mean."""
    alone = side.variance / side.steps
    return np.where(side.steps > 1, alone * (1 + side.correlation) / (1 - side.correlation), alone)


def _freedom(side: Spread) -> Floats:
    square = side.correlation**2
    return np.maximum(side.samples * (1 - square) / (1 + square) - 1, 1.0)
