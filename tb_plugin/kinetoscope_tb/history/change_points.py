"""Where the level of a series of runs changed: a window test on logarithms, run by run.

After each run, the mean of the last 4, 16 and 64 values is compared with the mean of all values before them since the
last change, by Student's t with the variance within both; the p-value of t is compared as a normal deviate (D. L.
Wallace, Bounds on normal approximations to Student's and the chi-square distributions, 1959). The limit is chosen by
simulation, so that in a whole history, of the points that later runs confirm, at most one in `AVERAGE_RUN_LENGTH` runs
is false, also with heavy tails; before that, about twice as many are. Against these tails,
values far from the median are clipped first, so that a few odd runs are no change of level. `make bench ARGS=--history`
measures it.

A change is placed where both sides vary least around their means. Points that the later runs don't confirm are dropped.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

AVERAGE_RUN_LENGTH = 1000  # runs to a false point of a whole history, at least
FEWEST_BEFORE = 8  # runs that a change is measured from
WINDOWS = np.array([4, 16, 64])
FEWEST_RUNS = FEWEST_BEFORE + int(WINDOWS[0])
POWER = 0.95  # share of the cases in which a change is seen

_LIMIT = 3.2  # of the normal deviate
_CLIPPED_BEYOND = 2.5  # standard deviations
_FEWEST_AFTER = 2  # runs of a level
_QUARTILES_APART = 1.349  # standard deviations of a normal distribution
_LEAST_SPREAD = 5e-4  # of a run: below it, a clock's resolution and rounding count as variation


def changes(values: Floats) -> list[int]:
    """The first value of each level that is seen run by run, as soon as it can be; later runs may take it back."""
    firsts: list[int] = []
    first, sorted_values = 0, list[float]()
    for at, value in enumerate(values.tolist()):
        insort(sorted_values, value)
        split = _split(_without_outliers(values[first : at + 1], sorted_values))
        if split is not None:
            first += split
            firsts.append(first)
            sorted_values = sorted(values[first : at + 1].tolist())
    return firsts


def confirmed_changes(values: Floats) -> list[int]:
    """The first value of each level, for changes that all values on both sides confirm, placed by all of them."""
    firsts = changes(values)
    while firsts:
        firsts = _placed_again(values, firsts)
        deviates = [_deviate_of_split(values[start:end], first - start) for start, first, end in _sides(values, firsts)]
        weakest = int(np.argmin(deviates))
        if deviates[weakest] > _LIMIT:
            break
        del firsts[weakest]
    return firsts


def _sides(values: Floats, firsts: Sequence[int]) -> list[tuple[int, int, int]]:
    """For each change: where the level before it begins, where it is, and where the level after it ends."""
    ends = [0, *firsts, values.size]
    return list(zip(ends[:-2], ends[1:-1], ends[2:], strict=True))


def _placed_again(values: Floats, firsts: Sequence[int]) -> list[int]:
    """The changes where both sides vary least, clipped around the levels: a large change isn't cut off."""
    again, start = list[int](), 0
    for _, first, end in _sides(values, firsts):
        medians = [float(np.median(side)) for side in (values[start:first], values[first:end])]
        away = np.concatenate([values[start:first] - medians[0], values[first:end] - medians[1]])
        reach = _CLIPPED_BEYOND * max(_scale(np.sort(away).tolist()), _LEAST_SPREAD)
        near_values = values[start:end].clip(min(medians) - reach, max(medians) + reach)
        start += _best_split(near_values, np.arange(_FEWEST_AFTER, end - start - _FEWEST_AFTER + 1))
        again.append(start)
    return again


def spread(values: Floats, firsts: Sequence[int]) -> float:
    """The standard deviation of the values around the means of the parts that begin at 0 and at each of `firsts`."""
    parts = [part - part.mean() for part in np.split(values, firsts)]
    freedom = values.size - len(parts)
    return float(np.sqrt(sum(float(part @ part) for part in parts) / freedom)) if freedom > 0 else float("nan")


def _without_outliers(values: Floats, sorted_values: Sequence[float]) -> Floats:
    """The values as distances from their median, clipped; `sorted_values` has the same ones sorted."""
    reach = _CLIPPED_BEYOND * max(_scale(sorted_values), _LEAST_SPREAD)
    return (values - sorted_values[len(sorted_values) // 2]).clip(-reach, reach)


def _scale(sorted_values: Sequence[float]) -> float:
    """The standard deviation of sorted values, by their quartiles: a few odd ones don't matter."""
    quarter = len(sorted_values) // 4
    return (sorted_values[len(sorted_values) - 1 - quarter] - sorted_values[quarter]) / _QUARTILES_APART


def _split(values: Floats) -> int | None:
    """Where the level changed if the last values differ from those before them; None if they don't."""
    sizes = WINDOWS[values.size - FEWEST_BEFORE >= WINDOWS]
    if not sizes.size:
        return None
    is_change = _deviates(values, values.size - sizes) > _LIMIT
    if not is_change.any():
        return None
    earliest = max(_FEWEST_AFTER, values.size - 2 * int(sizes[is_change].max()))
    return _best_split(values, np.arange(earliest, values.size - _FEWEST_AFTER + 1))


def _best_split(values: Floats, splits: NDArray[np.int64]) -> int:
    """The split that leaves the least sum of squares around the means of both sides."""
    before = values.cumsum()[splits - 1]
    gains = (before - values.sum() * splits / values.size) ** 2 / (splits * (values.size - splits))
    return int(splits[np.argmax(gains)])


def _deviate_of_split(values: Floats, split: int) -> float:
    return float(_deviates(_without_outliers(values, sorted(values.tolist())), np.array([split]))[0])


def _deviates(values: Floats, splits: NDArray[np.int64]) -> Floats:
    """For each split that splits the values in two: how far apart the means are, as a normal deviate."""
    sums, squares = values.cumsum(), (values * values).cumsum()
    before, after = splits, values.size - splits
    mean_before, mean_after = sums[splits - 1] / before, (sums[-1] - sums[splits - 1]) / after
    within = squares[-1] - before * mean_before**2 - after * mean_after**2
    freedom = values.size - 2
    variance = np.maximum(within / freedom, _LEAST_SPREAD**2)
    t_squared = (mean_after - mean_before) ** 2 / (variance * (1 / before + 1 / after))
    deviates: Floats = (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(t_squared / freedom))
    return deviates


def smallest_change(spread: float, before: int) -> float:
    """The change that the next `WINDOWS[0]` runs show in `POWER` of the cases; NaN with too few runs before.

    Args:
        spread: Standard deviation of the runs.
        before: Number of runs that it is measured from.
    """
    after = int(WINDOWS[0])
    if before < FEWEST_BEFORE:
        return float("nan")
    freedom = before + after - 2
    t_limit = _LIMIT * (1 + _LIMIT**2 / (4 * freedom))
    return float((t_limit + NormalDist().inv_cdf(POWER)) * max(spread, _LEAST_SPREAD) * np.sqrt(1 / before + 1 / after))
