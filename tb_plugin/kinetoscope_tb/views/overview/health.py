"""Health: what in this recording changes the meaning of its numbers.

Nothing is dropped silently: whatever the reader repaired or lost, and whatever a view has to leave out, is counted here
with what it means. The rules are in `checks`.
"""

from __future__ import annotations

import polars as pl

from ...diagnostics import diagnose
from ...table import COUNT, ID, PROSE, TEXT, Column, Table
from ...trace import Trace
from ...view import View


class Health(Table):
    """One row is one thing to know of the recording."""

    key, weight = ("rule",), "count"

    rule = Column(TEXT, "Id of the rule.")
    level = Column(TEXT, "loss: data is gone; warning: some numbers are off or missing; note: good to know.")
    count = Column(COUNT, "How many rows or places it concerns.")
    consequence = Column(PROSE, "What it means for the numbers, and what to do.")
    first_byte = Column(
        ID, "First byte of the decompressed file that it concerns; missing if it is no place in the file."
    )


def health(trace: Trace) -> pl.DataFrame:
    """Losses first, then warnings, then notes."""
    rows = [(f.rule, f.level, f.count, f.consequence, f.first_offset) for f in diagnose(trace)]
    return Health.of(pl.DataFrame(rows, schema=Health.schema(), orient="row"))


VIEW = View(
    health,
    table=Health,
    title="Trace health",
    group="Overview",
    hint="Nothing was lost or repaired: the numbers are as recorded.",
    within="recording",
    shortcut="h",
)
