"""What changed between two runs of several ranks, before what changed on one of them: who waits, and for whom."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from ..compare.changes import with_parts_of_communication
from ..names import text
from .late_cause import LATE
from .run import Frames, claims_of_run, frames_of_run, workers_behind

if TYPE_CHECKING:
    from ..compare.changes import ChangeList
    from ..distributed.run import Ranks
    from .model import Answer, Claim
    from .recording import Views

_LEAST_FRAC = 0.02  # of the step: less isn't worth a word
_PARTS = {"waiting for other ranks": "exposed_wait_ns", "moving data": "exposed_transfer_ns"}


@dataclass(frozen=True)
class RunSide:
    """One run of a comparison.

    Args:
        worker: The worker whose recording is compared.
        frames: The views OF_RUN.
        claims: What its ranks say of each other.
    """

    worker: str
    frames: Frames
    claims: Sequence[Claim]

    @property
    def late(self) -> list[Claim]:
        """The ranks that the others wait for, the first one most."""
        return [claim for claim in self.claims if claim.id in LATE]

    @property
    def steps(self) -> pl.DataFrame:
        """The complete steps of all ranks whose waits are known, as in the view `rank_steps`."""
        return self.frames["rank_steps"].filter("is_complete", pl.col("exposed_wait_ns").is_not_null())


def run_side(worker: str, ranks: Ranks, views: Views, answer_of: Callable[[str], Answer | None]) -> RunSide:
    """A run's side of a comparison, from the summaries of its ranks; arguments as in `run_answer`."""
    frames = frames_of_run(ranks, views)
    answers = [answer_of(name) for name in workers_behind(frames, worker)]
    readable = [answer for answer in answers if answer is not None]
    return RunSide(worker, frames, claims_of_run(frames, views, readable))


def with_runs(changes: ChangeList, base: RunSide, new: RunSide) -> ChangeList:
    """The changes of a rank, with those of the run: what its communication consists of, and why ranks wait."""
    if changes.basis.is_of_shares or "rank_steps" not in base.frames or "rank_steps" not in new.frames:
        return changes
    own = [
        side.steps.filter(worker=side.worker).select(pl.col(column).alias(name) for name, column in _PARTS.items())
        for side in (base, new)
    ]
    if any(steps.is_empty() for steps in own):
        return changes
    both = with_parts_of_communication(changes, *own)
    return replace(both, causes=[*changes.causes, *_sentences(base, new)])


def _sentences(base: RunSide, new: RunSide) -> list[str]:
    """How waiting and moving data changed on the ranks that aren't late, and for whom they wait; empty if they didn't.

    Ranks have the same names in both runs, but for those that only one has.
    """
    late = {claim.culprit.worker for claim in (*base.late, *new.late)}
    before, after = (_means(side.steps.filter(~pl.col("worker").is_in(list(late)))) for side in (base, new))
    if before is None or after is None:
        return []
    least_ns = _LEAST_FRAC * before["total_ns"]
    wait, transfer = ((before[name], after[name]) for name in _PARTS.values())
    if abs(wait[1] - wait[0]) < least_ns and abs(transfer[1] - transfer[0]) < least_ns:
        return []
    if abs(wait[1] - wait[0]) < abs(transfer[1] - transfer[0]):
        waits = f"they wait {_change(*wait, least_ns)} for each other"
        return [f"Moving data between ranks takes {_change(*transfer, least_ns)} of each step; {waits}."]
    is_longer = wait[1] > wait[0]
    side = new if is_longer else base
    whom = f"rank {side.late[0].culprit.rank}" if side.late else "each other"
    moves = f"moving data takes {_change(*transfer, least_ns)}"
    waits = f"Ranks wait {'longer' if is_longer else 'less'} for {whom}: {_change(*wait)} of each step; {moves}."
    if not side.late:
        return [waits]
    return [waits, side.late[0].title if is_longer else f"In the base: {side.late[0].title}"]


def _change(before: float, after: float, least_ns: float = 0) -> str:
    """Such as `33.6 µs → 4 ms`; a change that isn't worth a word is none."""
    is_same = abs(after - before) < least_ns
    return f"{text.time(after)} in both" if is_same else f"{text.time(before)} → {text.time(after)}"


def _means(steps: pl.DataFrame) -> dict[str, float] | None:
    """The means over some steps, in ns; None without any."""
    return None if steps.is_empty() else steps.select(pl.col("total_ns", *_PARTS.values()).mean()).row(0, named=True)
