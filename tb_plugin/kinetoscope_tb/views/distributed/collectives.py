"""Collectives: each one on all of its ranks, how long it moved data, who came last and how long the others waited.

The rank whose part is the shortest came last: nobody leaves before it has come. Its duration is the transfer; what the
others took longer they waited. The skew is how long the first one was there before the last.
"""

from __future__ import annotations

import polars as pl

from ...distributed import Ranks
from ...table import BYTES, COUNT, DURATION, ID, TEXT, Column, Table
from ...view import View


class Collectives(Table):
    """One row is one collective, or transfer between two ranks, that was found on several ranks."""

    key, weight = ("number",), "total_wait_ns"

    number = Column(ID, "Its number here, in order of time on the first rank.")
    step = Column(TEXT, "The step in which it was called; missing between steps.")
    operation = Column(TEXT, "What it does; `transfer` is a send with its receive.")
    group = Column(TEXT, "The process group and its ranks.")
    sequence = Column(ID, "Its number in the group, where the recording tells; the same on all ranks.")
    message_bytes = Column(BYTES, "Size of its message; where ranks differ, the mean.")
    ranks = Column(COUNT, "On how many ranks it was found.")
    missing = Column(COUNT, "How many ranks of the group have no row of it; missing if the group's size isn't known.")
    transfer_ns = Column(DURATION, "From when the last rank came until it was done; missing where it can't be told.")
    max_wait_ns = Column(DURATION, "How long the first rank waited for the last: the skew.")
    mean_wait_ns = Column(DURATION, "How long a rank waited for the last, on average.")
    total_wait_ns = Column(DURATION, "Sum of the waits over its ranks.")
    last = Column(TEXT, "The worker that came last; missing if two or more did.")
    first = Column(TEXT, "The worker that came first and waited longest.")


def collectives(ranks: Ranks) -> pl.DataFrame:
    """In order of time."""
    worker = ranks.workers["worker"]
    calls = ranks.calls.filter(pl.col("match").is_not_null() & pl.col("wait_ns").is_not_null())
    is_last = pl.col("wait_ns") == 0
    told = calls.group_by("match").agg(
        transfer_ns=pl.col("transfer_ns").first(),
        max_wait_ns=pl.col("wait_ns").max(),
        mean_wait_ns=pl.col("wait_ns").mean().round(),
        total_wait_ns=pl.col("wait_ns").sum(),
        last=pl.when(is_last.sum() == 1).then(pl.col("member").filter(is_last).first()),
        first=pl.when(pl.col("wait_ns").max() > 0).then(pl.col("member").sort_by("wait_ns").last()),
    )
    rows = (
        ranks.matches.join(told, "match", "left", maintain_order="left")
        .join(ranks.group_labels, "group", "left", maintain_order="left")
        .with_columns(
            number=pl.col("match"),
            operation=pl.col("kind"),
            group=pl.col("label").fill_null("unknown"),
            sequence=pl.col("nth").replace(-1, None),
            message_bytes=pl.col("bytes").replace(-1, None),
            ranks=pl.col("members"),
            missing=pl.when(pl.col("size") >= 0).then(
                pl.max_horizontal(pl.col("size") - pl.col("members").cast(pl.Int64), 0)
            ),
        )
    )
    names = [pl.Series(end, worker.gather(rows[end])) for end in ("last", "first")]
    return Collectives.of(rows.with_columns(names).select(Collectives.schema().names()).cast(Collectives.schema()))


VIEW = View(
    collectives,
    table=Collectives,
    title="Collectives",
    group="Run",
    scope="span",
    within="moments",
    needs="matches",
    hint="No collective was found on two ranks. Record several ranks of a run at the same time.",
)
