"""The advice about a trace, with the steps that it is about: computed once for all views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..trace import Diagnostic, Trace
from ..trace.results import once_per_trace
from .advice import advice, findings
from .facts import Facts
from .model import Advice


@dataclass(frozen=True)
class TraceAdvice:
    """The advice about a trace.

    Attributes:
        advice: The largest part of the step first.
        step_ns: Mean length of the steps that it is about.
        usual_step_ns: How long these take without the profiler, where that is known: what savings are of.
        is_counted: Which steps these are.
    """

    advice: tuple[Advice, ...]
    step_ns: int
    usual_step_ns: int
    is_counted: NDArray[np.bool_]

    def saved_frac(self, saving_ns: int) -> float:
        """A saving as a share of the step that it is of."""
        return saving_ns / self.usual_step_ns if self.usual_step_ns else 0.0


@once_per_trace
def trace_advice(trace: Trace, diagnose: Callable[[Trace], Sequence[Diagnostic]]) -> TraceAdvice:
    """Return the advice about a trace; `diagnose` returns its diagnostics.

    The rules come first: of a large trace another thread computes the diagnostics, and the graph, meanwhile.
    """
    facts = Facts(trace)
    findings(facts)
    claims = tuple(advice(facts, diagnose(trace)))
    return TraceAdvice(claims, facts.step_ns, facts.usual_step_ns, facts.is_counted)
