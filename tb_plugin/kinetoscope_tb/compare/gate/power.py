"""How many recordings a side find how large a change, at a rate of false alarms.

A test of two means with n recordings a side finds the change d in a share β of the cases if
n = 2 (z_α + z_β)² (s / d)², where s is the spread between recordings. At 1 % and 95 % that is 31.5 (s / d)². The
spread must be estimated from the same recordings, which costs z_α² / 4 more (W. C. Guenther, 1981), and the steps of
the permutation test half a recording; `make bench ARGS=--gate` measures that this finds what it promises.
"""

from __future__ import annotations

import math
from statistics import NormalDist

POWER = 0.95  # share of the cases in which a change is found

_FEWEST, _MOST = 2, 1_000_000


def fewest_recordings(rate: float) -> int:
    """The fewest recordings a side with which the test can reach a p-value of `rate` at all."""
    return next(n for n in range(_FEWEST, 200) if 1 / math.comb(2 * n, n) <= rate)


def needed_recordings(spread: float, change: float, rate: float) -> int:
    """How many recordings a side find a change in `POWER` of the cases; spread and change are logarithms."""
    n = _factor(rate) * (spread / change) ** 2 + _surcharge(rate)
    return max(fewest_recordings(rate), min(_MOST, math.ceil(n)))


def smallest_change(spread: float, base: int, new: int, rate: float) -> float | None:
    """The smallest change, as a logarithm, that so many recordings find in `POWER` of the cases; None: no change."""
    n = equal_sides(base, new)
    if n < fewest_recordings(rate) or n <= _surcharge(rate):
        return None
    return spread * math.sqrt(_factor(rate) / (n - _surcharge(rate)))


def equal_sides(base: int, new: int) -> float:
    """How many recordings a side are worth as much as unequal sides."""
    return 2 / (1 / base + 1 / new) if base and new else 0.0


def _factor(rate: float) -> float:
    normal = NormalDist()
    return 2 * (normal.inv_cdf(1 - rate) + normal.inv_cdf(POWER)) ** 2


def _surcharge(rate: float) -> float:
    return NormalDist().inv_cdf(1 - rate) ** 2 / 4 + 0.5
