"""How much noise explains: the spread of values from one to the next, and Student's quantile for many of them."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEW_TO_COUNT = 16  # degrees of freedom below which medians are too uncertain
SPREAD = 1.4826  # from the median of absolute deviations to a standard deviation
OF_MEDIAN = 1.2533  # standard error of a median ÷ that of a mean
EFFICIENCY = 0.37  # of the median absolute deviation
_OUTLIER = 0.001  # how often noise alone is as far from the median


def spread_of(over: Floats) -> tuple[float, float]:
    """(the standard deviation of values from one to the next in the same row, its degrees of freedom).

    Estimated from the median absolute change, which doesn't depend on the rows' typical values; for few values from
    their variance. The excesses of two ranks mirror each other, so two rows count as one.

    Args:
        over: [row, number]: such as the excess of each rank in each step; NaN where there is none.

    Returns:
        (0, 0) if no row has two values.
    """
    rows = [row[~np.isnan(row)] for row in over]
    changes = np.concatenate([np.diff(row) for row in rows])
    freedom = changes.size if len(rows) > 2 else changes.size // len(rows)
    if not freedom:
        return 0.0, 0
    if freedom < FEW_TO_COUNT:
        squares = sum(float(np.sum((row - row.mean()) ** 2)) for row in rows if row.size)
        return float(np.sqrt(squares / changes.size)), freedom
    return float(SPREAD * np.median(np.abs(changes)) / np.sqrt(2)), EFFICIENCY * freedom


def without_outliers(rows: Floats) -> Floats:
    """The rows with NaN for values as far from their row's median as noise gets in one of a thousand rows.

    How far that is follows from the median of all these distances.

    Args:
        rows: [row, number]; NaN where there is none.
    """
    count = np.sum(~np.isnan(rows), axis=1)
    freedom = int(np.sum(np.maximum(count - 1, 0)))
    if not freedom:
        return rows
    away = np.abs(rows - np.nanmedian(rows, axis=1, keepdims=True))
    # The median of an odd number of values is one of them, at distance 0.
    distances = np.sort(away[~np.isnan(away)])[int(np.sum(count % 2)) :]
    most = quantile(_OUTLIER, EFFICIENCY * freedom) * SPREAD * float(np.median(distances))
    return np.where(away <= most, rows, np.nan)


def spread_without_outliers(rows: Floats) -> tuple[float, float]:
    """(the standard deviation of values around their row's mean, its degrees of freedom), without outliers.

    Returns:
        (0, 0) if no row has two values.
    """
    rows = without_outliers(rows[np.sum(~np.isnan(rows), axis=1) > 1])
    rows = rows[np.sum(~np.isnan(rows), axis=1) > 1]
    freedom = int(np.sum(~np.isnan(rows))) - len(rows)
    if not freedom:
        return 0.0, 0
    squares = float(np.nansum((rows - np.nanmean(rows, axis=1, keepdims=True)) ** 2))
    return float(np.sqrt(squares / freedom)), freedom


def mean_without_outliers(rows: Floats) -> Floats:
    """The mean of each row's values that are no outliers in that row."""
    means: Floats = np.array([np.nanmean(without_outliers(row[None, :])) for row in rows])
    return means


def quantile(tail: float, freedom: float) -> float:
    """Student's t with upper tail probability `tail`, by the Cornish-Fisher expansion (Abramowitz & Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(1 - tail)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, 1))
