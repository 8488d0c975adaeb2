"""Collectives: how long each one moved data, which rank came last and how long the others waited.

The rank with the shortest part came last: no rank leaves before it has entered. Its duration is the transfer; the rest
of the others' durations is their wait. The skew is the time between the arrivals of the first and the last rank. If a
rank of the group wasn't recorded, it may have come last: then who was last, and the transfer, are unknown.
"""

from __future__ import annotations

import polars as pl

from ...distributed.contents import has_matches
from ...distributed.imbalance.collective_waits import NOISE, collective_waits
from ...distributed.run import Ranks
from ...table import BYTES, COUNT, DURATION, ID, TEXT, Column, Table
from ...view import Part, View


class Collectives(Table):
    """Every collective and transfer that was matched across ranks."""

    key, weight = ("number",), "total_wait_ns"

    number = Column(ID, "Its number in this table, in order of time on the first rank.")
    step = Column(TEXT, "The step in which it was called; missing between steps.")
    operation = Column(TEXT, "Operation; `transfer` is a send with its receive.")
    group = Column(TEXT, "The process group and its ranks.")
    sequence = Column(ID, "Its sequence number in the group, if recorded; the same on all ranks.")
    message_bytes = Column(BYTES, "Size of its message; the mean if ranks differ.")
    ranks = Column(COUNT, "Number of ranks with an event for it.")
    missing = Column(COUNT, "Ranks of the group without an event for it; missing if the size of the group is unknown.")
    transfer_ns = Column(
        DURATION, "Time from the arrival of the last rank to the end; missing if not all of its ranks were recorded."
    )
    max_wait_ns = Column(
        DURATION, "Time that the first rank waited for the last, the skew; at least, if ranks are missing."
    )
    mean_wait_ns = Column(DURATION, "Mean time that a rank waited for the last; at least, if ranks are missing.")
    total_wait_ns = Column(DURATION, "Sum of the waits over its ranks.")
    last = Column(
        TEXT,
        "The worker that came last; missing if ranks are missing, if the next one came within `noise_ns`, and if ranks "
        "may leave the collective early, as a broadcast or a reduction to one rank.",
    )
    first = Column(
        TEXT,
        "The worker that came first and waited longest; missing if ranks are missing, if no wait exceeds `noise_ns`, "
        "and if ranks may leave early.",
    )
    noise_ns = NOISE


def collectives(ranks: Ranks) -> pl.DataFrame:
    """In order of time."""
    rows = collective_waits(ranks)
    return Collectives.of(rows.select(Collectives.schema().names()).cast(Collectives.schema()))


VIEW = View(
    collectives,
    table=Collectives,
    title="Collectives",
    entry="Ranks",
    place=Part("communication"),
    scope="span",
    within="moments",
    needs=has_matches,
    hint="No collective was matched across ranks. Record several ranks of a run at the same time.",
)
