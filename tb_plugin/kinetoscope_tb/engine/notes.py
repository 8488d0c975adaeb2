"""What stands above the rows of a view: which part of the recording they are of, and which numbers are doubtful.

Faults of the recording make numbers doubtful, and what isn't in it.
"""

from __future__ import annotations

import polars as pl

from ..advice.facts import Facts
from ..advice.faults import Faults, lacks_launches, why_not_recorded
from ..arrays.intervals import Intervals, union, without
from ..diagnostics import physics
from ..measures.time.breakdown import intervals_of
from ..measures.time.idle_causes import matters, not_shown_times
from ..measures.time.step_subset import counted_steps, has_steps
from ..names import text
from ..trace import Diagnostic, Trace
from ..trace.model import Fault, NumberKind
from ..trace.results import once_per_recording
from ..trace.steps import step_noun
from ..view import View, chooses_steps

_OF_IDLE_TIME = {"overview", "steps", "idle", "exposed_time"}
"""The views that count time as idle, or as the host's, while it isn't in the recording whether a device is busy."""


def note_of_view(trace: Trace, view: View, *arguments: str) -> str:
    """Sentences; empty if there is nothing to say.

    Args:
        trace: The recording.
        view: The view.
        arguments: The names of its arguments, and `phase` and `step` if it is restricted to steps.
    """
    is_of_all = view.within == "rows" and view.scope == "recording" and not chooses_steps(arguments)
    is_of_all = is_of_all and not view.is_missing(trace)
    return f"{_base(trace) if is_of_all else ''} {doubt(trace, view)}".strip()


@once_per_recording
def _base(trace: Trace) -> str:
    """That rows are of the whole recording, where it has noticeably more work than the steps that averages cover."""
    if not has_steps(trace):
        return ""
    steps = trace.steps[counted_steps(trace)]
    windows = union(*(steps[side].to_numpy() for side in ("start_ns", "end_ns")))
    operators = trace.host_events.filter(pl.col("kind") == "operator")
    if not any(_has_more(frame, windows) for frame in (trace.device_events, trace.launches, operators)):
        return ""
    noun, names = step_noun(steps), steps["name"]
    part = f"{noun} {names[0]} is" if len(names) == 1 else f"its {text.times(len(names), f'complete {noun}')} are"
    whole, of_steps = (text.time(ns) for ns in (trace.window[1] - trace.window[0], _length(windows)))
    return f"These rows are of the whole recording, {whole}: {part} {of_steps} of it."


def _has_more(frame: pl.DataFrame, windows: Intervals) -> bool:
    """Whether a noticeable part of the time in which any row is active is outside the windows."""
    active = intervals_of(frame)
    return matters(_length(without(active, windows)), _length(active))


def _length(spans: Intervals) -> int:
    start, end = spans
    return int((end - start).sum())


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
