"""The critical path across ranks in a sentence: which rank it is on most, or how much of it moves data."""

from __future__ import annotations

from typing import Any

import polars as pl

from ...critical_path.classes import BETWEEN
from ...distributed.contents import has_several_workers
from ...distributed.imbalance.late_rank import name_of
from ...distributed.path.paths import BEFORE, PARTS, TRANSFER, UNSPLIT, Paths
from ...distributed.run import Ranks
from ...names import text
from ...table import Summary
from ...view import Lead, View

_LEAST = 0.03  # of the path: ranks and collectives with less of it aren't named
_MOST_NAMED = 3


class PathAcrossRanksSummary(
    Summary,
    colors={"rank": "cpu-exec", "transfer": "communication", "collective": "communication"},
    rule="What takes most of it: `rank`, `transfer`, or `collective` (with unknown waits).",
    title="The rank with most of the path, or the share of collectives; how many ranks that is of, if not of all.",
    evidence="The largest part of that, the share of collectives, and the other ranks.",
    confidence="low: of one step, or not of all ranks; else high.",
    view="Id of the view of slow ranks; of the missing ranks, if there are any.",
):
    """What the critical path across ranks mostly consists of, in one row."""


def path_across_ranks_summary(ranks: Ranks) -> pl.DataFrame:
    """One row; none if no step has a path."""
    paths = Paths.of(ranks)
    segments = paths.segments.filter(pl.col("step").is_in(paths.averaged_steps), pl.col("dur_ns") > 0)
    return PathAcrossRanksSummary.of_row(None if segments.is_empty() else _row(ranks, paths, segments))


def _row(ranks: Ranks, paths: Paths, segments: pl.DataFrame) -> tuple[object, ...]:
    """The columns of PathAcrossRanksSummary."""
    whole, steps = int(segments["dur_ns"].sum()), len(paths.averaged_steps)
    is_call = pl.col("part").is_in([TRANSFER, UNSPLIT])
    calls = _sums(segments.filter(is_call), "part").rows()
    members = _sums(segments.filter(~is_call), "member").join(
        ranks.workers.select(pl.col("member").cast(pl.Int64), "worker", "rank", "host"), "member", maintain_order="left"
    )
    largest_call = calls[0] if calls else (TRANSFER, 0)
    others = members.rows(named=True)
    if others and others[0]["dur_ns"] >= largest_call[1]:
        rank, *others = others
        own = segments.filter(~is_call, pl.col("member") == rank["member"])
        rule, title = "rank", f"{_share(rank['dur_ns'], whole)} of the critical path is on {name_of(rank)}."
        evidence = [_largest_part(ranks, paths, own)]
        evidence += [f"{_share(ns, whole)} is {_WORDS[call]}." for call, ns in calls if ns >= _LEAST * whole]
    else:
        call, call_ns = largest_call
        rule, title = PARTS[call], f"{_share(call_ns, whole)} of the critical path is {_WORDS[call]}."
        evidence = [f"That is {_time(call_ns, steps)}: no single rank has more of it."]
    evidence += _of_others(others, whole, "Other ranks" if rule == "rank" else "Ranks")
    count, absent = ranks.workers["rank"].n_unique(), len(ranks.absent_ranks)
    if absent:
        title = f"Among the {count} of {count + absent} ranks that were recorded, {text.as_clause(title)}"
        return rule, title, " ".join(evidence), "low", "run_health"
    return rule, title, " ".join(evidence), "low" if steps < 2 else "high", "stragglers"


_WORDS = {
    TRANSFER: "collectives that move data, after all ranks have entered",
    UNSPLIT: "collectives whose waits are unknown, because ranks or rows are missing",
    PARTS.index("computation"): "kernels",
    PARTS.index("copy"): "copies and fills",
    PARTS.index("operator"): "operators on the host",
    PARTS.index("runtime call"): "runtime calls",
    BETWEEN: "host code between operators",
}
"""What parts are in a sentence, where their names don't say it."""


def _largest_part(ranks: Ranks, paths: Paths, own: pl.DataFrame) -> str:
    """A sentence about what the path on one rank mostly is; of garbage collection no more than there is host code."""
    steps = len(paths.averaged_steps)
    part, part_ns = _sums(own, "part").row(0)
    much = text.most_or_percent(part_ns / int(own["dur_ns"].sum())).capitalize()
    if part == BEFORE:
        last = paths.steps["member"].gather(own.filter(pl.col("part") == BEFORE)["step"]).unique()
        earlier = ranks.workers.filter(pl.col("member").cast(pl.Int64).is_in(last.to_list())).rows(named=True)
        after = name_of(earlier[0]) if len(earlier) == 1 else "the rank that ended last"
        return f"{much} of that passed before it began the step, {_time(part_ns, steps)} after {after}."
    collecting_ns = _collecting_ns(ranks, paths, own["member"][0])
    is_collecting = part == BETWEEN and collecting_ns >= _LEAST * part_ns
    collects = (
        f"; up to {text.time(min(collecting_ns, part_ns) / steps)} is garbage collection" if is_collecting else ""
    )
    return f"{much} of that is {_WORDS.get(part, PARTS[part])}: {_time(part_ns, steps)}{collects}."


def _collecting_ns(ranks: Ranks, paths: Paths, member: int) -> int:
    """How long a rank collects garbage in the steps that averages cover, while its device is idle."""
    names = paths.steps["step"].gather(paths.averaged_steps)
    own = ranks.steps.filter(pl.col("member") == member, pl.col("step").cast(pl.String).is_in(names.cast(pl.String)))
    return int(own["collecting_ns"].sum())


def _sums(segments: pl.DataFrame, by: str) -> pl.DataFrame:
    sums = segments.group_by(by).agg(pl.col("dur_ns").sum())
    return sums.sort("dur_ns", by, descending=[True, False])


def _of_others(members: list[dict[str, Any]], whole: int, words: str) -> list[str]:
    """A sentence about the shares of the largest other ranks, if there is something to say."""
    large = [row for row in members if row["dur_ns"] >= _LEAST * whole][:_MOST_NAMED]
    shares = [f"{name_of(row)} {_share(row['dur_ns'], whole)}" for row in large]
    return [f"{words}: {text.enumeration(shares)}."] if shares else []


def _share(part_ns: int, whole: int) -> str:
    return text.percent(part_ns / whole)


def _time(total_ns: int, steps: int) -> str:
    return f"{text.time(total_ns / steps)} per step" if steps > 1 else text.time(total_ns)


VIEW = View(
    path_across_ranks_summary,
    table=PathAcrossRanksSummary,
    title="Critical path across ranks in a sentence",
    entry="Critical path",
    scope="span",
    place=Lead("path_across_ranks"),
    within="recording",
    needs=has_several_workers,
    hint="A path across ranks needs at least two ranks. Record several ranks of a run at the same time.",
)
