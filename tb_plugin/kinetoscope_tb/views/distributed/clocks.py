"""Clocks: offsets between the ranks' clocks, measured by the recorder or estimated from the ends of collectives.

A collective ends on all of its ranks at about the same time. So the shifts that align these ends best are the offsets
between the clocks, and the remaining differences are their error.
"""

from __future__ import annotations

import polars as pl

from ...distributed.clocks.offsets import COLLECTIVES, MEASURED
from ...distributed.contents import has_several_workers
from ...distributed.run import Ranks
from ...table import COUNT, DURATION, ID, NUMBER, TEXT, Column, Table
from ...view import Part, View


class Clocks(Table):
    """How far the ranks' clocks differ, and with which error."""

    key, weight = ("worker",), "residual_ns"

    worker = Column(TEXT, "The worker's name.")
    rank = Column(ID, "Its global rank.")
    host = Column(TEXT, "Host name; missing if unknown.")
    source = Column(
        TEXT,
        "Source of the offset. `measurement`: by the recorder, while the job ran; `collectives`: from their ends; "
        "`reference`: the offsets are relative to it; `wall clock`: nothing connects it to the others, or it shares "
        "the reference's machine, so its own time of day is used.",
    )
    offset_ns = Column(
        DURATION,
        "Offset of its clock from the reference's in the middle of the trace; positive: ahead, negative: behind.",
    )
    drift = Column(NUMBER, "How many ns it gains on the reference's clock per second, if that is beyond noise.")
    error_ns = Column(
        DURATION, "Error: as measured, or three standard errors of the estimate from collectives.", adds_up=False
    )
    residual_ns = Column(
        DURATION, "Median distance of the ends of its collectives from the common ends.", adds_up=False
    )
    differs_ns = Column(
        DURATION,
        "Estimate from collectives − measurement of a measured clock; negative: less far ahead. If it is beyond both "
        "errors, one of them is wrong: the clock was set, or drifted, after the measurement.",
    )
    collectives = Column(COUNT, "Number of collectives that the estimate uses.")


def clocks(ranks: Ranks) -> pl.DataFrame:
    """Ranks in order."""
    rows = ranks.clocks.join(ranks.workers, "member", maintain_order="left")
    origin = ranks.workers["origin_ns"].to_list()
    first = origin[0] if origin else 0
    rows = rows.with_columns(
        offset_ns=pl.col("origin_ns") - first - pl.col("shift_ns"),
        drift=-pl.col("drift") * 1e9,
        error_ns=pl.col("error_ns").round(),
        residual_ns=pl.col("residual_ns").round(),
        differs_ns=-pl.col("differs_ns"),
    ).with_columns(error_ns=pl.when(pl.col("source").is_in([MEASURED, COLLECTIVES])).then("error_ns"))
    rows = rows.with_columns(pl.when(pl.col("drift") != 0).then("drift")).sort("rank", "worker")
    return Clocks.of(rows.select(Clocks.schema().names()).cast(Clocks.schema()))


VIEW = View(
    clocks,
    table=Clocks,
    title="Clocks",
    entry="Ranks",
    place=Part("topology"),
    scope="span",
    within="recording",
    needs=has_several_workers,
    hint="Comparing clocks needs at least two ranks. Record several ranks of a run.",
)
