"""Which part of a view's numbers the faults of a recording make doubtful, in sentences."""

from __future__ import annotations

from collections.abc import Iterable

from ..advice.facts import Facts
from ..advice.faults import Faults, lacks_launches, why_not_recorded
from ..names import text
from ..trace import Diagnostic, Trace
from ..trace.model import Fault, NumberKind
from ..trace.results import once_per_recording
from ..trace.steps import step_noun


@once_per_recording
def doubts(
    trace: Trace, numbers: frozenset[NumberKind], diagnostics: tuple[Diagnostic, ...], hidden_share: float
) -> str:
    """The doubts about some numbers, without faults that explain what is said of the time that isn't recorded.

    Args:
        trace: The recording.
        numbers: What a view rests on.
        diagnostics: All diagnostics of the recording that have a fault.
        hidden_share: How much of the steps isn't in the recording, if that is to be said; else 0.
    """
    reasons = [diagnostic.fault for diagnostic in diagnostics if diagnostic.fault and diagnostic.fault.is_not_shown]
    of_hidden = _missing_time(trace, reasons, hidden_share) if hidden_share else ""
    others = [diagnostic for diagnostic in diagnostics if not (hidden_share and diagnostic.fault in reasons)]
    of_faults = Faults(Facts(trace), others).doubt(numbers) if numbers else ""
    return f"{of_faults} {of_hidden}".strip()


def _missing_time(trace: Trace, reasons: Iterable[Fault], share: float) -> str:
    """How much of the steps isn't in the recording, and why, in sentences."""
    facts = Facts(trace)
    part = f"{text.percent(share)} of {_all_steps(facts)}"
    if lacks_launches(facts):
        return why_not_recorded(facts, part)
    why = "".join(f" {fault.clause}." for fault in reasons)
    return f"{part} isn't in the recording: {facts.device} may have been busy then.{why}"


def _all_steps(facts: Facts) -> str:
    """All steps in a sentence: such as the steps, or iteration 0; the time, where none are marked."""
    if facts.is_whole:
        return "the time"
    names, noun = facts.windows.names, step_noun(facts.trace.steps)
    return f"{noun} {names[0]}" if len(names) == 1 else f"the {noun}s"
