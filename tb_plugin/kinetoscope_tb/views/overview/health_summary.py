"""Trace health in a sentence: how much of the steps is doubtful, or that nothing is."""

from __future__ import annotations

from collections import Counter

import polars as pl

from ...advice.facts import Facts
from ...advice.faults import EVERYTHING, Faults
from ...diagnostics.diagnose import diagnose
from ...names.text import capitalize, enumeration
from ...table import Summary
from ...trace import Diagnostic, Trace
from ...view import Lead, View

_TITLES = {
    "loss": "Data of {recording} is gone.",
    "warning": "Something in {recording} is off or missing.",
    "note": "Nothing of {recording} was lost or repaired: its numbers are as recorded.",
}
"""What the most serious level means; the page also counts what is wrong with other ranks of the run."""

_PLURALS = {"loss": "losses", "warning": "warnings", "note": "notes"}


class HealthSummary(
    Summary,
    colors={"loss": "warning", "note": "line"},
    rule="The most serious level of the findings: `loss`, `warning` or `note`.",
    title="How much of the steps is doubtful; if that is too little to matter, what the level means.",
    evidence="Why it is doubtful, or the number of findings of each level.",
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
    is_of_many = (trace.meta.world_size or 1) > 1
    title = _TITLES[diagnostics[0].level].format(recording="this rank's recording" if is_of_many else "this recording")
    counts = Counter(diagnostic.level for diagnostic in diagnostics)
    return title, f"{enumeration([_count(counts[level], level) for level in counts])} below."


def _count(number: int, level: str) -> str:
    return f"{number} {level if number == 1 else _PLURALS[level]}"


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
