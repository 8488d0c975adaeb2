"""The permutation test of the means of two groups: what share of all ways to part the values separates them as much.

If nothing differs between the sides, every assignment of the recordings to them is equally likely, whatever the
distribution of the values. So the share of the assignments whose difference is at least the observed one is an exact
p-value (R. A. Fisher, The Design of Experiments, 1935). The smallest is 1 / C(n + m, n): 1 of 924 for 6 and 6.

All assignments are counted without listing them: the values are parted into two halves, and for each number of members
from the first half the sums of both are sorted and joined (meet in the middle). Beyond `MOST_EXACT` values it counts
99,999 random assignments of a fixed seed instead, with the observed one among them, which keeps the p-value valid
(B. Phipson and G. K. Smyth, 2010).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_EXACT = 32  # values of both sides together: 65,536 sums a half
_RANDOM, _SEED, _BLOCK = 99_999, 20_260_101, 4096
_TOLERANCE = 1e-12  # of the sum of all sizes: sums that rounding alone separates are equal


def p_value(base: Floats, new: Floats) -> float:
    """The one-sided p-value of the mean of `new` being larger than that of `base` by chance."""
    values = np.concatenate([base, new])
    values = values - values.mean()  # so that sums round less
    least = float(values[base.size :].sum()) - _TOLERANCE * float(np.abs(values).sum())
    if values.size <= MOST_EXACT:
        return _exact_share(values, new.size, least)
    return _random_share(values, new.size, least)


def _exact_share(values: Floats, members: int, least: float) -> float:
    """The share of the sums of so many members that reach the least."""
    halves = [_sums_by_size(values[: values.size // 2]), _sums_by_size(values[values.size // 2 :])]
    hits = total = 0
    for size, sums in enumerate(halves[0]):
        if 0 <= members - size < len(halves[1]):
            others = np.sort(halves[1][members - size])
            hits += int((others.size - np.searchsorted(others, least - sums, side="left")).sum())
            total += others.size * sums.size
    return hits / total


def _sums_by_size(values: Floats) -> list[Floats]:
    """The sums of all subsets, by their number of members."""
    sums, sizes = np.zeros(1), np.zeros(1, np.int64)
    for value in values:
        sums, sizes = np.concatenate([sums, sums + value]), np.concatenate([sizes, sizes + 1])
    return [sums[sizes == size] for size in range(values.size + 1)]


def _random_share(values: Floats, members: int, least: float) -> float:
    """The same of random assignments, the observed one among them."""
    hits = 1
    for is_member in np.array_split(_assignments(values.size, members), _RANDOM // _BLOCK):
        hits += int((is_member.astype(np.float64) @ values >= least).sum())
    return hits / (_RANDOM + 1)


@lru_cache(maxsize=2)
def _assignments(size: int, members: int) -> NDArray[np.bool_]:
    """Which of the values belong to the side with so many members: random assignments × values."""
    generator = np.random.default_rng(_SEED)
    is_member = np.zeros((_RANDOM, size), np.bool_)
    for rows in np.array_split(is_member, _RANDOM // _BLOCK):  # views of it
        columns = generator.random(rows.shape).argpartition(members - 1, axis=1)[:, :members]
        np.put_along_axis(rows, columns, values=True, axis=1)
    return is_member
