"""How much the means of a few steps of two recordings differ by chance: Welch's test at 99 %, for dependent steps.

The standard error of the difference of two means is sqrt(s₁²/n₁ + s₂²/n₂), with s the standard deviation of the values
of the steps and n their effective number. Times the 99.5 % quantile of Student's t it is the margin for 99 of 100 pairs
(B. L. Welch, Biometrika 34, 1947, for unequal variances; the degrees of freedom are Satterthwaite's).

Steps that follow each other resemble each other, so n of them are worth fewer independent ones. With the correlation r
of a step with the next, their mean is worth n (1 − r) / (1 + r) independent steps, their variance n (1 − r²) / (1 + r²)
(G. V. Bayley and J. M. Hammersley, 1946, for a first-order process). The estimate of r is biased by −(1 + 3 r) / n
(F. H. C. Marriott and J. A. Pope, Biometrika 41, 1954), which is corrected; a negative r counts as 0.

One step of three times the length, among six, hides from this test that every step of the other side takes half as
long. So the logarithms of positive values are tested, too, at 99.5 %. Where they differ beyond chance, and in the same
direction as the means, the margin is the part of the means' difference that theirs explains by chance. Both tests
together found a difference in 0.1 to 0.6 % of pairs of equal normal, log-normal and exponential distributions, 2 to 16
values each, in 1.7 % at most.

All of it is about the steps of these two recordings. What differs between processes of the same code is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Student's t, two-sided, by degrees of freedom; any table of the distribution has it.
_FREEDOM = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 40, 60, 120, np.inf])
_FEW = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169)
_AT_99 = np.array([*_FEW, 3.055, 2.947, 2.845, 2.750, 2.704, 2.660, 2.617, 2.576])
_FEW_OF_LOGARITHMS = (127.321, 14.089, 7.453, 5.598, 4.773, 4.317, 4.029, 3.833, 3.690, 3.581)
_AT_99_5 = np.array([*_FEW_OF_LOGARITHMS, 3.428, 3.286, 3.153, 3.030, 2.971, 2.915, 2.860, 2.807])

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
        log_mean, log_variance, log_correlation: Of the logarithms of the values; NaN unless all are positive.
    """

    variance: Floats
    samples: Floats
    correlation: Floats
    steps: Floats
    log_mean: Floats
    log_variance: Floats
    log_correlation: Floats

    @classmethod
    def of(cls, values: Floats) -> Spread:
        """The spread of the mean of each row of `values` (rows × steps, in order; NaN is no value)."""
        number = np.isfinite(values).sum(axis=1).astype(np.float64)
        _, variance, correlation = _moments(values, number)
        is_positive = np.all((values > 0) | ~np.isfinite(values), axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithms = np.where(is_positive, np.log(values), np.nan)
        of_logarithms = _moments(logarithms, np.where(is_positive[:, 0], number, 0.0))
        return cls(variance, number, correlation, number, *of_logarithms)


def _moments(values: Floats, number: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and correlation of the values of each row."""
    or_zero = np.where(np.isfinite(values), values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = or_zero.sum(axis=1) / number
        away = np.where(np.isfinite(values), values - mean[:, None], 0.0)
        squares = (away**2).sum(axis=1)
        variance = np.where(number > 1, squares / (number - 1), np.nan)
    return mean, variance, _correlation(away, squares, number)


def _correlation(away: Floats, squares: Floats, number: Floats) -> Floats:
    """The correlation of neighbors, without its bias."""
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = (away[:, 1:] * away[:, :-1]).sum(axis=1) / squares
        scale = np.where(number >= _FEWEST_OF_BIAS, 1 - 3 / number, 1.0)
        corrected_r = (estimate + 1 / number) / scale
    is_known = (number > 1) & (squares > 0)
    return np.where(is_known, np.clip(corrected_r, 0.0, _MOST_CORRELATION), 0.0)


def quantile(freedom: Floats, of_freedom: Floats = _AT_99) -> Floats:
    """Student's t, for two-sided 99 % or by another table; its logarithm is interpolated linearly in 1 / freedom."""
    quantiles: Floats = np.exp(np.interp(-1 / freedom, -1 / _FREEDOM, np.log(of_freedom)))
    return quantiles


def margin(base: Spread, new: Spread, delta: Floats) -> Floats:
    """What the difference of the means stays below by chance, per row; NaN unless both sides have two values.

    Args:
        base: Of one side.
        new: Of the other.
        delta: The difference of the compared means, new − base.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        margins = _welch(base, new, (base.variance, new.variance), (base.correlation, new.correlation), _AT_99)
        variances, correlations = (base.log_variance, new.log_variance), (base.log_correlation, new.log_correlation)
        of_logarithms = new.log_mean - base.log_mean
        by_chance = _welch(base, new, variances, correlations, _AT_99_5) / np.abs(of_logarithms)
        is_beyond = (by_chance < 1) & (np.sign(of_logarithms) == np.sign(delta))
        is_beyond &= np.minimum(base.steps, new.steps) > 1  # a step alone isn't what its side usually takes
        margins = np.where(is_beyond, np.fmin(margins, np.abs(delta) * by_chance), margins)
        is_known = (np.minimum(base.samples, new.samples) >= 2) & (base.steps > 0) & (new.steps > 0)
        return np.where(is_known, margins, np.nan)


def _welch(
    base: Spread, new: Spread, variances: tuple[Floats, Floats], correlations: tuple[Floats, Floats], table: Floats
) -> Floats:
    """The margin of the difference of two means, from the variances and correlations of their values."""
    errors = [_squared_error(side, *of) for side, *of in zip((base, new), variances, correlations, strict=True)]
    freedoms = [_freedom(side, of) for side, of in zip((base, new), correlations, strict=True)]
    error = errors[0] + errors[1]
    freedom = error**2 / (errors[0] ** 2 / freedoms[0] + errors[1] ** 2 / freedoms[1])
    return np.where(
        error > 0, quantile(np.maximum(freedom, 1), table) * np.sqrt(error), np.where(error == 0, 0.0, error)
    )


def _squared_error(side: Spread, variance: Floats, correlation: Floats) -> Floats:
    """The squared standard error of the mean; one step has no neighbor in its mean."""
    alone = variance / side.steps
    return np.where(side.steps > 1, alone * (1 + correlation) / (1 - correlation), alone)


def _freedom(side: Spread, correlation: Floats) -> Floats:
    square = correlation**2
    return np.maximum(side.samples * (1 - square) / (1 + square) - 1, 1.0)
