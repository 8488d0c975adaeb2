"""Regression, improvement, no regression, or cannot tell: what several recordings a side say of one number.

Both errors are bounded without assuming a distribution, as long as the recordings of both sides come from the same
process of recording:

- **regression** where nothing changed: at most `rate`, by the exact test of no change. A loss below half of what should
  be found is no alarm.
- **no regression** where the loss is `find` or more: at most 5 %, by the same test of a loss of `find`.

Everything else is **cannot tell**, also whenever fewer recordings were made than find such a loss at their spread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .corrections import holm
from .permutation import p_value
from .power import POWER, equal_sides, fewest_recordings, needed_recordings, smallest_change

Floats = NDArray[np.float64]
Outcome = Literal["regression", "improvement", "no regression", "cannot tell"]

OF_ALARM = 0.5  # of the growth that should be found: a smaller one is no alarm


@dataclass(frozen=True)
class Question:
    """What to decide.

    Args:
        find: The loss that should be found, as a fraction: the growth of a time.
        rate: Rate of false alarms over all numbers together.
        is_less_worse: Whether a decrease is the loss, as of a throughput.
    """

    find: float = 0.03
    rate: float = 0.01
    is_less_worse: bool = False


@dataclass(frozen=True)
class Sample:
    """The values of one number in the recordings of both sides; all are positive.

    Args:
        number: What it is.
        base: Of the base.
        new: Of the new side.
    """

    number: str
    base: Floats
    new: Floats


@dataclass(frozen=True)
class Decision:
    """What the recordings say of one number.

    Args:
        sample: The values.
        outcome: What they say.
        reason: Why, as a sentence.
        growth_frac: Growth of the geometric mean; positive if it became larger.
        spread_frac: Standard deviation between the recordings of a side; NaN with one recording on each.
        p_worse: Of the loss by chance, adjusted for all numbers.
        p_better: Of the gain by chance, adjusted for all numbers.
        needed_a_side: Recordings a side that find the change in 95 % of the cases at this spread.
        finds_frac: The smallest change that these recordings find; None if they find none.
    """

    sample: Sample
    outcome: Outcome
    reason: str
    growth_frac: float
    spread_frac: float
    p_worse: float
    p_better: float
    needed_a_side: int
    finds_frac: float | None


def decide(samples: Sequence[Sample], question: Question, why_uncertain: str = "") -> list[Decision]:
    """Decide about each number; the rate of false alarms holds for all of them together.

    Args:
        samples: The values of each number.
        question: What to find, at which rate.
        why_uncertain: Why the recordings can't answer at all, such as one machine a side; empty if they can.
    """
    worse = holm([p_value(*_losses(sample, question)) for sample in samples])
    better = holm([p_value(*_losses(sample, question)[::-1]) for sample in samples])
    rate = question.rate / len(samples)
    return [
        _decision(sample, question, rate, (float(p_worse), float(p_better)), why_uncertain)
        for sample, p_worse, p_better in zip(samples, worse, better, strict=True)
    ]


def _losses(sample: Sample, question: Question) -> tuple[Floats, Floats]:
    """The logarithms of both sides, so that a larger one is worse."""
    sign = -1.0 if question.is_less_worse else 1.0
    return sign * np.log(sample.base), sign * np.log(sample.new)


def _decision(
    sample: Sample, question: Question, rate: float, p_values: tuple[float, float], why_uncertain: str
) -> Decision:
    base, new = _losses(sample, question)
    spread, loss = _spread(base, new), float(new.mean() - base.mean())
    known_spread = spread if math.isfinite(spread) else 0.0
    needed_a_side = needed_recordings(known_spread, math.log1p(question.find), rate)
    finds = smallest_change(known_spread, base.size, new.size, rate)
    why = why_uncertain or _why_none(sample, question, rate)
    outcome: Outcome = "cannot tell"
    if not why:
        outcome, why = _outcome(sample, question, p_values, (spread, needed_a_side))
    return Decision(
        sample,
        outcome,
        why,
        growth_frac=math.expm1(-loss if question.is_less_worse else loss),
        spread_frac=math.expm1(spread),
        p_worse=p_values[0],
        p_better=p_values[1],
        needed_a_side=needed_a_side,
        finds_frac=None if finds is None else math.expm1(finds),
    )


def _outcome(
    sample: Sample, question: Question, p_values: tuple[float, float], need: tuple[float, int]
) -> tuple[Outcome, str]:
    """What enough recordings for the rate say; `need` is their spread, and how many find the change at that."""
    base, new = _losses(sample, question)
    loss, find = float(new.mean() - base.mean()), math.log1p(question.find)
    by_chance = "as far apart by chance in {} of the cases"
    if p_values[0] <= question.rate and loss >= OF_ALARM * find:
        return "regression", by_chance.format(percent(p_values[0]))
    if p_values[1] <= question.rate and -loss >= OF_ALARM * find:
        return "improvement", by_chance.format(percent(p_values[1]))
    if equal_sides(base.size, new.size) < need[1]:
        spread = percent(math.expm1(need[0]))
        sides = _sizes(sample)
        return "cannot tell", f"the spread is {spread}: {need[1]} a side find {percent(question.find)}; {sides}"
    if p_value(new, base + find) <= 1 - POWER:
        return "no regression", f"{percent(question.find)} or more would be seen"
    return "cannot tell", f"{percent(question.find)} is not excluded either"


def _why_none(sample: Sample, question: Question, rate: float) -> str:
    """Why so few recordings can say nothing at this rate; empty if they can."""
    fewest = fewest_recordings(rate)
    if equal_sides(sample.base.size, sample.new.size) >= fewest:
        return ""
    return f"a false-alarm rate of {percent(question.rate)} takes {fewest} recordings a side; {_sizes(sample)}"


def _sizes(sample: Sample) -> str:
    return f"there are {sample.base.size} and {sample.new.size}"


def _spread(base: Floats, new: Floats) -> float:
    """The standard deviation within the sides, pooled; NaN if neither has two values."""
    freedom = base.size + new.size - 2
    squares = float(((base - base.mean()) ** 2).sum() + ((new - new.mean()) ** 2).sum())
    return math.sqrt(squares / freedom) if freedom else math.nan


def percent(share: float) -> str:
    """Such as 3 %, 0.22 % or < 0.01 %."""
    return f"{100 * share:.2g} %" if share >= 1e-4 else "< 0.01 %"
