"""Advice: how to make steps shorter, the largest part of the step first.

The rules are in `advice`. A saving is an upper bound: the cause may hide another one, and savings of different rows
don't add up. "Nothing stands out" is a valid result. If faults of the recording could flip an answer, the row
`recording_faults` says so in its place.
"""

from __future__ import annotations

import polars as pl

from ...advice.advice import CATEGORIES
from ...advice.model import CONFIDENCE_WORDS
from ...advice.trace_advice import trace_advice
from ...diagnostics.diagnose import diagnose
from ...measures.recording.contents import is_trace
from ...measures.time.idle_causes import split_gaps_of_devices
from ...table import DURATION, FRACTION, PROSE, TEXT, Column, Table
from ...trace import Trace
from ...view import Reference, View


class Advice(Table):
    """What to do, the largest part of the step first; the last row, `nothing_to_fix`, lists what is fine or unknown.

    A file of another program, and one without the work of the job's device, have one row that says so.
    """

    key, weight = ("rule",), "saving_ns"

    rule = Column(TEXT, "Id of the rule.", shown_as="id")
    title = Column(PROSE, "What the trace shows.")
    evidence = Column(PROSE, "The numbers that show it.")
    action = Column(PROSE, "What to do.")
    saving_ns = Column(
        DURATION,
        "Upper bound on the saving per step, over the complete steps after warm-up (in the whole recording if no steps "
        "were marked); missing if it isn't about time, or if a late rank's row has it. Where the "
        "recorder timed steps without the profiler, it is of such a step. Savings may overlap, so they don't add up.",
        adds_up=False,
    )
    saving_frac = Column(
        FRACTION,
        "Saving / the mean length of these steps, without the profiler where that is known. The overview's mean "
        "includes warm-up.",
    )
    saving_low_ns = Column(
        DURATION,
        "The least that the saving may be: steps differ, what recording costs may be part of it, calls that may wait "
        "for the device may not, and the same step takes longer or less when it is timed again. Nine of ten measured "
        "savings lie between this and the most; missing if the saving isn't simulated.",
        adds_up=False,
        shown_as="bound",
    )
    saving_high_ns = Column(
        DURATION,
        "The most that it may be; kernels on a stream of their own may slow those of other streams.",
        adds_up=False,
        shown_as="bound",
    )
    confidence = Column(
        TEXT,
        "high: measured; medium: measured, with a likely cause; low: an estimate; cannot_tell: the recording doesn't "
        "show it.",
        words=CONFIDENCE_WORDS,
    )
    view = Column(TEXT, "Id of the view with the evidence.", shown_as="id")
    filter = Column(TEXT, "Filter for that view; missing if the whole view is evidence.", shown_as="id")


def advice(trace: Trace) -> pl.DataFrame:
    """The largest part of the step first, then advice that isn't about time, then what is fine."""
    all_advice = trace_advice(trace, diagnose)
    rows = [
        (
            a.rule,
            a.title,
            a.words,
            a.action,
            a.saving_ns,
            None if a.saving_ns is None else all_advice.saved_frac(a.saving_ns),
            *(a.saving_range or (None, None)),
            a.confidence,
            a.view,
            a.filter or None,
        )
        for a in all_advice.advice
    ]
    return Advice.of(pl.DataFrame(rows, schema=Advice.schema(), orient="row"))


VIEW = View(
    advice,
    table=Advice,
    title="Advice",
    entry="Overview",
    needs=is_trace,
    hint="The trace has no events with a duration.",
    within="recording",
    shares=split_gaps_of_devices,
    states_doubts=True,
    reference=Reference(view="view", filter="filter", rule="rule", categories=CATEGORIES),
    is_of_advice=True,
    reads_captures=True,
)
