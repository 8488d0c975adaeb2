"""Topology: the machine, devices, mesh coordinates and process groups of each rank."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...distributed.process_groups import RankSet, format_ranks
from ...distributed.roles import roles
from ...distributed.run import Ranks
from ...table import COUNT, ID, TEXT, Column, Table
from ...view import Tab, View

MOST_LISTED = 1 << 20  # total size of all groups up to which ranks without a trace show their groups too


class Topology(Table):
    """Where each rank of the job runs, and in which groups; ranks without a trace are one line."""

    key = ("rank", "worker", "problem")

    rank = Column(ID, "Its global rank; missing in the lines that stand for ranks without a trace.")
    worker = Column(TEXT, "The worker's name; missing if it has no trace.")
    host = Column(TEXT, "Host name; missing if unknown.")
    device = Column(TEXT, "The devices that it used: number and name.")
    mesh = Column(
        TEXT, "Its coordinates in the job's device mesh, such as dp 0, tp 1; only if our recorder wrote the trace."
    )
    role = Column(
        TEXT,
        "What it does in the job, such as `prefill`, `decode`, `trainer`, `rollout` or `reward`, and its place along "
        "axes, such as `tp 1`; missing if nothing shows it.",
    )
    role_source = Column(
        TEXT,
        "How that is known: the worker's `name`, descriptions of `process groups`, or `inferred` from what it ran "
        "while it was recorded.",
    )
    groups = Column(
        TEXT,
        "The process groups that it is in, from its own collectives or those of other ranks; missing if the ranks of "
        "the line differ in them.",
    )
    calls = Column(COUNT, "Number of collectives and transfers that it took part in.")
    problem = Column(TEXT, "Why its trace is missing or unusable, and of which ranks.")


def topology(ranks: Ranks) -> pl.DataFrame:
    """Ranks in order, then those without a trace: one line for each reason."""
    problems = [member.problem or None for member in ranks.members]
    facts = [{} if member.summary is None else member.summary.facts for member in ranks.members]
    there = ranks.workers.with_columns(
        roles(ranks).select("role", "role_source"),
        problem=pl.Series(problems, dtype=pl.String),
        mesh=pl.Series([_coordinates(fact.get("mesh")) for fact in facts], dtype=pl.String),
    )
    calls, groups = ranks.calls.group_by("member").agg(calls=pl.len()), _groups(ranks)
    with_trace = there.join(calls, "member", "left").join(groups, "rank", "left").sort("rank", "worker")
    rows = pl.concat([with_trace, _absent(ranks, groups)], how="diagonal")
    return Topology.of(rows.select(Topology.schema().names()).cast(Topology.schema()))


def _absent(ranks: Ranks, groups: pl.DataFrame) -> pl.DataFrame:
    """A line for the ranks that should have recorded, and one for those that the program didn't choose."""
    missing = set(ranks.missing_ranks)
    left_out = [rank for rank in ranks.absent_ranks if rank not in missing]
    lines = [(sorted(missing), "no trace."), (left_out, "not recorded: the program chose other ranks.")]
    labels = dict(groups.rows())
    labels_of_lines = [{labels.get(rank) for rank in numbers} for numbers, _ in lines]
    return pl.DataFrame(
        [
            (
                f"{'Ranks' if len(numbers) > 1 else 'Rank'} {format_ranks(numbers)}: {why}",
                of.pop() if len(of) == 1 else None,
            )
            for (numbers, why), of in zip(lines, labels_of_lines, strict=True)
            if numbers
        ],
        schema={"problem": pl.String, "groups": pl.String},
        orient="row",
    )


def _coordinates(mesh: Any) -> str | None:
    """A rank's mesh coordinates as text, from the file's metadata; None without any."""
    axes = mesh.items() if isinstance(mesh, dict) else ()
    coordinates = [f"{axis} {at}" for axis, at in axes if isinstance(at, int) and not isinstance(at, bool)]
    return ", ".join(coordinates) or None


def _groups(ranks: Ranks) -> pl.DataFrame:
    """The labels of each rank's groups; for ranks without a trace, only if groups are small."""
    rank_sets = [RankSet.of(text) for text in ranks.groups["ranks"]]
    rank_numbers = {rank for rank in ranks.workers["rank"].to_list() if rank is not None}
    if sum(map(len, rank_sets)) <= MOST_LISTED:
        rank_numbers.update(ranks.absent_ranks)
    members = [group.among(rank_numbers) for group in rank_sets]
    columns = {"label": ranks.group_labels["label"], "rank": members}
    frame = pl.DataFrame(columns, schema={"label": pl.String, "rank": pl.List(pl.Int64)})
    groups = pl.col("label").unique(maintain_order=True).str.join(", ")
    return frame.explode("rank").drop_nulls().group_by("rank", maintain_order=True).agg(groups=groups)


VIEW = View(
    topology,
    table=Topology,
    title="Topology",
    entry="Ranks",
    place=Tab("Cluster"),
    scope="span",
    within="recording",
)
