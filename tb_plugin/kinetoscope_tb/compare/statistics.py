"""How much the means of a few steps of two recordings differ by chance: Welch's test at 99 %, for dependent steps.

The standard error of the difference of two means is the root of the sum of both squared errors. Times the 99.5 %
quantile of Student's t it is the margin for 99 of 100 pairs (B. L. Welch, Biometrika 34, 1947, for unequal variances;
the degrees of freedom are Satterthwaite's).

Steps that follow each other resemble each other, so n of them are worth fewer independent ones. How much, a few steps
hardly show: the estimate of the correlation r of a step with the next is as good as nothing, and an error that trusts
it is too small where it is low by chance, and without any use where it is high by chance. So the error is computed for
each r from 0 to 0.95, as of a first-order process: from the residuals of generalized least squares, of which n − 1 are
free whatever r is. A large r makes the mean uncertain, but then neighbors differ little, which bounds how far the mean
is off. The error is the mean of these, weighted by how probable each r is after these steps (restricted likelihood,
H. D. Patterson and R. Thompson, Biometrika 58, 1971), with weights √(1 − r) before them: strong ones are rarer.

No such process is a clock that goes on falling. So the margin isn't below the drift of both sides together: what the
line fitted to the steps of each rises or falls from the first to the last. Two recordings that begin alike and drift in
opposite directions differ by half of that.

One step of three times the length, among six, hides from this test that every step of the other side takes half as
long. So the logarithms of positive values are tested, too. Where they differ beyond chance, and in the same direction
as the means, the margin is the part of the means' difference that theirs explains by chance.

All of it is about the steps of these two recordings. What differs between processes of the same code is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Student's t, two-sided, by degrees of freedom; any table of the distribution has it.
_FREEDOM = np.array([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 40, 60, 120, np.inf])
_FEW = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169)
_AT_99 = np.array([*_FEW, 3.055, 2.947, 2.845, 2.750, 2.704, 2.660, 2.617, 2.576])

_CORRELATIONS = np.arange(20) / 20


class Moments(NamedTuple):
    """What is known, per row, of the mean of values in the order of steps."""

    mean: Floats
    variance: Floats  # of the values
    error: Floats  # of the mean, squared
    drift: Floats  # how far the line fitted to the values rises or falls from the first to the last


@dataclass(frozen=True)
class Spread:
    """Per row: how its values vary over the sampled steps, and how uncertain that leaves their mean.

    Args:
        variance: Sample variance; NaN with fewer than two values.
        samples: Number of values.
        error: Squared standard error of the mean of the values.
        drift: How far the line fitted to the values rises or falls from the first to the last.
        steps: Number of steps that the compared mean is taken of.
        log_mean, log_variance, log_error, log_drift: Of the logarithms of the values; NaN unless all are positive.
    """

    variance: Floats
    samples: Floats
    error: Floats
    drift: Floats
    steps: Floats
    log_mean: Floats
    log_variance: Floats
    log_error: Floats
    log_drift: Floats

    @classmethod
    def of(cls, values: Floats) -> Spread:
        """The spread of the mean of each row of `values` (rows × steps, in order; NaN is no value)."""
        is_value = np.isfinite(values)
        number = is_value.sum(axis=1).astype(np.float64)
        in_front = np.take_along_axis(values, np.argsort(~is_value, axis=1, kind="stable"), axis=1)
        amounts = _moments(in_front, number)
        is_positive = np.all((values > 0) | ~is_value, axis=1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            logarithms = np.where(is_positive, np.log(in_front), np.nan)
        of_logarithms = _moments(logarithms, np.where(is_positive[:, 0], number, 0.0))
        return cls(amounts.variance, number, amounts.error, amounts.drift, number, *of_logarithms)


def _moments(values: Floats, number: Floats) -> Moments:
    """The moments of each row, whose first `number` values are finite and all others aren't."""
    or_zero = np.where(np.isfinite(values), values, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = or_zero.sum(axis=1) / number
        away = np.where(np.isfinite(values), values - mean[:, None], 0.0)
        squares = (away**2).sum(axis=1)
        is_known = number > 1
        error = np.where(squares > 0, _error(away, squares, number), 0.0)
        from_middle = np.arange(values.shape[1]) - (number[:, None] - 1) / 2
        slope = (away * from_middle).sum(axis=1) / (number * (number**2 - 1) / 12)
        drift = np.abs(slope) * (number - 1)
        variance = squares / (number - 1)
    return Moments(mean, *(np.where(is_known, amount, np.nan) for amount in (variance, error, drift)))


def _error(away: Floats, squares: Floats, number: Floats) -> Floats:
    """The squared standard error of the mean of each row: of each possible correlation, by how probable it is.

    Args:
        away: How far each value is from the mean of its row; 0 for none.
        squares: The sum of their squares.
        number: The number of values.
    """
    last = np.take_along_axis(away, np.maximum(number - 1, 0).astype(np.int64)[:, None], axis=1)[:, 0]
    ends, ends_squared = away[:, 0] + last, away[:, 0] ** 2 + last**2
    neighbors = (away[:, 1:] * away[:, :-1]).sum(axis=1)
    r = _CORRELATIONS[:, None]
    steps_worth = (number * (1 - r) + 2 * r) / (1 + r)  # the sum of the inverse of the matrix of correlations
    residuals = ((1 + r**2) * squares - r**2 * ends_squared - 2 * r * neighbors) / (1 - r**2)
    residuals -= (r * ends / (1 + r)) ** 2 / steps_worth  # from the mean by generalized least squares
    of_mean = ((1 + r) / (1 - r) - 2 * r * (1 - r**number) / (number * (1 - r) ** 2)) / number
    errors = residuals / (number - 1) * of_mean
    logarithm = -(number - 1) / 2 * np.log(residuals * (1 - r**2)) - np.log(steps_worth) / 2 + np.log(1 - r) / 2
    weights = np.exp(logarithm - logarithm.max(axis=0))
    mean_error: Floats = (weights * np.sqrt(errors)).sum(axis=0) / weights.sum(axis=0)
    return mean_error**2


def quantile(freedom: Floats) -> Floats:
    """Student's t for two-sided 99 %; its logarithm is interpolated linearly in 1 / freedom."""
    quantiles: Floats = np.exp(np.interp(-1 / freedom, -1 / _FREEDOM, np.log(_AT_99)))
    return quantiles


def margin(base: Spread, new: Spread, delta: Floats) -> Floats:
    """What the difference of the means stays below by chance, per row; NaN unless both sides have two values.

    Args:
        base: Of one side.
        new: Of the other.
        delta: The difference of the compared means, new − base.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        margins = np.fmax(_welch(base, new, *(_squared_error(side) for side in (base, new))), base.drift + new.drift)
        of_logarithms = _welch(base, new, base.log_error, new.log_error)
        of_logarithms = np.fmax(of_logarithms, base.log_drift + new.log_drift)
        log_delta = new.log_mean - base.log_mean
        by_chance = of_logarithms / np.abs(log_delta)
        is_beyond = (by_chance < 1) & (np.sign(log_delta) == np.sign(delta))
        is_beyond &= np.minimum(base.steps, new.steps) > 1  # a step alone isn't what its side usually takes
        margins = np.where(is_beyond, np.fmin(margins, np.abs(delta) * by_chance), margins)
        is_known = (np.minimum(base.samples, new.samples) >= 2) & (base.steps > 0) & (new.steps > 0)
        return np.where(is_known, margins, np.nan)


def _welch(base: Spread, new: Spread, base_error: Floats, new_error: Floats) -> Floats:
    """The margin of the difference of two means, from their squared errors."""
    error = base_error + new_error
    freedom = error**2 / (base_error**2 / (base.samples - 1) + new_error**2 / (new.samples - 1))
    return np.where(error > 0, quantile(np.maximum(freedom, 1)) * np.sqrt(error), np.where(error == 0, 0.0, error))


def _squared_error(side: Spread) -> Floats:
    """The squared standard error of the compared mean; that of one step is the variance."""
    return np.where(side.steps > 1, side.error, side.variance / side.steps)
