"""Links: which group or pair of ranks moves the same data more slowly than comparable ones, beyond noise.

Comparable are groups with the same number of ranks and the same stride, for the same operation with messages of one
size, and pairs of ranks that send messages of one size. The measure is the typical transfer, which late ranks don't
make longer. Slow links have a bad cable, switch or network card, or share these with other jobs.
"""

from __future__ import annotations

import polars as pl

from ...distributed.contents import has_matches
from ...distributed.imbalance.links import SLOW
from ...distributed.imbalance.links import links as compared
from ...distributed.run import Ranks
from ...table import BYTE_RATE, BYTES, COUNT, DURATION, FRACTION, TEXT, Column, Table
from ...view import Part, View


class Links(Table):
    """Which groups or pairs of ranks move data slowly, by operation and message size; slow ones first."""

    key, weight = ("link", "operation", "message_bytes"), "transfer_ns"

    link = Column(TEXT, "The process group and its ranks, or the sending and the receiving rank.")
    operation = Column(TEXT, "Operation; `transfer` is a send with its receive.")
    message_bytes = Column(BYTES, "Size of one message.", adds_up=False)
    verdict = Column(TEXT, "`slow`: slower than comparable links by more than the threshold; else `like others`.")
    slower_frac = Column(FRACTION, "How much longer its typical transfer is than that of the others; negative: faster.")
    threshold_frac = Column(
        FRACTION, "Threshold for a slow link: 10 %, or what noise reaches on any link in one of a hundred runs."
    )
    transfer_ns = Column(
        DURATION, "Its typical transfer, the median over its calls, without waits for late ranks.", adds_up=False
    )
    others_ns = Column(DURATION, "The median of the typical transfers of the others.", adds_up=False)
    algorithm_bytes_per_s = Column(BYTE_RATE, "Message ÷ typical transfer.")
    calls = Column(COUNT, "Number of calls with a known transfer.")


def links(ranks: Ranks) -> pl.DataFrame:
    """Slow ones first, then by decreasing slowness."""
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
    entry="Ranks",
    place=Part("communication"),
    scope="span",
    within="recording",
    needs=has_matches,
    hint="Links are compared with each other: that takes several groups, or pairs, of ranks that run the same "
    "operation with messages of one size at least three times. A job with a single group or pair has nothing to "
    "compare; for any other job, record all ranks for several steps.",
)
