"""What the host of a rank saves while other ranks take as long: no step gets shorter than the slowest of them takes.

It bounds claims and what a part of them saves alike, so that no slider saves more than its claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from ..names import text
from .late_cause import MOSTLY, OF_HOST, times_without_waiting
from .model import Rows
from .recording import rows_of

FrameOf = Callable[[str, Mapping[str, object]], pl.DataFrame]

WHAT_IF = "what_if"
RANK_STEPS = "rank_steps"
_SAVED = ("saved_ns", "saved_low_ns", "saved_high_ns")


@dataclass(frozen=True)
class PaceOfOthers:
    """How long the other ranks take for the complete steps of one that waits for them.

    Args:
        others: How many there are.
        wait_ns: How long it waits in the average step.
        slowest_ns: How long the slowest other rank takes in it without waiting.
        most_ns: What the rank alone saves of it at most.
        slowest: The slowest other rank, if it is the same in all steps.
    """

    others: int
    wait_ns: float
    slowest_ns: float
    most_ns: int
    slowest: str | None = None

    @classmethod
    def of(cls, rank_steps: Rows, worker: str) -> PaceOfOthers | None:
        """The pace of all ranks but one, by the view `rank_steps`; None if no step of it can be compared."""
        _, others = times_without_waiting(rank_steps, worker)
        waits = [
            (row, max(others[row["step"]]))
            for row in complete_steps(rank_steps, worker)
            if row["exposed_wait_ns"] is not None and row["step"] in others
        ]
        if not waits:
            return None
        mean_wait_ns = sum(row["exposed_wait_ns"] for row, _ in waits) / len(waits)
        slowest_ns = sum(slowest for _, slowest in waits) / len(waits)
        most_ns = round(max(0, sum(row["total_ns"] for row, _ in waits) / len(waits) - slowest_ns))
        count = len({row["worker"] for row in rank_steps} - {worker})
        return cls(count, mean_wait_ns, slowest_ns, most_ns, _slowest_worker(rank_steps, worker))

    def bounds(self, rule: str, saving_ns: int | None) -> bool:
        """Whether a claim saves less than by the rank's own recording, because the other ranks take as long.

        That counts for the host of a rank that waits for half as long as it would save: other ranks that take as long
        as this one do what it does, and save as much.
        """
        if rule not in OF_HOST or not saving_ns:
            return False
        return self.wait_ns >= MOSTLY * saving_ns and self.most_ns < saving_ns

    def words(self, saving_ns: int, noun: str) -> str:
        """The sentence that says why a claim saves no more."""
        part = f"at most {text.time(self.most_ns)}" if self.most_ns else "none"
        slowest = f", {self.slowest}," if self.slowest else ""
        whom = "the other rank, which" if self.others == 1 else f"others, the slowest of which{slowest}"
        return (
            f"This rank waits {text.time(self.wait_ns)} per {noun} for {whom} takes {text.time(self.slowest_ns)} "
            f"without waiting: unless that one gets faster, too, {part} of the {text.time(saving_ns)} is saved."
        )


def _slowest_worker(rank_steps: Rows, worker: str) -> str | None:
    """The worker other than one that takes longest for all of its complete steps; None if that is no single one."""
    _, others = times_without_waiting(rank_steps, worker)
    most_ns = {
        row["step"]: max(others[row["step"]]) for row in complete_steps(rank_steps, worker) if row["step"] in others
    }
    workers = {
        row["worker"]
        for row in rank_steps
        if row["worker"] != worker and row["is_complete"] and row["step"] in most_ns
        if row["without_waiting_ns"] == most_ns[row["step"]]
    }
    return str(*workers) if len(workers) == 1 else None


def complete_steps(rank_steps: Rows, worker: str) -> list[dict[str, Any]]:
    """The rows of a rank's complete steps."""
    return [row for row in rank_steps if row["worker"] == worker and row["is_complete"]]


def what_if_in_run(
    frame: pl.DataFrame, less: str | None, worker: str, rank_steps: pl.DataFrame, frame_of: FrameOf
) -> pl.DataFrame:
    """The view `what_if` of a rank: claims that other ranks bound save no more together than these leave.

    Args:
        frame: The view by the rank's own recording.
        less: Its parameter.
        worker: The rank's worker.
        rank_steps: The view of this name.
        frame_of: Gives a view of the rank's recording by its id and arguments.
    """
    pace = PaceOfOthers.of(rows_of(rank_steps), worker)
    if pace is None or frame.is_empty():
        return frame
    savings = dict(frame_of("advice", {}).select("rule", "saving_ns").rows())
    rows = [_row_at_pace(row, less, savings, pace, frame_of) for row in rows_of(frame)]
    return pl.DataFrame(rows, schema=frame.schema)


def _row_at_pace(
    row: dict[str, Any], less: str | None, savings: Mapping[str, int | None], pace: PaceOfOthers, frame_of: FrameOf
) -> dict[str, Any]:
    parts = [row["rule"]] if less is None else less.split(",")
    rest = [part for part in parts if not pace.bounds(rule := part.partition(":")[0], savings.get(rule))]
    if len(rest) == len(parts):
        return row
    of_rest = frame_of(WHAT_IF, {"less": ",".join(rest)}).row(0, named=True)
    most = {name: (of_rest[name] or 0) + pace.most_ns for name in _SAVED}
    ends = {name: None if row[name] is None else min(row[name], most[name]) for name in _SAVED}
    now_ns, saved_ns = row["now_ns"], ends["saved_ns"]
    return {**row, **ends, "step_ns": now_ns - saved_ns, "saved_frac": saved_ns / now_ns if now_ns else None}
