"""Run health: what is missing or odd in a run of many ranks, and what that does to its numbers."""

from __future__ import annotations

import polars as pl

from ...diagnostics.run import diagnose_run
from ...distributed import Ranks
from ...table import COUNT, PROSE, TEXT, Column, Table
from ...view import View


class RunHealth(Table):
    """One row is one thing that changes what the run's numbers mean; none is the best answer."""

    key = ("rule",)

    rule = Column(TEXT, "Its id.")
    level = Column(TEXT, "note: good to know; warning: some numbers are off or missing; loss: data is gone.")
    count = Column(COUNT, "How many ranks, recordings or calls it concerns.")
    consequence = Column(PROSE, "What it means, and what to do if anything can be done.")


def run_health(ranks: Ranks) -> pl.DataFrame:
    """The worst first."""
    order = ("loss", "warning", "note")
    found = sorted(diagnose_run(ranks), key=lambda finding: order.index(finding.level))
    rows = [(finding.rule, finding.level, finding.count, finding.consequence) for finding in found]
    return RunHealth.of(pl.DataFrame(rows, schema=RunHealth.schema(), orient="row"))


VIEW = View(
    run_health,
    table=RunHealth,
    title="Run health",
    group="Run",
    scope="span",
    within="recording",
    hint="Nothing is missing, and nothing odd was found.",
)
