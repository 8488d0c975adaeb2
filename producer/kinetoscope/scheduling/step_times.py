"""Change points of a training's step times.

Two one-sided CUSUMs (Page, Biometrika 41, 1954), for slower and for faster steps, on the logarithms of step times,
standardized by the median and the spread of a reference: the steps since the last change. A shift of 10 % is to be
found, so the allowance is half of that. The limit follows from the mean number of independent, normally distributed
steps between two false alarms, by Siegmund's approximation (Sequential Analysis, 1985): `FALSE_ALARM_S` of training.

Step times aren't normal: steps with a checkpoint or an evaluation last many times longer. So a step adds at most a
quarter of the limit, and ten steps must have passed since the change, whose median and three quarters lie in its
direction, too. They aren't independent either, so the spread is at least what that of medians of 16 steps says. The
reference follows a slow drift. What was faster for at most 200 steps, as an evaluation may be, isn't slower afterwards.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from dataclasses import dataclass
from typing import Literal

FALSE_ALARM_S = 10 * 86_400.0
"""How long a training runs between two false alarms, on average, if its steps' times are independent."""

SHIFT = math.log(1.1)
"""The smallest change that is to be found."""

LEARNED = 64
"""How many steps make the first reference."""

_BLOCK = 256
_CHUNK = 16
_EARLY = 32
_MOST = 512
_LATEST = 32
_FEWEST = 10
_DIP = 200
_LEAST_SPREAD = SHIFT / 4
_CONFIRMED, _CONFIRMED_QUARTILE = 0.6 * SHIFT, 0.35 * SHIFT
_PARTS = 4
_ROUNDS = 16
_OF_MAD = 1.4826  # standard deviation of normally distributed values / median of their absolute deviations
_OF_MEDIAN = 1.2533  # standard error of a median / that of the mean


@dataclass(frozen=True)
class Change:
    """A change of the step time.

    Args:
        kind: `steady`: the reference is known; `slower`, `faster`; `crept`: slower by slow drift.
        steps: How many of the last steps are after it.
        before_ns: The usual time of a step before it.
        after_ns: The usual time since.
    """

    kind: Literal["steady", "slower", "faster", "crept"]
    steps: int
    before_ns: int
    after_ns: int


