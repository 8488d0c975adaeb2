"""Slow links: which group of ranks, or which pair, moves the same data more slowly than comparable ones.

Comparable are: the same operation on messages of one size, in groups with as many ranks, with the same stride (close
ranks share a machine and its links, distant ones a network), on as many machines if these are known; and transfers of
one size between ranks with the same distance. A link's typical transfer is the median over its calls, of the rank that
came last, so it contains no wait. The link is slow if that exceeds the median of the others by more than the threshold,
the largest of

* 10 %;
* what noise reaches on any link in one of a hundred runs: the spread of transfers from call to call, as the standard
  error of a median, times Student's quantile;
* the same quantile times the spread of the typical transfers over the links, from FEW_LINKS links on.

All of this uses logarithms, since links differ by factors.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...names.collectives import PEER_TO_PEER
from ..process_groups import RankSet
from ..run import Ranks
from .statistics import EFFICIENCY, OF_MEDIAN, SPREAD, quantile, spread_of
from .stragglers import excess

Floats = NDArray[np.float64]

FALSE_ALARMS = 0.01  # share of runs in which noise alone may name a link
LEAST_FRAC = 0.1
FEWEST_CALLS, FEW_LINKS = 3, 8
SLOW, ALIKE = "slow", "like others"

LINKS = {
    "kind": pl.String,  # `transfer`: between two ranks
    "group": pl.Int32,  # NONE: of a transfer
    "sender": pl.Int64,  # NONE: of a collective
    "receiver": pl.Int64,
    "bytes": pl.Int64,
    "calls": pl.Int64,
    "transfer_ns": pl.Int64,  # median
    "others_ns": pl.Int64,  # the median of the others' medians
    "slower_frac": pl.Float64,  # transfer ÷ that of the others − 1
    "threshold_frac": pl.Float64,  # above this it is slow
    "verdict": pl.String,
}
_LINK = ["kind", "group", "sender", "receiver", "bytes"]
_ALIKE = ["kind", "bytes", "size", "stride", "hosts"]


def links(ranks: Ranks) -> pl.DataFrame:
    """The frame LINKS: all comparable links; in no order."""
    calls = pl.concat([_collectives(ranks), _transfers(ranks)])
    enough = calls.filter((pl.col("transfer_ns") > 0) & (pl.len().over(_LINK) >= FEWEST_CALLS))
    comparable = enough.filter(pl.struct(_LINK).n_unique().over(_ALIKE) > 1)
    tests = comparable.select(_LINK).n_unique() if comparable.height else 0
    parts = comparable.partition_by(_ALIKE, maintain_order=True) if comparable.height else []
    judgments = [_judge(part, tests) for part in parts]
    return pl.concat([pl.DataFrame(schema=LINKS), *judgments])


def _collectives(ranks: Ranks) -> pl.DataFrame:
    """One row per matched collective whose transfer is known, in order."""
    is_known = pl.col("transfer_ns").is_not_null() & ~pl.col("kind").is_in(PEER_TO_PEER)
    once = ranks.calls.filter(is_known & (pl.col("group") >= 0)).unique("match", keep="first", maintain_order=True)
    host = dict(ranks.workers.select("rank", "host").drop_nulls().rows())
    rank_sets = [RankSet.of(ranks_text) for ranks_text in ranks.groups["ranks"]]
    about = pl.DataFrame(
        {
            "group": range(len(rank_sets)),
            "size": ranks.groups["size"],
            "stride": [_stride(rank_set) for rank_set in rank_sets],
            "hosts": [_hosts(rank_set, host) for rank_set in rank_sets],
        },
        schema={"group": pl.Int32, "size": pl.Int64, "stride": pl.Int64, "hosts": pl.Int64},
    )
    collectives = once.filter(pl.col("bytes") >= 0).join(about, "group", "left", maintain_order="left")
    none = pl.lit(NONE, pl.Int64)
    return collectives.select("kind", "group", *_no_pair(none), "bytes", "transfer_ns", "size", "stride", "hosts")


def _stride(ranks: RankSet) -> int:
    """Distance of the first two ranks, or NONE."""
    first = [*islice(ranks, 2)]
    return first[1] - first[0] if len(first) > 1 else NONE


def _hosts(ranks: RankSet, host: Mapping[int, str]) -> int:
    """Number of machines that the ranks are on; 0 if any is unknown."""
    if len(ranks) > len(host) or not all(rank in host for rank in ranks):
        return 0
    return len({host[rank] for rank in ranks})


def _no_pair(none: pl.Expr) -> list[pl.Expr]:
    return [none.alias("sender"), none.alias("receiver")]


def _transfers(ranks: Ranks) -> pl.DataFrame:
    """One row per matched send and receive, in order: the shorter one didn't wait."""
    host = ranks.workers.select("rank", "host").drop_nulls().unique("rank")
    is_send = pl.col("kind") == "send"
    pairs = (
        ranks.calls.filter(pl.col("match").is_not_null() & pl.col("kind").is_in(PEER_TO_PEER))
        .filter((pl.col("dur_ns") >= 0).all().over("match"))
        .group_by("match", maintain_order=True)
        .agg(
            sender=pl.col("rank").filter(is_send).first(),
            receiver=pl.col("peer").filter(is_send).first(),
            bytes=pl.col("bytes").max(),
            transfer_ns=pl.col("dur_ns").min(),
        )
        .filter(pl.col("sender").is_not_null() & (pl.col("receiver") >= 0) & (pl.col("bytes") >= 0))
        .join(host.rename({"host": "from"}), left_on="sender", right_on="rank", how="left", maintain_order="left")
        .join(host.rename({"host": "to"}), left_on="receiver", right_on="rank", how="left", maintain_order="left")
    )
    return pairs.select(
        pl.lit("transfer").alias("kind"),
        pl.lit(NONE, pl.Int32).alias("group"),
        "sender",
        "receiver",
        "bytes",
        "transfer_ns",
        pl.lit(2, pl.Int64).alias("size"),
        (pl.col("receiver") - pl.col("sender")).abs().alias("stride"),
        pl.when(pl.col("from") == pl.col("to"))
        .then(1)
        .when(pl.col("from") != pl.col("to"))
        .then(2)
        .otherwise(0)
        .cast(pl.Int64)
        .alias("hosts"),
    )


