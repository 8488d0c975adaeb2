"""Bytes that a rank sends to each other rank, from calls with known receivers: sends and all-to-alls.

The library decides which path data takes in a ring or a tree, so all-reduces and the like are left out.
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
        trace: The trace.
        groups: GROUPS.
        group: The group's row of each row of trace.collectives, or NONE.
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
    sends = calls.filter((pl.col("kind") == "send") & (pl.col("peer") >= 0) & (pl.col("bytes") >= 0))
    return sends.select("peer", "kind", "bytes", calls=pl.lit(1, pl.Int64))


def _all_to_alls(trace: Trace, groups: pl.DataFrame, group: pl.Series) -> list[pl.DataFrame]:
    """One frame per distinct all-to-all: bytes to each peer, times the number of calls."""
    metadata = trace.collectives
    rows = pl.DataFrame(
        {
            "name": metadata["name"].cast(pl.String),
            "dtype": metadata["dtype"].cast(pl.String),
            "elements": metadata["in_elements"],
            "split": metadata["in_split"].cast(pl.String),
            "group": group,
        }
    ).filter((metadata["host_event"] >= 0) & metadata["name"].is_not_null())
    distinct = rows.group_by(rows.columns).len()
    rank_sets = [RankSet.of(ranks) for ranks in groups["ranks"]]
    frames = []
    for name, dtype, elements, split, number, count in distinct.rows():
        if kind_of(name) != "all_to_all" or number < 0:
            continue
        elements_by_peer, element_size = _split(elements, split, rank_sets[number]), element_bytes(dtype or "")
        if elements_by_peer and element_size:
            peers, numbers = np.array(list(elements_by_peer)), np.array(list(elements_by_peer.values()), np.int64)
            frames.append(
                pl.DataFrame({"peer": peers, "bytes": numbers * element_size * count}).select(
                    "peer", pl.lit("all_to_all").alias("kind"), "bytes", calls=pl.lit(count, pl.Int64)
                )
            )
    return frames


def _split(elements: int, split: str | None, ranks: RankSet) -> dict[int, int]:
    """Number of elements for each rank; empty if unknown. Without split sizes all parts are equal."""
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
    # Split sizes count along the first dimension, elements over all dimensions.
    elements_per_row, rest = divmod(max(elements, 0), sum(parts))
    return {} if rest else {rank: part * elements_per_row for rank, part in zip(ranks, parts, strict=True)}
