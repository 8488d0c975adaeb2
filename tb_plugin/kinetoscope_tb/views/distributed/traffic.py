"""Traffic: how many bytes each rank sends to each other, as far as calls tell the receiver.

All-to-alls and sends tell it. Of an all-reduce and its like nothing is told here: which way data takes in a ring or a
tree is the library's own matter.
"""

from __future__ import annotations

import polars as pl

from ...distributed import Ranks
from ...pictures import Heatmap
from ...table import BYTES, COUNT, ID, TEXT, Column, Table
from ...view import View


class Traffic(Table):
    """One row is what one rank sent to another one by one kind of operation."""

    key, weight = ("sender", "receiver", "operation"), "sent_bytes"
    picture = Heatmap("sender", "receiver")

    sender = Column(ID, "The rank that sends, over the whole job.")
    receiver = Column(ID, "The rank that receives; an all-to-all sends a part to the rank itself too.")
    operation = Column(TEXT, "all_to_all or send.")
    sent_bytes = Column(BYTES, "What it sent, by the metadata of the calls.")
    calls = Column(COUNT, "In how many calls.")


def traffic(ranks: Ranks) -> pl.DataFrame:
    """By sender and receiver."""
    rows = (
        ranks.traffic.join(ranks.workers.select("member", sender="rank"), "member")
        .group_by("sender", receiver="peer", operation="kind")
        .agg(sent_bytes=pl.col("bytes").sum(), calls=pl.col("calls").sum())
        .sort("sender", "receiver", "operation")
    )
    return Traffic.of(rows.select(Traffic.schema().names()).cast(Traffic.schema()))


VIEW = View(
    traffic,
    table=Traffic,
    title="Traffic",
    group="Run",
    scope="span",
    within="recording",
    needs="traffic",
    hint="No recorded call tells to whom it sends. Torch 2.4 and later write it for all-to-alls, 2.5 for sends.",
)