def _judge(rows: pl.DataFrame, tests: int) -> pl.DataFrame:
    """LINKS of comparable calls."""
    rows = rows.with_columns(link=pl.struct(_LINK).rank("dense") - 1, nth=pl.int_range(pl.len()).over(_LINK))
    values = np.full((int(rows["link"].max()) + 1, int(rows["nth"].max()) + 1), np.nan)  # type: ignore[arg-type]
    values[rows["link"].to_numpy(), rows["nth"].to_numpy()] = np.log(rows["transfer_ns"].to_numpy())
    typical = np.nanmedian(values, axis=1)
    threshold = _thresholds(values, typical, tests)
    over = excess(typical[:, None])[:, 0]
    typical_calls = rows.group_by("link").agg(pl.col(_LINK).first(), calls=pl.len()).sort("link")
    return (
        typical_calls.with_columns(
            transfer_ns=pl.Series(np.round(np.exp(typical))),
            others_ns=pl.Series(np.round(np.exp(typical - over))),
            slower_frac=pl.Series(np.expm1(over)),
            threshold_frac=pl.Series(np.expm1(threshold)),
            verdict=pl.Series(np.where(over > threshold, SLOW, ALIKE).tolist(), dtype=pl.String),
        )
        .select(*LINKS)
        .cast(pl.Schema(LINKS))
    )


def _thresholds(values: Floats, typical: Floats, tests: int) -> Floats:
    """The excess of each link, as a logarithm, that noise doesn't explain."""
    spread, freedom = spread_of(values)
    calls = np.sum(~np.isnan(values), axis=1)
    of_others = np.sqrt(1 + 1 / (typical.size - 1))  # the median of the others is as noisy
    from_calls = quantile(FALSE_ALARMS / tests, freedom) * OF_MEDIAN * of_others * spread / np.sqrt(calls)
    from_links = 0.0
    if typical.size >= FEW_LINKS:
        apart = SPREAD * float(np.median(np.abs(typical - np.median(typical))))
        from_links = quantile(FALSE_ALARMS / tests, EFFICIENCY * typical.size) * apart
    thresholds: Floats = np.maximum(np.maximum(from_calls, from_links), np.log1p(LEAST_FRAC))
    return thresholds
