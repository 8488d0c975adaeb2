"""Critical path across ranks: which ranks, which work and which collectives make up a step's time.

The path leads back from the end of the step on the rank that ended it last. At a collective that another rank entered
later, by more than the noise of its ends, the path continues on that rank: this rank only waited. So its segments add
up to the last rank's step exactly, and work on other ranks that isn't on the path delays no rank.

Savings are simulated, not subtracted: each rank does the same work in the same order, a collective moves its data when
its last rank enters it, and a step ends with its last rank. Everything before a step's start keeps its time.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from ...arrays.gather import fraction
from ...critical_path.classes import CLASSES, WAIT_CLASSES
from ...distributed.contents import has_several_workers
from ...distributed.path.paths import PARTS, TRANSFER, UNSPLIT, Paths
from ...distributed.run import Ranks
from ...pictures import Bars
from ...table import COUNT, DURATION, FRACTION, ID, TEXT, Column, Table
from ...view import Tab, View

MOST_ESTIMATED = 20
_GROUPED = {
    "part": ["part"],
    "rank": ["member"],
    "rank and part": ["member", "part"],
    "collective": ["label"],
}


class PathAcrossRanks(Table):
    """What the critical path across ranks consists of, by part, rank or collective; the rows add up to the steps."""

    key, weight = ("step", "worker", "part", "collective"), "path_ns"
    picture = Bars(("path_ns",))

    step = Column(TEXT, "Number of the step; `all`: all complete steps.")
    worker = Column(TEXT, "The worker that does the work; missing if all ranks do, as in transfers.")
    rank = Column(ID, "Its global rank.")
    part = Column(
        TEXT,
        "On a device: computation (kernels), device communication, copy and fill; launch latency (from the call's end "
        "to the event's start); between GPU events (the next one was ready, and began at once); unexplained wait (an "
        "event began over 20 µs after all known waits). On the host: data loading; host communication; operator; "
        "runtime call; synchronization (a call returns after the device has finished); between operators (outside "
        "of these: in Python, in annotations, or nothing recorded). Of all ranks: transfer: a collective moves data, "
        "after all ranks have entered; collective: one with an unknown wait, because ranks or rows are missing; before "
        "the step: this rank began the step later than the one that ended last. Missing: all of them.",
        shown_as="time part",
    )
    collective = Column(TEXT, "Operation and process group, by collective; missing: the ranks' own work.")
    path_ns = Column(DURATION, "Time on the path.")
    mean_ns = Column(DURATION, "The same per step.")
    path_frac = Column(FRACTION, "The same / the steps.")
    segments = Column(COUNT, "Number of path segments.")
    saved_ns = Column(
        DURATION,
        "How much shorter a step would be if all of it, on the path or not, took `percent` less time: own work of the "
        "rank, or the collective's transfer, including the effect on other ranks' waits. Missing for waits, if nothing "
        f"can be made faster, and beyond the {MOST_ESTIMATED} rows with the most time on the path.",
        title="Saved per step",
    )
    saved_frac = Column(FRACTION, "The same / the step.")


def path_across_ranks(
    ranks: Ranks,
    *,
    by: Literal["part", "rank", "rank and part", "collective"] = "part",
    per: Literal["recording", "step"] = "recording",
    percent: Literal["50", "10", "20", "30", "75", "90", "100"] = "50",
) -> pl.DataFrame:
    """Steps in order; within each, the most time on the path first."""
    paths = Paths.of(ranks)
    names = paths.steps["step"].to_list()
    groups = [(name, [step]) for step, name in enumerate(names)] if per == "step" else [("all", paths.averaged_steps)]
    segments = _segments_with_keys(paths, ranks, _GROUPED[by])
    frames = [_rows_of_steps(paths, ranks, segments, name, steps, int(percent)) for name, steps in groups]
    frame = pl.concat([pl.DataFrame(schema=PathAcrossRanks.schema()), *frames])
    return PathAcrossRanks.of(frame)


def _segments_with_keys(paths: Paths, ranks: Ranks, by: list[str]) -> pl.DataFrame:
    """The segments with `member`, `part` and `label`, null if not grouped by them; transfers belong to no rank."""
    segments = paths.segments
    is_data = pl.col("part").is_in([TRANSFER, UNSPLIT])
    labels = _labels(ranks).with_row_index("since").with_columns(pl.col("since").cast(pl.Int64))
    of_all = pl.col("part") == TRANSFER
    return segments.join(labels, "since", "left", maintain_order="left").with_columns(
        label=pl.when(is_data & pl.lit("label" in by)).then("label"),
        member=pl.when(~of_all & pl.lit("member" in by)).then("member"),
        part=pl.when(pl.lit("part" in by) | (of_all & pl.lit("label" not in by))).then("part"),
    )


def _labels(ranks: Ranks) -> pl.DataFrame:
    """The operation and the group of each call."""
    labels = ranks.calls.select("kind", "group").join(ranks.group_labels, "group", "left", maintain_order="left")
    return labels.select(label=pl.concat_str("kind", pl.lit(", "), pl.col("label").fill_null("unknown group")))


def _rows_of_steps(
    paths: Paths, ranks: Ranks, segments: pl.DataFrame, name: str, steps: list[int], percent: int
) -> pl.DataFrame:
    """The rows of some steps."""
    whole, count = int(paths.steps["total_ns"].gather(steps).sum()), max(1, len(steps))
    keys = ["member", "part", "label"]
    times = (
        segments.filter(pl.col("step").is_in(steps))
        .group_by(keys)
        .agg(path_ns=pl.col("dur_ns").sum(), segments=pl.struct("step", "number").n_unique())
        .sort("path_ns", *keys, descending=[True, False, False, False])
    )
    largest = times.select(keys).head(MOST_ESTIMATED).rows()
    savings = [_saving(paths, ranks, (m, part, label), percent, steps) for m, part, label in largest]
    savings += [None] * (times.height - len(savings))
    workers = ranks.workers.select(pl.col("member").cast(pl.Int64), "worker", "rank")
    parts = pl.Series([PARTS[part] if part is not None else None for part in times["part"]], dtype=pl.String)
    times = times.with_columns(pl.col("member").cast(pl.Int64), part=parts, saved=pl.Series(savings, dtype=pl.Int64))
    return (
        times.join(workers, "member", "left", maintain_order="left")
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


def _saving(
    paths: Paths, ranks: Ranks, key: tuple[int | None, int | None, str | None], percent: int, steps: list[int]
) -> int | None:
    """How much shorter the steps would be in total if a row's work were faster; None: nothing can be faster."""
    member, part, label = key
    calls = np.ones(paths.merged_graph.dur.size, bool)
    if label is not None:
        calls = (_labels(ranks)["label"] == label).to_numpy()
    elif part == TRANSFER:
        calls = paths.merged_graph.is_split
    elif part == UNSPLIT:
        calls = ~paths.merged_graph.is_split
    elif part is not None and (part >= len(CLASSES) or part in WAIT_CLASSES):
        return None
    else:
        return int(paths.saved_in_segments(part, member, percent)[steps].sum())
    if member is not None:
        calls = calls & (ranks.calls["member"] == member).to_numpy()
    return int(paths.saved_in_calls(calls, percent)[steps].sum())


VIEW = View(
    path_across_ranks,
    table=PathAcrossRanks,
    title="Critical path across ranks",
    entry="Critical path",
    place=Tab("All ranks"),
    scope="span",
    within="recording",
    needs=has_several_workers,
    hint="A path across ranks needs at least two ranks. Record several ranks of a run at the same time.",
    shows_path=True,
)
