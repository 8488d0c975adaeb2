"""The answer about a run: first what its ranks say of each other, then what one of its recordings says."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..advice.communication import RECORD_ALL
from ..advice.model import Certainty, Culprit
from ..names import text
from .model import Answer, Claim, RowKey, Rows
from .recording import MOST, Views, not_said_of, question_of, rows_of

if TYPE_CHECKING:
    import polars as pl

    from ..distributed.run import Ranks

OF_RUN = ("run_advice", "stragglers")
"""The views of a run behind its answer."""

MOST_RANKS = 8
_MOST_LATE = 3  # whose recordings are read for their causes
_LATE = ("straggler", "slow_at_times")
_SAYS_NOTHING = ("no_straggler", "no_last_rank", "unknown")
_OF_HOST = (
    *("host_bound", "launch_bound", "synchronizing", "allocation", "optimizer", "host_optimizer"),
    *("data_loading", "main_thread_waits", "small_operators", "operator_loop", "garbage_collection", "repeated_gap"),
    "longer_host_steps",
)
_NAMES_LAST = (*_LATE, "last_rank")
_OF_COMMUNICATION = ("communication", "gloo")
_MOSTLY = 0.5  # of what communication takes
_MORE = 1.02  # times the calls of another rank
_IN_STEPS = re.compile(r" in (?:each step|step \S+, one of \d+|\d+ of \d+ steps)(?=:)")
"""Where the title of a late rank says in which steps it is late."""
_CERTAINTY: dict[str, Certainty] = {
    "high": ("high", "high"),
    "medium": ("high", "medium"),
    "low": ("low", "low"),
    "cannot_tell": ("cannot_tell", "cannot_tell"),
}
"""What a word of the view `run_advice` says of the measurement and of the cause."""


def run_answer(
    recording: Answer, ranks: Ranks, views: Views, workers: int, answer_of: Callable[[str], Answer | None]
) -> Answer:
    """`with_ranks` of the summaries of a run; `answer_of` answers about a worker's recording, None if it can't."""
    frames = [None if views[view].is_missing(ranks) else views[view].frame(ranks, {}) for view in OF_RUN]
    late = [recording if worker == recording.worker else answer_of(worker) for worker in late_workers(frames)]
    return with_ranks(recording, frames, views, workers, [answer for answer in late if answer is not None])


def late_workers(frames: Sequence[pl.DataFrame | None]) -> list[str]:
    """The workers that the others wait for most, by the views OF_RUN, the first one most; at most three."""
    rows = () if frames[0] is None else rows_of(frames[0])
    return [row["filter"] for row in rows if row["rule"] in _LATE][:_MOST_LATE]


def with_ranks(
    recording: Answer,
    frames: Sequence[pl.DataFrame | None],
    views: Views,
    workers: int,
    late: Sequence[Answer] = (),
) -> Answer:
    """The answer about a run: a slow rank or link first; advice to communicate less comes behind the rank that is late.

    Args:
        recording: The answer about one of its recordings.
        frames: The views OF_RUN; None if there is no data.
        views: All views.
        workers: How many the run has.
        late: The answers about the recordings of `late_workers`, which name their code.
    """
    advice, rank_rows = (() if frame is None else rows_of(frame) for frame in frames)
    of_run = [_claim(row, rank_rows, views) for row in advice]
    for own_answer in late or [recording]:
        of_run = [_with_own_cause(claim, own_answer, _late_ns(claim, rank_rows)) for claim in of_run]
        of_run = [_with_own_work(claim, own_answer, recording, _late_ns(claim, rank_rows)) for claim in of_run]
    late_claims = [claim for claim in of_run if claim.id in _LATE]
    own = _behind_slow_ranks(recording, late_claims, rank_rows)
    own = (_of_recorded_ranks(claim, of_run, workers, recording.worker) for claim in own)
    causes = [claim for claim in of_run if claim.id not in _SAYS_NOTHING]
    rest = [claim for claim in of_run if claim.id in _SAYS_NOTHING]
    left_out = len(rank_rows) - MOST_RANKS
    others = {"other_ranks": f"… and {text.times(left_out, 'rank')} that took less"} if left_out > 0 else {}
    return replace(
        recording,
        claims=(*causes, *own, *rest),
        not_said=(*not_said_of(of_run), *recording.not_said),
        sentences={**recording.sentences, **others},
        rows={**recording.rows, **({"stragglers": rank_rows[:MOST_RANKS]} if rank_rows else {})},
        ranks=workers,
    )


def _claim(row: dict[str, Any], stragglers: Rows, views: Views) -> Claim:
    worker = row["filter"] if row["rule"] in _LATE else None
    rank = next((other["rank"] for other in stragglers if other["worker"] == worker), None)
    measurement, cause = _CERTAINTY[row["confidence"]]
    return Claim(
        id=row["rule"],
        about="run",
        title=row["title"],
        evidence=row["evidence"],
        action=row["action"],
        saving_ns=row["saving_ns"],
        saving_frac=row["saving_frac"],
        confidence=row["confidence"],
        measurement=measurement,
        cause=cause,
        culprit=Culprit(rank=rank, worker=worker),
        view=row["view"],
        filter=row["filter"] or "",
        rows=(RowKey("stragglers", {"worker": worker}),) if rank is not None else (),
        question=question_of(views[row["view"]]),
    )


def _late_ns(claim: Claim, rank_rows: Rows) -> float:
    """By how much a rank's cause makes it late in the average step; a rank saves less where others are late, too."""
    row = next((row for row in rank_rows if row["worker"] == claim.culprit.worker), {})
    often = (row.get("slow_steps") or 0) / (row.get("steps") or 1)
    return max(claim.saving_ns or 0, (row.get("part_in_slow_steps_ns") or 0) * often)


