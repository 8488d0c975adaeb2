"""Where the level of a series of runs changed: a window test on logarithms, run by run.

After each run, the mean of the last 4, 16 and 64 values is compared with the mean of all values before them since the
last change, by Student's t with the variance within both; the p-value of t is compared as a normal deviate (D. L.
Wallace, Bounds on normal approximations to Student's and the chi-square distributions, 1959). The limits are chosen by
simulation, so that judged after each run at most one point in `AVERAGE_RUN_LENGTH` runs is false, and of a whole
history far fewer: later runs take false ones back. With few runs before, a change is hard to see, so the limit is lower
there: most false points are among the first thirty runs of a level. With heavy tails somewhat more are false, within
that rate; against these, values far from the levels of both sides are clipped, so that a few odd runs are no change of
level. `make bench ARGS=--history` measures it.

A change is placed where both sides vary least around their means. Points that the later runs don't confirm are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

AVERAGE_RUN_LENGTH = 1000  # runs to a false point, at least
FEWEST_BEFORE = 8  # runs that a change is measured from
WINDOWS = np.array([4, 16, 64])
FEWEST_RUNS = FEWEST_BEFORE + int(WINDOWS[0])
POWER = 0.95  # share of the cases in which a change is seen

_LIMITS = ((24, 48, 104), (2.89, 3.44, 3.64))  # of the normal deviate, by the runs of the longer side
_LIMIT_OF_LONGER_WINDOWS = 0.6  # more, from the second one on: they see what the shortest one doesn't, later
_CLIPPED_BEYOND = 3  # standard deviations
_CLIPPED_BEYOND_END = 2  # the same, beyond the level of a window
_FEW = 1  # runs of a window that are odd don't move its level
_FEWEST_AFTER = 2  # runs of a level
_QUARTILES_APART = 1.349  # standard deviations of a normal distribution
_LEAST_SPREAD = 5e-4  # of a run: below it, a clock's resolution and rounding count as variation


def changes(values: Floats) -> list[int]:
    """The first value of each level that is seen run by run, as soon as it can be; later runs may take it back."""
    firsts: list[int] = []
    first = 0
    for end in range(1, values.size + 1):
        split = _split(values[first:end])
        if split is not None:
            first += split
            firsts.append(first)
    return firsts


def confirmed_changes(values: Floats, points: Sequence[int] | None = None) -> list[int]:
    """The first value of each level, for changes that all values on both sides confirm, placed by all of them.

    Args:
        values: Logarithms, in the order of the runs.
        points: What `changes` finds in them, if that is known.
    """
    firsts = changes(values) if points is None else list(points)
    while firsts:
        firsts = _placed_again(values, firsts)
        excesses = [_excess(values[start:end], first - start) for start, first, end in _sides(values, firsts)]
        weakest = int(np.argmin(excesses))
        if excesses[weakest] > 0:
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
        medians = [_median(side) for side in (values[start:first], values[first:end])]
        away = np.concatenate([values[start:first] - medians[0], values[first:end] - medians[1]])
        reach = _CLIPPED_BEYOND * _scale(away)
        near_values = values[start:end].clip(min(medians) - reach, max(medians) + reach)
        start += _best_split(near_values, np.arange(_FEWEST_AFTER, end - start - _FEWEST_AFTER + 1))
        again.append(start)
    return again


def spread(values: Floats, firsts: Sequence[int]) -> float:
    """The standard deviation of the values around the means of the parts that begin at 0 and at each of `firsts`."""
    parts = [part - part.mean() for part in np.split(values, firsts)]
    freedom = values.size - len(parts)
    return float(np.sqrt(sum(float(part @ part) for part in parts) / freedom)) if freedom > 0 else float("nan")


def _scale(values: Floats) -> float:
    """The standard deviation, by the quartiles: a few odd values don't matter."""
    quarter = values.size // 4
    ends = np.partition(values, (quarter, values.size - 1 - quarter))
    return max(float(ends[values.size - 1 - quarter] - ends[quarter]) / _QUARTILES_APART, _LEAST_SPREAD)


def _split(values: Floats) -> int | None:
    """Where the level changed if the last values differ from those before them; None if they don't."""
    splits = values.size - WINDOWS[values.size - FEWEST_BEFORE >= WINDOWS]
    if not splits.size:
        return None
    scale = _scale(values)
    changes = [int(split) for split in splits if _excess(values, int(split), scale) > 0]
    if not changes:
        return None
    split = changes[-1]
    earliest = max(_FEWEST_AFTER, 2 * split - values.size)
    return _best_split(_clip(values, split, scale), np.arange(earliest, values.size - _FEWEST_AFTER + 1))


def _clip(values: Floats, split: int, scale: float) -> Floats:
    """The values without what is far from the level before, and beyond that of the end, which all but a few show."""
    before, after = _median(values[:split]), np.sort(values[split:])
    nth, reach, more = min(_FEW, after.size - 1), _CLIPPED_BEYOND * scale, _CLIPPED_BEYOND_END * scale
    least, most = min(before - reach, after[-1 - nth] - more), max(before + reach, after[nth] + more)
    return np.asarray(np.minimum(np.maximum(values, least), most))


def _median(values: Floats) -> float:
    """The median; of few values in a fifth of the time that `np.median` takes."""
    in_order = np.sort(values)
    return float(in_order[(values.size - 1) // 2] + in_order[values.size // 2]) / 2


def _best_split(values: Floats, splits: NDArray[np.int64]) -> int:
    """The split that leaves the least sum of squares around the means of both sides."""
    before = values.cumsum()[splits - 1]
    gains = (before - values.sum() * splits / values.size) ** 2 / (splits * (values.size - splits))
    return int(splits[np.argmax(gains)])


def _limit(before: int, after: int) -> float:
    """Beyond which deviate a level has changed, by the number of values on both sides."""
    longer = math.log(max(after / WINDOWS[0], 1)) / math.log(WINDOWS[1] / WINDOWS[0])
    return float(np.interp(max(before, after), *_LIMITS)) + _LIMIT_OF_LONGER_WINDOWS * min(longer, 1)


def _excess(values: Floats, split: int, scale: float | None = None) -> float:
    """How far the means of both sides are apart, as a normal deviate, beyond the limit."""
    near = _clip(values, split, _scale(values) if scale is None else scale)
    return deviate(near[:split], near[split:]) - _limit(split, values.size - split)


def deviate(before: Floats, after: Floats) -> float:
    """How far the means of two sides are apart: Student's t as a normal deviate."""
    freedom = before.size + after.size - 2
    means = before.sum() / before.size, after.sum() / after.size
    away_before, away_after = before - means[0], after - means[1]
    variance = max(float(away_before @ away_before + away_after @ away_after) / freedom, _LEAST_SPREAD**2)
    t_squared = float(means[1] - means[0]) ** 2 / (variance * (1 / before.size + 1 / after.size))
    return (8 * freedom + 1) / (8 * freedom + 3) * math.sqrt(freedom * math.log1p(t_squared / freedom))


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
    limit = _limit(before, after)
    t_limit = limit * (1 + limit**2 / (4 * freedom))
    return float((t_limit + NormalDist().inv_cdf(POWER)) * max(spread, _LEAST_SPREAD) * np.sqrt(1 / before + 1 / after))
