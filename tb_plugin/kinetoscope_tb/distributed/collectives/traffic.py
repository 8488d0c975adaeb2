"""What a rank sends to each other rank, as far as its calls tell the receiver: transfers and all-to-alls.

Which way a ring or a tree takes is the library's own matter, so of an all-reduce nothing is told.
"""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl

from ...names.collectives import element_bytes, kind_of
from ...trace import Trace
from ..model import TRAFFIC
from ..process_groups import RankSet

MOST_PEERS = 1 << 17
_CUT = re.compile(r"\.\.\.|…")


def traffic(trace: Trace, groups: pl.DataFrame, group: pl.Series, calls: pl.DataFrame) -> pl.DataFrame:
    """The frame TRAFFIC.

    Args:
        trace: The recording.
        groups: GROUPS.
        group: Of each row of trace.collectives the row of its group, or NONE.
        calls: CALLS, for the sends.
    """
    parts = [_sends(calls), *_all_to_alls(trace, groups, group)]
    rows = pl.concat([part for part in parts if part.height] or [pl.DataFrame(schema=TRAFFIC)])
    return (
        rows.group_by("peer", "kind")
        .agg(pl.col("bytes").sum(), pl.col("calls").sum())
        .sort("peer", "kind")
        .select(*TRAFFIC)
        .cast(pl.Schema(TRAFFIC))
    )


def _sends(calls: pl.DataFrame) -> pl.DataFrame:
    known = calls.filter((pl.col("kind") == "send") & (pl.col("peer") >= 0) & (pl.col("bytes") >= 0))
    return known.select("peer", "kind", "bytes", calls=pl.lit(1, pl.Int64))


def _all_to_alls(trace: Trace, groups: pl.DataFrame, group: pl.Series) -> list[pl.DataFrame]:
    """One frame per distinct all-to-all: what went to whom, times how often it was called."""
    said = trace.collectives
    rows = pl.DataFrame(
        {
            "name": said["name"].cast(pl.String),
            "dtype": said["dtype"].cast(pl.String),
            "elements": said["in_elements"],
            "split": said["in_split"].cast(pl.String),
            "group": group,
        }
    ).filter((said["host_event"] >= 0) & said["name"].is_not_null())
    distinct = rows.group_by(rows.columns).len()
    listed = [RankSet.of(spelled) for spelled in groups["ranks"]]
    found = []
    for name, dtype, elements, split, number, count in distinct.rows():
        if kind_of(name) != "all_to_all" or number < 0:
            continue
        sent, each = _split(elements, split, listed[number]), element_bytes(dtype or "")
        if sent and each:
            peers, numbers = np.array(list(sent)), np.array(list(sent.values()), np.int64)
            found.append(
                pl.DataFrame({"peer": peers, "bytes": numbers * each * count}).select(
                    "peer", pl.lit("all_to_all").alias("kind"), "bytes", calls=pl.lit(count, pl.Int64)
                )
            )
    return found


def _split(elements: int, split: str | None, ranks: RankSet) -> dict[int, int]:
    """How many numbers go to each rank; empty if that isn't told. Without sizes of the parts all are alike."""
    if not ranks or len(ranks) > MOST_PEERS:
        return {}
    if not (split or "").strip("[] "):
        return dict.fromkeys(ranks, elements // len(ranks)) if elements >= 0 else {}
    if _CUT.search(split or ""):
        return {}
    try:
        parts = json.loads(split or "")
    except (ValueError, RecursionError):
        return {}
    fits = isinstance(parts, list) and len(parts) == len(ranks) and all(isinstance(part, int) for part in parts)
    if not fits or not sum(parts):
        return {}
    # Parts are counted along the first dimension, elements in numbers.
    each, rest = divmod(max(elements, 0), sum(parts))
    return {} if rest else {rank: part * each for rank, part in zip(ranks, parts, strict=True)}
