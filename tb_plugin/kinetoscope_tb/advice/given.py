"""The advice about a trace, with the steps that it is about: computed once for all views."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..trace import Diagnostic, Trace
from ..trace.results import once_per_trace
from .advice import advice
from .facts import Facts
from .model import Advice


@dataclass(frozen=True)
class Given:
    """The advice about a trace.

    Attributes:
        advice: The largest part of the step first.
        step_ns: Mean length of the steps that it is about.
        counted: Which steps these are.
        most_saved_by_host_ns: What less work of the host saves at most, where recording slows the host; else None.
    """

    advice: tuple[Advice, ...]
    step_ns: int
    counted: NDArray[np.bool_]
    most_saved_by_host_ns: int | None


@once_per_trace
def given_advice(trace: Trace, diagnostics: tuple[Diagnostic, ...]) -> Given:
    """Return the advice about a trace, given its diagnostics."""
    facts = Facts(trace)
    return Given(tuple(advice(facts, diagnostics)), facts.step_ns, facts.counted, facts.most_saved_by_host_ns)
