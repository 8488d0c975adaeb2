"""What stands above the rows of a view: which part of the recording they are of, and which numbers are doubtful.

Faults of the recording make numbers doubtful, and what isn't in it.
"""

from __future__ import annotations

from importlib import import_module

import polars as pl

from ..arrays.intervals import Intervals, union, without
from ..diagnostics import physics
from ..measures.time.breakdown import intervals_of
from ..measures.time.idle_causes import matters, not_shown_times
from ..measures.time.step_subset import counted_steps, has_steps
from ..names import text
from ..trace import Diagnostic, Trace
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
    diagnostics = _diagnostics_with_faults(trace)
    faults = [diagnostic.fault for diagnostic in diagnostics if diagnostic.fault]
    rests_on_hidden = "idle" in view.rests_on and any(fault.is_not_shown for fault in faults)
    hidden_share = _hidden_share(trace) if view.id in _OF_IDLE_TIME or rests_on_hidden else 0.0
    if not hidden_share and not any(fault.undermines & view.rests_on for fault in faults):
        return ""
    module = import_module(".doubts", __package__)  # with what advice knows of a recording, which few views need
    sentences: str = module.doubts(trace, view.rests_on, diagnostics, hidden_share)
    return sentences


@once_per_recording
def _diagnostics_with_faults(trace: Trace) -> tuple[Diagnostic, ...]:
    return tuple(diagnostic for diagnostic in (*trace.diagnostics, *physics.diagnose(trace)) if diagnostic.fault)


@once_per_recording
def _hidden_share(trace: Trace) -> float:
    """How much of the steps isn't in the recording; 0 if it is too little to matter."""
    start, end = (trace.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    hidden_ns, whole_ns = int(not_shown_times(trace, start, end).sum()), int((end - start).sum())
    return hidden_ns / whole_ns if matters(hidden_ns, whole_ns) else 0.0
