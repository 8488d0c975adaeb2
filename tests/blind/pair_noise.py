"""How certain the measured effect of a change is."""

import math
import statistics
from collections.abc import Sequence

_OF_MEDIAN, _OF_MAD = 1.2533, 1.4826
"""The standard error of a median / that of a mean, and a standard deviation / a median deviation, of normal values."""


def noise(before: Sequence[float], after: Sequence[float]) -> float:
    """Two standard errors of the median ratio of turns, as a share of it."""
    ratios = [new / old for old, new in zip(before, after, strict=True)]
    ratio = statistics.median(ratios)
    deviation = statistics.median(abs(other - ratio) for other in ratios)
    return 2 * _OF_MEDIAN * _OF_MAD * deviation / ratio / math.sqrt(len(ratios))
