"""Links: which group or pair of ranks moves the same data more slowly than others like it, beyond what noise explains.

Compared are groups of as many ranks that lie as far apart, on the same operation with messages of one size, and pairs
of ranks that send each other messages of one size. Of each the typical transfer counts, which no rank's being late
makes longer. A slow link is a cable, a switch, a network card, or neighbours who use the same ones.
"""

from __future__ import annotations

import polars as pl

from ...distributed import Ranks
from ...distributed.imbalance.links import SLOW
from ...distributed.imbalance.links import links as compared
from ...table import BYTE_RATE, BYTES, COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...view import View


class Links(Table):
    """One row is what one group, or one pair, moves by one operation in messages of one size; slow ones first."""

    key, weight = ("link", "operation", "message_bytes"), "transfer_ns"

    link = Column(TEXT, "The process group and its ranks, or the rank that sends and the one that receives.")
    operation = Column(TEXT, "What is done; `transfer` is a send with its receive.")
    message_bytes = Column(BYTES, "Size of one message.", adds_up=False)
    verdict = Column(TEXT, "`slow`: slower than others like it by more than the threshold; else `like others`.")
    slower_frac = Column(
        FRACTION, "By how much its typical transfer is longer than that of the others; negative: it is faster."
    )
    threshold_frac = Column(
        FRACTION, "From where on it is called slow: 10 %, or what noise reaches on any link in one run of a hundred."
    )
    transfer_ns = Column(
        DURATION, "Its typical transfer, the median over its calls: no waiting for late ranks in it.", adds_up=False
    )
    others_ns = Column(DURATION, "The median of the typical transfers of the others.", adds_up=False)
    algorithm_bytes_per_s = Column(BYTE_RATE, "Message ÷ typical transfer.")
    calls = Column(COUNT, "Of how many calls the transfer is known.")


def links(ranks: Ranks) -> pl.DataFrame:
    """Slow ones first, then by how much they are slower."""
    group = ranks.group_labels.select("group", "label")
    pair = pl.concat_str(pl.lit("rank "), "sender", pl.lit(" → rank "), "receiver")
    rows = (
        compared(ranks)
        .join(group, "group", "left", maintain_order="left")
        .with_columns(
            link=pl.when(pl.col("group") >= 0).then("label").otherwise(pair),
            operation="kind",
            message_bytes="bytes",
            algorithm_bytes_per_s=pl.col("bytes") / pl.col("transfer_ns") * 1e9,
        )
        .with_columns(is_like_others=pl.col("verdict") != SLOW, faster_frac=-pl.col("slower_frac"))
        .sort("is_like_others", "faster_frac", "link", "operation", "bytes")
    )
    return Links.of(rows.select(Links.schema().names()).cast(Links.schema()))


VIEW = View(
    links,
    table=Links,
    title="Links",
    group="Run",
    scope="span",
    within="recording",
    needs="matches",
    hint="Links can be compared where several groups, or pairs, of ranks do the same with messages of one size, three "
    "times or more. Record all ranks, for several steps.",
)