class StepTimes:
    """The times of a training's steps that no profiler slows down."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=_BLOCK)
        self._due = LEARNED
        self._median: float | None = None
        self._spread = _LEAST_SPREAD
        self._weight = self._rounds = 0
        self._base = 0.0  # of the last change that was reported
        self._dip: tuple[int, float] | None = None  # the last step before steps became faster, and their usual time
        self._up = self._down = 0.0
        self._steps = self._up_since = self._down_since = 0
        self._scale = self._allowance = self._limit = self._most = 0.0

    @property
    def usual_ns(self) -> int | None:
        """The usual time of a step; None while it is unknown."""
        return None if self._median is None else round(math.exp(self._median))

    def add(self, dur_ns: int) -> Change | None:
        """Add the time of a step; return a change if there is one."""
        value = math.log(dur_ns or 1)
        self._latest.append(value)
        self._steps += 1
        if self._median is not None:
            deviation, most = (value - self._median) * self._scale, self._most
            up = self._up + min(deviation - self._allowance, most)
            if up <= 0:
                up, self._up_since = 0.0, self._steps
            down = self._down + min(-deviation - self._allowance, most)
            if down <= 0:
                down, self._down_since = 0.0, self._steps
            self._up, self._down = up, down
            if up > self._limit or down > self._limit:
                return self._alarm()
        return self._refresh() if self._steps >= self._due else None

    def rebase(self) -> None:
        """Continue after a window: steps that changed just before it are the new usual ones."""
        self._up = self._down = 0.0
        self._up_since = self._down_since = self._steps
        steps = min(8, len(self._latest))
        if self._median is None or not steps:
            return
        level = statistics.median(list(self._latest)[-steps:])
        if abs(level - self._median) > _CONFIRMED:
            self._move(level, steps)
            self._base = level

    def _alarm(self) -> Change | None:
        """Return the change, if the median of the steps since confirms it."""
        is_slower = self._up > self._limit
        steps = self._steps - (self._up_since if is_slower else self._down_since)
        length = min(steps, _LATEST, len(self._latest))
        latest, before = list(self._latest)[-length:], self._median or 0.0
        level = statistics.median(latest)
        if length < _FEWEST or not _is_confirmed(latest, before, 1 if is_slower else -1):
            self._up, self._down = min(self._up, self._limit), min(self._down, self._limit)
            return None
        self._move(level, length)
        self._base, onset, dip = level, self._steps - steps, self._dip
        self._dip = None if is_slower else (onset, before)
        if is_slower and dip is not None and onset - dip[0] <= _DIP and level - dip[1] < _CONFIRMED:
            return None
        return _change("slower" if is_slower else "faster", steps, before, level)

    def _move(self, level: float, steps: int) -> None:
        """Begin another reference, with so many of the last steps."""
        latest = list(self._latest)[-steps:]
        self._latest.clear()
        self._latest.extend(latest)
        self._median, self._weight, self._due = level, steps, self._steps + _EARLY
        self._tune()

    def _refresh(self) -> Change | None:
        """Renew the reference with the latest steps; return a change that this shows."""
        values = list(self._latest)
        level, spread = statistics.median(values), spread_of(values)
        if self._median is None:
            return self._learn(values, level, spread)
        self._spread = math.sqrt((self._spread**2 + spread**2) / 2)
        weight = min(self._weight, _MOST - len(values))
        self._median = (weight * self._median + len(values) * level) / (weight + len(values))
        self._weight, self._due = weight + len(values), self._steps + _BLOCK
        self._tune()
        before, self._base = self._base, min(self._base, self._median)
        if self._median - before < SHIFT:
            return None
        self._base = self._median
        return _change("crept", 0, before, self._median)

    def _learn(self, values: list[float], level: float, spread: float) -> Change | None:
        """Make the first reference, once the steps are steady."""
        half = len(values) // 2
        trend = abs(statistics.median(values[:half]) - statistics.median(values[half:]))
        self._rounds += 1
        if trend > SHIFT / 2 and self._rounds < _ROUNDS:
            for _ in range(half):
                self._latest.popleft()
            self._due = self._steps + half
            return None
        self._median, self._spread, self._weight = level, spread, len(values)
        self._base, self._due = level, self._steps + _BLOCK
        self._tune()
        return _change("steady", len(values), level, level)

    def _tune(self) -> None:
        """Compute the CUSUM's constants, in standard deviations of a step's logarithm."""
        spread = max(self._spread, _LEAST_SPREAD)
        half = SHIFT / spread / 2
        self._scale = 1 / spread
        self._limit = limit_for(half, FALSE_ALARM_S * 1e9 / math.exp(self._median or 0.0))
        self._most = self._limit / _PARTS
        self._allowance = half + 2 * _OF_MEDIAN / math.sqrt(self._weight)  # the reference may be as much too low


def _is_confirmed(values: list[float], before: float, sign: int) -> bool:
    """Whether most values lie on one side of a level; `sign` is 1 for above."""
    shifts = sorted(sign * (value - before) for value in values)
    return shifts[len(shifts) // 4] > _CONFIRMED_QUARTILE and statistics.median(shifts) > _CONFIRMED


def spread_of(values: list[float]) -> float:
    """Return the standard deviation of values, robust against outliers; as if they were independent.

    If they depend on each other, medians of 16 vary more than they should: then it is larger.
    """
    starts = range(0, len(values) - _CHUNK + 1, _CHUNK)
    medians = [statistics.median(values[start : start + _CHUNK]) for start in starts]
    spread = _deviation(values)
    return spread if len(medians) < _CHUNK else max(spread, math.sqrt(_CHUNK) / _OF_MEDIAN * _deviation(medians))


def _deviation(values: list[float]) -> float:
    middle = statistics.median(values)
    return _OF_MAD * statistics.median(abs(value - middle) for value in values)


def limit_for(allowance: float, steps: float) -> float:
    """Return the limit of a CUSUM whose mean number of steps to a false alarm is `steps`.

    Siegmund: ARL₀ = (exp(2kb) - 2kb - 1) / 2k² with b = limit + 1.166.
    """
    exponent = 1.0
    for _ in range(20):
        exponent = math.log(1 + exponent + 2 * allowance**2 * steps)
    return max(1.0, exponent / (2 * allowance) - 1.166)


def _change(kind: Literal["steady", "slower", "faster", "crept"], steps: int, before: float, after: float) -> Change:
    return Change(kind, steps, round(math.exp(before)), round(math.exp(after)))
