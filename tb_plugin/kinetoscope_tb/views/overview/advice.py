"""Advice: what to do about the time of a step, the largest saving first.

The rules are in `advice`. A saving is the most that could be won: the cause may hide another one, and savings of
different rows don't add up. That nothing stands out is an answer too.
"""

from __future__ import annotations

import polars as pl

from ...advice import CATEGORIES, Facts
from ...advice import advice as advice_of
from ...table import DURATION, FRACTION, PROSE, TEXT, Column, Table
from ...trace import Trace
from ...view import Reference, View


class Advice(Table):
    """One row is one thing to do; the last row, `nothing_to_fix`, says what is in order and what can't be told."""

    key, weight = ("rule",), "saving_ns"

    rule = Column(TEXT, "Id of the rule.")
    title = Column(PROSE, "What was found.")
    evidence = Column(PROSE, "The numbers that show it.")
    action = Column(PROSE, "What to do.")
    saving_ns = Column(
        DURATION,
        "The most that it could save per step (of the whole recording if no steps were marked); missing if it isn't a "
        "matter of time.",
    )
    saving_frac = Column(FRACTION, "Saving / the mean length of a step.")
    confidence = Column(
        TEXT,
        "high: measured; medium: measured, with a cause that is likely; low: an estimate; cannot_tell: the time is "
        "measured, and the recording doesn't say what it is due to.",
    )
    view = Column(TEXT, "Id of the view that holds the rows which show it.")
    filter = Column(TEXT, "What to filter that view by; missing if all of it shows it.")


def advice(trace: Trace) -> pl.DataFrame:
    """The largest part of the step first, then what isn't a matter of time, then what needs nothing."""
    facts = Facts(trace)
    rows = [
        (
            a.rule,
            a.title,
            a.evidence,
            a.action,
            a.saving_ns,
            None if a.saving_ns is None else facts.share(a.saving_ns),
            a.confidence,
            a.view,
            a.filter or None,
        )
        for a in advice_of(facts)
    ]
    return Advice.of(pl.DataFrame(rows, schema=Advice.schema(), orient="row"))


VIEW = View(
    advice,
    table=Advice,
    title="Advice",
    group="Overview",
    hint="The recording holds no time at all.",
    within="recording",
    reference=Reference(view="view", filter="filter", rule="rule", categories=CATEGORIES),
)
