"""The parts of a change of the step, in percentage points of the step before; they add up to its growth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from .series import Level


@dataclass(frozen=True)
class Share:
    """A part of a change.

    Args:
        name: Of the part of the step.
        before_ns: What it took in the average step before; a mean over runs.
        after_ns: What it takes since.
        growth: Their difference as a share of the step before.
    """

    name: str
    before_ns: float
    after_ns: float
    growth: Fraction


def shares(before: Level, after: Level) -> list[Share]:
    """A share per part of the step, the largest first; their growths add up to that of the step, exactly."""
    step = Fraction(sum(before.parts.values()), len(before.runs))
    rows = []
    for name in dict.fromkeys([*before.parts, *after.parts]):
        old, new = (Fraction(level.parts.get(name, 0), len(level.runs)) for level in (before, after))
        rows.append(Share(name, float(old), float(new), (new - old) / step))
    return sorted(rows, key=lambda share: -abs(share.growth))


def rounded_points(rows: list[Share]) -> list[int]:
    """The growths in tenths of percentage points, which add up to their rounded sum (largest remainders first)."""
    tenths = [1000 * share.growth for share in rows]
    points = [math.floor(value) for value in tenths]
    missing = round(sum(tenths)) - sum(points)
    order = sorted(range(len(rows)), key=lambda row: points[row] - tenths[row])
    for row in order[:missing]:
        points[row] += 1
    return points
