"""What a view's numbers are worth: which of them faults of the recording, or what isn't in it, make doubtful."""

from __future__ import annotations

from ..advice.facts import Facts
from ..advice.faults import Faults, lacks_launches, why_not_recorded
from ..diagnostics import physics
from ..measures.time.idle_causes import matters, not_shown_times
from ..names import text
from ..trace import Diagnostic, Trace
from ..trace.model import Fault, NumberKind
from ..trace.results import once_per_recording
from ..trace.steps import step_noun
from ..view import View

_OF_IDLE_TIME = {"overview", "steps", "idle", "exposed_time"}
"""The views that count time as idle, or as the host's, while it isn't in the recording whether a device is busy."""


def doubt(trace: Trace, view: View) -> str:
    """Sentences that say which part of a view's numbers is doubtful, and why; empty if the recording bears them.

    Views of several ranks' recordings have none: diagnostics of the run say what they lack.
    """
    says_hidden = view.id in _OF_IDLE_TIME or ("idle" in view.rests_on and _faults_of_missing_time(trace))
    of_hidden = _missing_time(trace) if says_hidden else ""
    of_faults = _doubt(trace, view.rests_on, is_hidden_said=bool(of_hidden)) if view.rests_on else ""
    return f"{of_faults} {of_hidden}".strip()


@once_per_recording
def _doubt(trace: Trace, numbers: frozenset[NumberKind], *, is_hidden_said: bool) -> str:
    """The doubt that faults raise, without those that explain what _missing_time says."""
    reasons = _faults_of_missing_time(trace) if is_hidden_said else []
    diagnostics = [diagnostic for diagnostic in _diagnostics(trace) if diagnostic.fault not in reasons]
    return Faults(Facts(trace), diagnostics).doubt(numbers)


@once_per_recording
def _diagnostics(trace: Trace) -> tuple[Diagnostic, ...]:
    return (*trace.diagnostics, *physics.diagnose(trace))


def _faults_of_missing_time(trace: Trace) -> list[Fault]:
    faults = (diagnostic.fault for diagnostic in _diagnostics(trace))
    return [fault for fault in faults if fault and fault.is_not_shown]


@once_per_recording
def _missing_time(trace: Trace) -> str:
    """How much of the steps isn't in the recording, and why, in sentences; empty if too little is to matter."""
    start, end = (trace.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    hidden_ns, whole_ns = int(not_shown_times(trace, start, end).sum()), int((end - start).sum())
    if not matters(hidden_ns, whole_ns):
        return ""
    share, facts = text.percent(hidden_ns / whole_ns), Facts(trace)
    if lacks_launches(facts):
        return why_not_recorded(facts, f"{share} of {_all_steps(facts)}")
    reasons = [f" {fault.clause}." for fault in _faults_of_missing_time(trace)]
    busy = f"{share} of {_all_steps(facts)} isn't in the recording: {facts.device} may have been busy then."
    return f"{busy}{''.join(reasons)}"


def _all_steps(facts: Facts) -> str:
    """All steps in a sentence: such as the steps, or iteration 0; the time, where none are marked."""
    if facts.is_whole:
        return "the time"
    names, noun = facts.windows.names, step_noun(facts.trace.steps)
    return f"{noun} {names[0]}" if len(names) == 1 else f"the {noun}s"
