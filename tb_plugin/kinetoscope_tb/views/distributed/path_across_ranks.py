"""Critical path across ranks: on which rank, in which work and in which collective a step's time lies.

The path leads back from the end of the step on the rank that ended it last. At a collective to which another rank came
later, by more than the noise of its ends, it goes on over there: this rank did nothing but wait. So its stretches add
up to that rank's step exactly, and whatever lies on another rank and not on the path delays nobody.

What would be saved is reckoned anew, not subtracted: each rank does the same work in the same order, a collective moves
its data when the last of its ranks has come then, and a step ends with its last rank. Whatever was over when the step
began stays as it was.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import fraction
from ...critical_path import CLASSES
from ...distributed import Ranks
from ...distributed.path.paths import PARTS, TRANSFER, UNTOLD, Paths
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, ID, TEXT, Column, Table
from ...view import View

MOST_RECKONED = 20
_GROUPED = {
    "part": ["part"],
    "rank": ["member"],
    "rank and part": ["member", "part"],
    "collective": ["label"],
}


class PathAcrossRanks(Table):
    """One row is one part, rank or collective of the path, in all complete steps or in one; they add up to them."""

    key, weight = ("step", "worker", "part", "collective"), "path_ns"
    picture = Bars(("path_ns",))

    step = Column(TEXT, "Number of the step; `all`: all complete steps.")
    worker = Column(TEXT, "Whose work; missing where it is all ranks', as moving data is.")
    rank = Column(ID, "Its rank over the whole job.")
    part = Column(
        TEXT,
        "As in the critical path of one worker; transfer: a collective moves data, all have come; collective: one of "
        "which it isn't known how long it waited, because ranks or rows are missing or its kind doesn't tell; before "
        "the step: this rank began the step later than the one that ended last. Missing: all of them.",
    )
    collective = Column(TEXT, "Operation and process group, by collective; missing: the ranks' own work.")
    path_ns = Column(DURATION, "How much of the path is this.")
    mean_ns = Column(DURATION, "The same per step.")
    path_frac = Column(FRACTION, "The same / the steps.")
    stretches = Column(COUNT, "In how many stretches.")
    saved_ns = Column(
        DURATION,
        "How much shorter a step would be if all of it, on the path or not, took `percent` less time: own work of the "
        "rank, or moving the data of the collective. What others then wait for is accounted for. Missing where nothing "
        f"can be made faster, and beyond the {MOST_RECKONED} rows with most of the path.",
    )
    saved_frac = Column(FRACTION, "The same / the step.")


def path_across_ranks(
    ranks: Ranks,
    *,
    by: Literal["part", "rank", "rank and part", "collective"] = "part",
    per: Literal["recording", "step"] = "recording",
    percent: Literal["50", "10", "20", "30", "75", "90", "100"] = "50",
) -> pl.DataFrame:
    """Steps in order; of each first what the path has most of."""
    paths = Paths.of(ranks)
    names = paths.steps["step"].to_list()
    groups = [(name, [step]) for step, name in enumerate(names)] if per == "step" else [("all", paths.counted)]
    rows = _named(paths, ranks, _GROUPED[by])
    found = [_told(paths, ranks, rows, name, steps, int(percent)) for name, steps in groups]
    told = pl.concat([pl.DataFrame(schema=PathAcrossRanks.schema()), *found])
    return PathAcrossRanks.of(told)


def _named(paths: Paths, ranks: Ranks, by: list[str]) -> pl.DataFrame:
    """The stretches with `member`, `part` and `label`, null where not told apart; moving data is no rank's own."""
    stretches = paths.stretches
    is_data = pl.col("part").is_in([TRANSFER, UNTOLD])
    labels = _labels(ranks).with_row_index("since").with_columns(pl.col("since").cast(pl.Int64))
    of_all = pl.col("part") == TRANSFER
    return stretches.join(labels, "since", "left", maintain_order="left").with_columns(
        label=pl.when(is_data & pl.lit("label" in by)).then("label"),
        member=pl.when(~of_all & pl.lit("member" in by)).then("member"),
        part=pl.when(pl.lit("part" in by) | (of_all & pl.lit("label" not in by))).then("part"),
    )


def _labels(ranks: Ranks) -> pl.DataFrame:
    """The operation and the group of each call."""
    labels = ranks.calls.select("kind", "group").join(ranks.group_labels, "group", "left", maintain_order="left")
    return labels.select(label=pl.concat_str("kind", pl.lit(", "), pl.col("label").fill_null("unknown group")))


def _told(paths: Paths, ranks: Ranks, rows: pl.DataFrame, name: str, steps: list[int], percent: int) -> pl.DataFrame:
    """The rows of some steps."""
    whole, count = int(paths.steps["total_ns"].gather(steps).sum()), max(1, len(steps))
    keys = ["member", "part", "label"]
    spent = (
        rows.filter(pl.col("step").is_in(steps))
        .group_by(keys)
        .agg(path_ns=pl.col("dur_ns").sum(), stretches=pl.struct("step", "number").n_unique())
        .sort("path_ns", *keys, descending=[True, False, False, False])
    )
    reckoned = spent.select(keys).head(MOST_RECKONED).rows()
    saved = [_saved(paths, ranks, (m, part, label), percent, steps) for m, part, label in reckoned]
    saved += [None] * (spent.height - len(saved))
    workers = ranks.workers.select(pl.col("member").cast(pl.Int64), "worker", "rank")
    parts = pl.Series([PARTS[part] if part is not None else None for part in spent["part"]], dtype=pl.String)
    told = spent.with_columns(pl.col("member").cast(pl.Int64), part=parts, saved=pl.Series(saved, dtype=pl.Int64))
    return (
        told.join(workers, "member", "left", maintain_order="left")
        .with_columns(
            step=pl.lit(name),
            collective=pl.col("label").cast(pl.String),
            mean_ns=(pl.col("path_ns") / count).round(),
            path_frac=fraction(pl.col("path_ns"), pl.lit(whole)),
            saved_ns=(pl.col("saved") / count).round(),
            saved_frac=fraction(pl.col("saved"), pl.lit(whole)),
        )
        .select(PathAcrossRanks.schema().names())
        .cast(PathAcrossRanks.schema())
    )


def _saved(
    paths: Paths, ranks: Ranks, key: tuple[int | None, int | None, str | None], percent: int, steps: list[int]
) -> int | None:
    """How much shorter the steps would be in all, if what a row is of were faster; None: nothing can be."""
    member, part, label = key
    calls = np.ones(paths.merged_graph.dur.size, bool)
    if label is not None:
        calls = (_labels(ranks)["label"] == label).to_numpy()
    elif part == TRANSFER:
        calls = paths.merged_graph.is_split
    elif part == UNTOLD:
        calls = ~paths.merged_graph.is_split
    elif part is not None and part >= len(CLASSES):
        return None
    else:
        return int(paths.saved_in_legs(part, member, percent)[steps].sum())
    if member is not None:
        calls = calls & (ranks.calls["member"] == member).to_numpy()
    return int(paths.saved_in_calls(calls, percent)[steps].sum())


VIEW = View(
    path_across_ranks,
    table=PathAcrossRanks,
    title="Critical path across ranks",
    group="Run",
    scope="span",
    within="recording",
    needs="several",
    hint="It takes two ranks for a path across them. Record several ranks of a run at the same time.",
    shows_path=True,
)
