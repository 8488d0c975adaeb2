"""Traffic: bytes that each rank sends to each other rank, from calls with known receivers.

These are all-to-alls and sends. For all-reduces and the like the library decides which path data takes in a ring or a
tree, so they are left out.
"""

from __future__ import annotations

import polars as pl

from ...distributed.contents import has_traffic
from ...distributed.run import Ranks
from ...pictures import Heatmap
from ...table import BYTES, COUNT, ID, TEXT, Column, Table
from ...view import Part, View


class Traffic(Table):
    """How much each rank sent to each other rank, by operation."""

    key, weight = ("sender", "receiver", "operation"), "sent_bytes"
    picture = Heatmap("sender", "receiver")

    sender = Column(ID, "The sending rank (global).")
    receiver = Column(ID, "The receiving rank; an all-to-all sends a part to the rank itself too.")
    operation = Column(TEXT, "all_to_all or send.")
    sent_bytes = Column(BYTES, "Bytes sent, from the metadata of the calls.")
    calls = Column(COUNT, "Number of calls.")


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
    entry="Ranks",
    place=Part("communication"),
    scope="span",
    within="recording",
    needs=has_traffic,
    hint="No all-to-all or send with a known receiver was recorded; other collectives, such as all-reduces, have none. "
    "With NCCL, torch 2.4 and later write receivers of all-to-alls, 2.5 those of sends; with gloo, torch doesn't.",
)
