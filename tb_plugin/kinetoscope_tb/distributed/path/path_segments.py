"""The segments of the paths across ranks, by worker and time, with descriptions of their ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..run import Ranks
from .paths import BEFORE, Paths

Ints = NDArray[np.int64]
MOST_LISTED = 3  # unreadable traces

SEGMENTS = {
    "member": pl.Int64,
    "step": pl.String,
    "part": pl.Int64,  # an index of PARTS; the first one if it has several
    "start_ns": pl.Int64,  # on its member's clock
    "dur_ns": pl.Int64,
    "call": pl.Int64,  # the member's call that begins when it ends, or that contains it; NONE: the step's end
    "own_step": pl.Int64,  # the member's step that ends when it does; NONE: it ends with a call
    "since": pl.String,  # in words; null before the step
    "until": pl.String,
    "at_ns": pl.Int64,  # when it starts on the clock of the first member
}
"""One row is one segment. Order: along the path, step by step."""


@dataclass(frozen=True, eq=False)
class PathSegments:
    """The paths of all steps of a span; compared by identity.

    Attributes:
        ranks: The traces.
        frame: SEGMENTS.
    """

    ranks: Ranks
    frame: pl.DataFrame

    @classmethod
    def of(cls, ranks: Ranks) -> PathSegments:
        """Return the segments of a span."""
        paths = Paths.of(ranks)
        rows = paths.segments.unique(["step", "number"], keep="first", maintain_order=True)
        member, until = rows["member"].to_numpy(), rows["until"].to_numpy()
        step = rows["step"].to_numpy()
        end_row = np.where(until < 0, paths.steps["row"].to_numpy().astype(np.int64)[step], until)
        own = end_row - np.where(until < 0, _first(ranks.steps, member), _first(ranks.calls, member))
        ends = ends_in_words(rows, ranks)
        at = ranks.on_one_clock(rows.select(pl.col("member").cast(pl.Int32), "start_ns"), "start_ns")
        frame = rows.select(
            "member",
            pl.Series("step", paths.steps["step"].gather(rows["step"])),
            "part",
            "start_ns",
            dur_ns="segment_ns",
            call=pl.Series(np.where(until < 0, until, own)),
            own_step=pl.Series(np.where(until < 0, own, -1)),
            since=ends["since"],
            until=ends["until"],
            at_ns=at,
        )
        return cls(ranks, frame.cast(SEGMENTS))  # type: ignore[arg-type]

    def member(self, worker: str, span: str) -> int | None:
        """The member of a worker's span; None if there is none, or its trace is unreadable."""
        members = [i for i, _ in self.ranks.readable if self.ranks.members[i].worker == worker]
        return next((i for i in members if self.ranks.members[i].span == span), None)

    def shares(self, member: int, from_ns: int, to_ns: int) -> list[dict[str, Any]]:
        """Time of the path on each worker in a range of a member's time, including transfers; longest first."""
        clock = self.ranks.clocks.row(member, named=True)
        start = _on_clock(self.frame["at_ns"].to_numpy(), clock)
        inside = np.minimum(start + self.frame["dur_ns"].to_numpy(), to_ns) - np.maximum(start, from_ns)
        of_member = self.frame.select("member", path_ns=pl.Series(inside)).filter(pl.col("path_ns") > 0)
        sums = of_member.group_by("member").agg(pl.col("path_ns").sum())
        workers = self.ranks.workers.select(pl.col("member").cast(pl.Int64), "worker", "rank")
        rows = sums.join(workers, "member").sort("path_ns", "member", descending=[True, False])
        return rows.select("worker", "rank", "path_ns").to_dicts()

    @property
    def notes(self) -> list[str]:
        """What the paths can't cover because traces are missing."""
        unread = [member for member in self.ranks.members if member.summary is None]
        notes = [f"{member.worker} is left out: {member.problem}" for member in unread[:MOST_LISTED]]
        if more := len(unread) - len(notes):
            notes.append(f"{more} more {'is' if more == 1 else 'are'} left out; see Run health.")
        absent = self.ranks.missing_ranks
        if not absent:
            return notes
        names = ", ".join(map(str, absent[:8])) + (" …" if len(absent) > 8 else "")
        are = "rank has" if len(absent) == 1 else "ranks have"
        return [*notes, f"{len(absent)} {are} no recording ({names}): the path can't be followed to them."]


def ends_in_words(rows: pl.DataFrame, ranks: Ranks) -> pl.DataFrame:
    """Descriptions of the start and end of rows of PATH: `since`, null before the step, and `until`."""
    texts = _call_texts(ranks)
    ends = rows.select("part", "since", "until")
    for side in ("since", "until"):
        side_texts = texts.rename({"call": side, "text": f"{side}_text"})
        ends = ends.join(side_texts, side, "left", maintain_order="left")
    is_before = pl.col("part") == BEFORE
    return ends.select(
        since=pl.when(~is_before).then(pl.col("since_text").fill_null("the step begins")),
        until=pl.when(is_before)
        .then(pl.lit("the step begins"))
        .otherwise(pl.col("until_text").fill_null("the step ends")),
    )


def _call_texts(ranks: Ranks) -> pl.DataFrame:
    """A description of each call."""
    rows = ranks.calls.select("kind", "group", "nth").join(ranks.group_labels, "group", "left", maintain_order="left")
    number = pl.when(pl.col("nth") >= 0).then(pl.concat_str(pl.lit(" #"), "nth")).otherwise(pl.lit(""))
    text = pl.concat_str("kind", number, pl.lit(", "), pl.col("label").fill_null("unknown group"))
    return rows.select(call=pl.int_range(pl.len()), text=text)


def _first(frame: pl.DataFrame, member: Ints) -> Ints:
    """The first row of each member in a frame that is sorted by member."""
    return np.searchsorted(frame["member"].to_numpy(), member).astype(np.int64)


def _on_clock(at: Ints, clock: dict[str, Any]) -> Ints:
    """Converts instants on the first member's clock to the clock of the member of a row of OFFSETS."""
    away = at - clock["shift_ns"] - clock["middle_ns"]
    there: Ints = clock["middle_ns"] + np.round(away / (1 + clock["drift"])).astype(np.int64)
    return there
