"""Health: problems of this trace that affect its numbers.

Nothing is dropped silently: everything that the reader repaired or lost, and everything that views leave out, is
counted here with its consequence. The rules are in `diagnostics`.
"""

from __future__ import annotations

import polars as pl

from ...diagnostics.diagnose import diagnose
from ...table import COUNT, ID, PROSE, TEXT, Column, Table
from ...trace import Trace
from ...view import Tab, View


class Health(Table):
    """What was lost, repaired or left out of the trace, and what that means for the numbers."""

    key = ("rule",)

    rule = Column(TEXT, "Id of the rule.", shown_as="id")
    level = Column(TEXT, "loss: data is gone; warning: some numbers are off or missing; note: good to know.")
    count = Column(COUNT, "Number of affected events or places.", adds_up=False)
    consequence = Column(PROSE, "Consequence for the numbers, and what to do.")
    first_byte = Column(
        ID, "First affected byte of the decompressed file; missing if it isn't a place in the file.", shown_as="offset"
    )


def health(trace: Trace) -> pl.DataFrame:
    """Losses first, then warnings, then notes."""
    rows = [(f.rule, f.level, f.count, f.consequence, f.first_offset) for f in diagnose(trace)]
    return Health.of(pl.DataFrame(rows, schema=Health.schema(), orient="row"))


VIEW = View(
    health,
    table=Health,
    title="Trace health",
    entry="Trace health",
    place=Tab("Notes"),
    hint="Nothing was lost or repaired: the numbers are as recorded.",
    within="recording",
    reads_captures=True,
    level="level",
)
