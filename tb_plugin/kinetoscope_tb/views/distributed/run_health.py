"""Run health: problems of a run of many ranks, and their effect on its numbers."""

from __future__ import annotations

import polars as pl

from ...diagnostics.run import diagnose_run
from ...distributed.run import Ranks
from ...table import COUNT, PROSE, TEXT, Column, Table
from ...view import Part, View


class RunHealth(Table):
    """What is wrong with the run's traces, and what that means for the numbers."""

    key = ("rule",)

    rule = Column(TEXT, "Its id.", shown_as="id")
    level = Column(TEXT, "note: good to know; warning: some numbers are off or missing; loss: data is gone.")
    count = Column(COUNT, "Number of affected ranks, traces or calls.", adds_up=False)
    consequence = Column(PROSE, "Consequence, and what to do if anything helps.")


def run_health(ranks: Ranks) -> pl.DataFrame:
    """The worst first."""
    order = ("loss", "warning", "note")
    diagnostics = sorted(diagnose_run(ranks), key=lambda diagnostic: order.index(diagnostic.level))
    rows = [(diagnostic.rule, diagnostic.level, diagnostic.count, diagnostic.consequence) for diagnostic in diagnostics]
    return RunHealth.of(pl.DataFrame(rows, schema=RunHealth.schema(), orient="row"))


VIEW = View(
    run_health,
    table=RunHealth,
    title="Run health",
    entry="Trace health",
    place=Part("health"),
    scope="span",
    within="recording",
    hint="No problems found.",
    level="level",
)
