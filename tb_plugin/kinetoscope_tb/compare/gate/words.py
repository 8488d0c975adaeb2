"""A decision in words, the same in the terminal and in a comment."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...names.text import digits
from ..headline import growth_text, pair_of_times
from .decision import Decision, Question, percent
from .numbers import STEP
from .power import POWER

_CALLED = {"regression": "a real regression", "improvement": "a real improvement"}


def sentence(decision: Decision, question: Question, unit: str) -> str:
    """Such as: The average step: 100.0 → 103.1 ms, +3.1 %, a real regression: …."""
    sample = decision.sample
    what = "The average step" if sample.number == STEP else sample.number
    before, after = (math.exp(sum(map(math.log, side)) / len(side)) for side in (sample.base, sample.new))
    verdict = _CALLED.get(decision.outcome, decision.outcome)
    if decision.outcome == "no regression":
        verdict = f"no regression of {percent(question.find)}"
    pair = pair_of_times(before, after) if unit == "duration" else f"{digits(before)} → {digits(after)}"
    return f"{what}: {pair}, {growth_text(before, after)}, {verdict}: {decision.reason}."


def reach(decision: Decision, question: Question) -> str:
    """What these recordings can find, and at which rate."""
    sample, find = decision.sample, percent(question.find)
    sizes = f"{len(sample.base)} and {len(sample.new)} recordings"
    rate = f"False alarms: {percent(question.rate)} at most (exact permutation test)."
    if math.isnan(decision.spread_frac):
        return f"{sizes}, whose spread is unknown. {rate}"
    finds = "no change" if decision.finds_frac is None else f"{percent(decision.finds_frac)} or more"
    return (
        f"{sizes}; the spread between them is {percent(decision.spread_frac)}. "
        f"They find {finds} in {100 * POWER:.0f} of 100 cases; {decision.needed_a_side} a side find {find}. {rate}"
    )


def lines(decisions: Sequence[Decision], units: Sequence[str], question: Question, notes: Sequence[str]) -> list[str]:
    """All decisions as sentences, then what they rest on."""
    answers = []
    for decision, unit in zip(decisions, units, strict=True):
        answers += [sentence(decision, question, unit), reach(decision, question)]
    return [*answers, *notes]
