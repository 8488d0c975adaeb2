"""Topology: which rank ran on which machine and device, where it is in the job's mesh, and in which process groups."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...distributed import Ranks
from ...distributed.process_groups import RankSet
from ...table import COUNT, ID, TEXT, Column, Table
from ...view import View

MOST_LISTED = 1 << 20  # ranks of all groups together, of which those without a recording show their groups too


class Topology(Table):
    """One row is one rank of the job, recorded or not."""

    key = ("rank", "worker")

    rank = Column(ID, "Its rank over the whole job.")
    worker = Column(TEXT, "The worker's name; missing if it has no recording.")
    host = Column(TEXT, "The machine, where it is known.")
    device = Column(TEXT, "The devices that it used: number and name.")
    mesh = Column(
        TEXT, "Its coordinate on each axis of the job's device mesh, such as dp 0, tp 1; where our recorder tells it."
    )
    groups = Column(TEXT, "The process groups in whose collectives it was seen, or that others say it is in.")
    calls = Column(COUNT, "How many collectives and transfers it took part in.")
    problem = Column(TEXT, "Why its recording can't be used.")


def topology(ranks: Ranks) -> pl.DataFrame:
    """Ranks in order, those without a recording too."""
    problems = [member.problem or None for member in ranks.members]
    facts = [{} if member.summary is None else member.summary.facts for member in ranks.members]
    there = ranks.workers.with_columns(
        problem=pl.Series(problems, dtype=pl.String),
        mesh=pl.Series([_coordinates(fact.get("mesh")) for fact in facts], dtype=pl.String),
    )
    absent = pl.DataFrame({"rank": ranks.absent_ranks}, schema={"rank": pl.Int64}).with_columns(
        problem=pl.when(pl.col("rank").is_in(ranks.missing_ranks))
        .then(pl.lit("There is no recording of it."))
        .otherwise(pl.lit("The program chose not to record it."))
    )
    calls = ranks.calls.group_by("member").agg(calls=pl.len())
    rows = (
        pl.concat([there.join(calls, "member", "left"), absent], how="diagonal")
        .join(_groups(ranks), "rank", "left")
        .sort("rank", "worker", nulls_last=True)
    )
    return Topology.of(rows.select(Topology.schema().names()).cast(Topology.schema()))


def _coordinates(mesh: Any) -> str | None:
    """A rank's place in the mesh as people read it, from what a file tells; None if it tells none."""
    axes = mesh.items() if isinstance(mesh, dict) else ()
    told = [f"{axis} {at}" for axis, at in axes if isinstance(at, int) and not isinstance(at, bool)]
    return ", ".join(told) or None


def _groups(ranks: Ranks) -> pl.DataFrame:
    """The labels of each rank's groups; ranks without a recording have them only if groups hold few ranks."""
    listed = [RankSet.of(spelled) for spelled in ranks.groups["ranks"]]
    shown = {rank for rank in ranks.workers["rank"].to_list() if rank is not None}
    if sum(map(len, listed)) <= MOST_LISTED:
        shown.update(ranks.absent_ranks)
    members = [group.among(shown) for group in listed]
    columns = {"label": ranks.group_labels["label"], "rank": members}
    frame = pl.DataFrame(columns, schema={"label": pl.String, "rank": pl.List(pl.Int64)})
    groups = pl.col("label").unique(maintain_order=True).str.join(", ")
    return frame.explode("rank").drop_nulls().group_by("rank", maintain_order=True).agg(groups=groups)


VIEW = View(
    topology,
    table=Topology,
    title="Topology",
    group="Run",
    scope="span",
    within="recording",
)
