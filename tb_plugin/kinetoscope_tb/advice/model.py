"""The results of rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from .candidates import Candidate

Confidence = Literal["high", "medium", "low", "cannot_tell"]


@dataclass(frozen=True)
class Advice:
    """A cause of lost time, with evidence and what to do about it.

    Args:
        rule: Its id.
        title: The problem, as one plain sentence.
        evidence: The numbers behind it, in words.
        action: What to do.
        saving_ns: Upper bound on the saving per step, never more than the step: with a candidate that of the
            re-simulated steps, which `advice` fills in, else a union of exposed time. None if it isn't about time, or
            has no bound.
        confidence: high: measured; medium: measured, with a likely cause; low: an estimate; cannot_tell: the time
            is measured, but not its cause.
        view: Id of the view with the rows behind it.
        filter: Filter for that view.
        size_ns: How much of the step it is about, if that isn't what it could save.
        candidate: What could take less time.
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
    candidate: Candidate | None = field(default=None, compare=False, repr=False)

    @property
    def kernels(self) -> NDArray[np.integer] | None:
        """The rows of device_events that it is about, if it is about some."""
        return self.candidate.rows if self.candidate else None

    @property
    def weight_ns(self) -> int:
        """By how much of the step it comes before others; 0 where it isn't a matter of time."""
        return self.saving_ns or self.size_ns or 0


@dataclass(frozen=True)
class Cleared:
    """Something that was checked and costs too little to act on.

    Args:
        topic: What was checked, in a word or two.
        evidence: Its cost, in words.
    """

    topic: str
    evidence: str


@dataclass(frozen=True)
class Unknown:
    """Something that is unknown from this trace.

    Args:
        topic: What is unknown.
        reason: Why, and what to record to know it.
        size_ns: How much of the step it is about, if it is a matter of time.
        action: What to do to know it; empty: nothing particular.
        view: The view that shows the rows.
    """

    topic: str
    reason: str
    size_ns: int = 0
    action: str = ""
    view: str = "operator_efficiency"


Result = Advice | Cleared | Unknown
