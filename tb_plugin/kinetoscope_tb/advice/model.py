"""What a rule may say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Confidence = Literal["high", "medium", "low", "cannot_tell"]


@dataclass(frozen=True)
class Advice:
    """A cause of lost time, with what shows it and what to do about it.

    Args:
        rule: Its id.
        title: What was found, as one plain sentence.
        evidence: The numbers that show it, in words.
        action: What to do.
        saving_ns: The most that it could save per step: a union of exposed time, so never more than the step. None
            where it isn't a matter of time, or nothing bounds it.
        confidence: high: measured; medium: measured, with a cause that is likely; low: an estimate; cannot_tell: the
            time is measured, and the recording doesn't say what it is due to.
        view: Id of the view that holds the rows which show it.
        filter: What to filter that view by.
        size_ns: How much of the step it is about, where that isn't what it could save.
    """

    rule: str
    title: str
    evidence: str
    action: str
    saving_ns: int | None
    confidence: Confidence
    view: str
    filter: str = ""
    size_ns: int | None = None

    @property
    def weight_ns(self) -> int:
        """By how much of the step it comes before others; 0 where it isn't a matter of time."""
        return self.saving_ns or self.size_ns or 0


@dataclass(frozen=True)
class Cleared:
    """Something that was looked at and costs too little to act on.

    Args:
        topic: What was looked at: a word or two.
        evidence: What it costs, in words.
    """

    topic: str
    evidence: str


@dataclass(frozen=True)
class Unknown:
    """Something that this recording can't tell.

    Args:
        topic: What can't be told.
        reason: Why, and what recording would tell it.
    """

    topic: str
    reason: str
