"""How much shorter the steps of a pipeline would be if a stage, or a link between stages, were as fast as the others.

Stages have no calls in common between which their work could be compared. So all that a stage does for the part of the
step that takes longer becomes faster by the same factor, and takes as long as on the other stages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...critical_path.classes import CLASSES, COMMUNICATION, COMPUTATION, COPY, HOST_COMMUNICATION
from ..imbalance.step_times import own_parts
from ..run import Ranks
from .pace_of_others import mean_savings
from .paths import Paths

Ints = NDArray[np.int64]
Step = tuple[int, str, str]  # place, worker, step

_CLASSES_OF_PARTS = {"computation_ns": [COMPUTATION], "copies_ns": [COPY]}
_OF_HOST = [i for i in range(len(CLASSES)) if i not in (COMPUTATION, COPY, COMMUNICATION, HOST_COMMUNICATION)]


def savings_at_pace_of_stages(
    ranks: Ranks, rows: pl.DataFrame, late: Mapping[str, str], choices: Sequence[Sequence[str]]
) -> list[int | None]:
    """How much shorter the average complete step would be, in ns, for each choice of late workers that become faster.

    Args:
        ranks: The traces.
        rows: `step_rows` of them.
        late: Workers with the one of PARTS in which they take longer than those of other stages.
        choices: Some of these workers, for each choice.
    """
    parts = own_parts(rows.filter("is_complete"))
    shares = {worker: _shares(parts, worker, part, late) for worker, part in late.items()}
    return mean_savings(ranks, [partial(_savings_of_workers, late, shares, names) for names in choices])


def _shares(parts: pl.DataFrame, worker: str, part: str, late: Mapping[str, str]) -> dict[Step, float]:
    """What share of a part a worker takes longer than those of other stages that aren't late, by step."""
    of_part = parts.select("place", "worker", "step", "stage", ns=part)
    own = of_part.filter(worker=worker)
    others = of_part.filter(~pl.col("worker").is_in(list(late))).join(own, ["place", "step", "stage"], "anti")
    usual = others.group_by("place", "step").agg(usual=pl.col("ns").median())
    share = (1 - pl.col("usual") / pl.col("ns").clip(1)).clip(0, 1)
    of_steps = own.join(usual, ["place", "step"]).select("place", "worker", "step", share)
    return {(span, name, step): share for span, name, step, share in of_steps.rows()}


def _savings_of_workers(
    late: Mapping[str, str], shares: Mapping[str, Mapping[Step, float]], names: Sequence[str], paths: Paths
) -> Ints | None:
    graph = paths.merged_graph
    workers = graph.ranks.workers.select("member", "worker")
    steps = graph.ranks.steps.join(workers, "member", "left", maintain_order="left").with_row_index("row")
    rows_of_names = steps.filter(pl.col("worker").is_in(list(names))).select("row", "place", "worker", "step")
    less = np.zeros_like(graph.slack)
    for row, span, worker, step in rows_of_names.rows():
        segments, classes = graph.of_one_step(row), _CLASSES_OF_PARTS.get(late[worker], _OF_HOST)
        share = shares[worker].get((span, worker, step), 0)
        less[segments] = (graph.spent[segments][:, classes].sum(axis=1) * share).astype(np.int64)
    if rows_of_names.is_empty():
        return None
    return np.maximum(paths.shorter(less, np.zeros_like(graph.dur)), 0)


def savings_of_links(ranks: Ranks, links: Sequence[tuple[int, int, int, int]]) -> list[int | None]:
    """How much shorter the average complete step would be, in ns, if each of some links were like the others.

    Args:
        ranks: The traces.
        links: The ranks that send and receive, the size of a message, and how long other links take for it, in ns.
    """
    return mean_savings(ranks, [partial(_savings_of_link, *link) for link in links])


def _savings_of_link(sender: int, receiver: int, size: int, others_ns: int, paths: Paths) -> Ints | None:
    graph = paths.merged_graph
    calls = graph.ranks.calls.with_columns(bytes=pl.col("bytes").max().over("match"))
    ends = [("send", sender, receiver), ("recv", receiver, sender)]
    is_of_link = pl.any_horizontal(
        (pl.col("kind") == kind) & (pl.col("rank") == rank) & (pl.col("peer") == peer) for kind, rank, peer in ends
    )
    is_like = is_of_link & pl.col("match").is_not_null() & (pl.col("bytes") == size)
    usual = calls.select(pl.when(is_like).then(pl.lit(others_ns, pl.Int64))).to_series()
    if usual.null_count() == usual.len():
        return None
    transfer = graph.dur - graph.wait
    cut = np.maximum(transfer - usual.fill_null(np.iinfo(np.int64).max // 2).to_numpy(), 0)
    return np.maximum(paths.shorter(np.zeros_like(graph.slack), cut), 0)