def _with_own_cause(claim: Claim, recording: Answer, late_ns: float) -> Claim:
    """A late rank with the code that its own recording names for as much of the host's time."""
    if claim.id not in _LATE or claim.culprit.worker != recording.worker:
        return claim
    least_ns = _MOSTLY * late_ns
    causes = (own for own in recording.claims if own.id in _OF_HOST and (own.saving_ns or 0) >= least_ns)
    own = next(causes, None)
    if own is None:
        return claim
    code = replace(own.culprit, rank=claim.culprit.rank, worker=claim.culprit.worker)
    where = f", most of it in `{code.function}`" if code.function else ""
    title = _IN_STEPS.sub(lambda match: f"{match[0]}{where}", claim.title, count=1)
    evidence = f"{claim.evidence} Its own recording says: {own.title}"
    return replace(claim, title=title, evidence=evidence, action=own.action, culprit=code)


def _with_own_work(claim: Claim, late: Answer, other: Answer, late_ns: float) -> Claim:
    """A late rank with the operator that it calls more often than another rank does, for as much of its time."""
    if claim.id not in _LATE or claim.culprit.worker != late.worker or claim.culprit.function or not late.steps:
        return claim
    operators, of_other = (
        {row["name"]: row for row in answer.rows.get("top", ()) if row["kind"] == "operator"}
        for answer in (late, other)
    )
    # What isn't among the other's first ones takes no longer than these.
    unlisted_ns = min((row["mean_ns"] for row in of_other.values()), default=0) if len(of_other) == MOST else 0
    more_ns = {
        name: row["mean_ns"] - of_other.get(name, {"mean_ns": unlisted_ns})["mean_ns"]
        for name, row in operators.items()
        if not row["is_communication"]
        and (name not in of_other or row["calls"] / late.steps > _MORE * of_other[name]["calls"] / max(1, other.steps))
    }
    name = max(more_ns, key=more_ns.__getitem__, default="")
    if not name or more_ns[name] < _MOSTLY * late_ns:
        return claim
    title = _IN_STEPS.sub(lambda match: f"{match[0]}, most of it in `{name}`", claim.title, count=1)
    row, often = operators[name], operators[name]["calls"] / late.steps
    takes = "takes" if often == 1 else "take"
    own = f"{text.times(often, 'call')} of `{name}` {takes} {text.time(row['mean_ns'])}"
    if name in of_other:
        often, ns = of_other[name]["calls"] / max(1, other.steps), of_other[name]["mean_ns"]
        rest = f"on {other.worker} {text.times(often, 'call')} {text.time(ns)}"
    else:
        rest = (
            f"on {other.worker} less than {text.time(unlisted_ns)}" if unlisted_ns else f"on {other.worker} none runs"
        )
    evidence = f"{claim.evidence} In its average step {own}, {rest}."
    return replace(claim, title=title, evidence=evidence, culprit=replace(claim.culprit, operator=name))


def _behind_slow_ranks(recording: Answer, late: list[Claim], rank_rows: Rows) -> Iterator[Claim]:
    """The claims of a recording; communication that mostly waits for a slow rank says so: that rank comes first."""
    names = [claim.filter for claim in late]
    cost_ns = {row["worker"]: row["mean_cost_ns"] for row in rank_rows}
    wait_ns = (cost_ns.get(names[0]) or late[0].saving_ns or 0) if late and recording.worker not in names else 0
    for claim in recording.claims:
        own_ns = claim.saving_ns or 0
        is_wait = claim.id in _OF_COMMUNICATION and wait_ns and wait_ns >= _MOSTLY * own_ns
        wait = text.time(min(wait_ns, own_ns) if own_ns else wait_ns)
        yield _after(claim, text.listed(names), wait, recording.step_noun) if is_wait else claim


def _of_recorded_ranks(claim: Claim, of_run: list[Claim], workers: int, worker: str) -> Claim:
    """A claim that would have all ranks recorded, where they are: who was last is known, or is in *Ranks*."""
    if all(other.confidence == "cannot_tell" for other in of_run):
        return claim
    last = next((other.filter for other in of_run if other.id in _NAMES_LAST and other.filter), worker)
    action = f"*Ranks* compares the {workers} that are recorded: find the one that comes last."
    if last != worker:
        action = f"Begin with {last}, which comes last most often by *Ranks*."
    return replace(claim, action=claim.action.replace(RECORD_ALL, action))


def _after(claim: Claim, slow: str, wait: str, noun: str) -> Claim:
    title = f"{claim.title} {wait} of it per {noun} is waiting for {slow}."
    return replace(claim, title=title, action=f"Make {slow} as fast as the other ranks first.")
