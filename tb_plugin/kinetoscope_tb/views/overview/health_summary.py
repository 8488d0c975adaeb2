"""Trace health in a sentence: how much of the steps is doubtful, or that nothing is."""

from __future__ import annotations

import polars as pl

from ...advice.facts import Facts
from ...advice.faults import EVERYTHING, Faults
from ...diagnostics.diagnose import diagnose
from ...names.text import capitalize, times
from ...table import Summary
from ...trace import Diagnostic, Trace
from ...view import Lead, View

_TITLES = {
    "loss": "Data of {recording} is gone.",
    "warning": "Some numbers of {recording} are off or missing.",
    "note": "Nothing of {recording} was lost or repaired: its numbers are as recorded.",
}
"""What the most serious level means; the page also counts what is wrong with other ranks of the run."""


class HealthSummary(
    Summary,
    colors={"loss": "warning", "note": "line"},
    rule="The most serious level of the findings: `loss`, `warning` or `note`.",
    title="How much of the steps is doubtful; if that is too little to matter, what the level means.",
    evidence="Why it is doubtful, the consequence of the first finding, or the number of notes.",
    confidence="Always high.",
    view="Id of the view that lists all findings.",
):
    """Whether the numbers of a recording can be trusted."""


def health_summary(trace: Trace) -> pl.DataFrame:
    """One row; none if nothing was found."""
    diagnostics = diagnose(trace)
    if not diagnostics:
        return HealthSummary.of_row(None)
    return HealthSummary.of_row((diagnostics[0].level, *_sentences(trace, diagnostics), "high", "health"))


def _sentences(trace: Trace, diagnostics: list[Diagnostic]) -> tuple[str, str]:
    """The title and its evidence."""
    part, _, reason = Faults(Facts(trace), diagnostics).doubt(EVERYTHING).partition(": ")
    if part:
        return f"{part}.", capitalize(reason)
    first = diagnostics[0]
    reason = f"{times(len(diagnostics), 'note')} below." if first.level == "note" else first.consequence
    is_of_many = (trace.meta.world_size or 1) > 1
    recording = "this rank's recording" if is_of_many else "this recording"
    return _TITLES[first.level].format(recording=recording), reason


VIEW = View(
    health_summary,
    table=HealthSummary,
    title="Trace health in a sentence",
    entry="Trace health",
    place=Lead("health"),
    hint="Nothing was lost or repaired: the numbers are as recorded.",
    within="recording",
    reads_captures=True,
)
