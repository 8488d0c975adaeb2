"""The answer about a run: first what its ranks say of each other, then what one of its recordings says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from ..advice.communication import EVEN_OUT, LEAST_EXPOSED, RECORD_ALL, SMALL_BYTES, WAITING
from ..advice.facts import LEAST_SHARE
from ..advice.model import Certainty, Culprit, Transfers
from ..names import text
from ..names.collectives import PEER_TO_PEER
from .late_cause import LATE, MOSTLY, OF_HOST, Lateness, less_there, with_cause
from .late_in_turn import Turns, shared_work, turns, with_shared_work
from .model import Answer, Claim, RowKey, Rows
from .pace_of_others import PaceOfOthers, complete_steps
from .recording import Views, not_said_of, question_of, rows_of

if TYPE_CHECKING:
    from ..distributed.run import Ranks
    from ..view import View
    from .step_work import StepWork

Frames = Mapping[str, "pl.DataFrame"]

OF_RUN = ("run_advice", "stragglers", "rank_steps", "communication")
"""The views of a run behind its answer."""

BY_CLAIMS: dict[str, Literal["recording", "run"]] = {"advice": "recording", "run_advice": "run"}
"""The views whose rows are claims of the answer about a run, and what these are about."""

MOST_RANKS = 8
_MOST_LATE = 3  # whose recordings are read for their causes
_STAGE = "pp "
_ON_TIME = ("waits", "in step")
_NONE_SLOW = "no_straggler"
_SAYS_NOTHING = (_NONE_SLOW, "no_last_rank", "unknown")
_MOST_STEPS = 3  # that a sentence lists
_SLOW = 2.0  # times as long as in the typical step
_PARTLY = 0.25  # of the communication
_IN_SLOW_STEPS = (
    "See whether these steps move more data than others; if not, what else used the network then: a checkpoint, other "
    "jobs, storage."
)
_NAMES_LAST = (*LATE, "last_rank")
_EXPOSED = "communication"
_OF_COMMUNICATION = (_EXPOSED, "gloo")
_NEARLY_ALL = 0.9  # of the time of all calls
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
    frames = frames_of_run(ranks, views)
    names = [worker for worker in workers_behind(frames, recording.worker) if worker != recording.worker]
    others = [answer for answer in map(answer_of, names) if answer is not None]
    return with_ranks(recording, frames, views, workers, others)


def frames_of_run(ranks: Ranks, views: Views) -> Frames:
    """The views OF_RUN of summaries; without those that lack data."""
    ranks_of = {view: ranks.of_span if views[view].scope == "span" else ranks for view in OF_RUN}
    return {view: views[view].frame(of, {}) for view, of in ranks_of.items() if not views[view].is_missing(of)}


def late_workers(frames: Frames) -> list[str]:
    """The workers that the others wait for most, by the views OF_RUN, the first one most; at most three."""
    rows = rows_of(frames["run_advice"]) if "run_advice" in frames else ()
    return [row["filter"] for row in rows if row["rule"] in LATE][:_MOST_LATE]


def rows_in_run(view: View, answer: Answer) -> pl.DataFrame:
    """The rows of the view `advice` or `run_advice` with what other recordings of the run add: the answer's claims."""
    claims = [claim for claim in answer.claims if claim.about == BY_CLAIMS[view.id]]
    rows = [{**claim.values(), "rule": claim.id, "filter": claim.filter or None} for claim in claims]
    schema = view.table.schema()
    return view.table.of(pl.DataFrame([{name: row[name] for name in schema} for row in rows], schema=schema))


def workers_behind(frames: Frames, worker: str) -> list[str]:
    """The workers whose recordings say why ranks wait: late ones, and with each one that does the same work on time.

    Without any, those that are late in turn most.

    Args:
        frames: The views OF_RUN.
        worker: The worker whose recording is read in any case.
    """
    late = late_workers(frames) or [*_turns(frames).late_ns][:_MOST_LATE]
    on_time = (_on_time(frames, name, [worker]) or _on_time(frames, name) for name in late)
    return list(dict.fromkeys([*late, *(worker for worker in on_time if worker is not None)]))


def _turns(frames: Frames) -> Turns:
    """The ranks that are late in turn, if they do the same work and none of them is slow; else none."""
    rows = rows_of(frames["run_advice"]) if "run_advice" in frames else ()
    of_turns = turns(_rank_steps(frames)) if any(row["rule"] == _NONE_SLOW for row in rows) else None
    return of_turns or Turns({}, {})


def _on_time(frames: Frames, late: str, among: Sequence[str] | None = None) -> str | None:
    """A worker that isn't late and does the same work as a late one, a typical one of those; None if there is none."""
    rank_steps = _rank_steps(frames)
    workers = [row["worker"] for row in _rank_rows(frames) if row["verdict"] in _ON_TIME]
    workers = [worker for worker in workers if among is None or worker in among]
    stage = _stage(rank_steps, late)
    alike = [worker for worker in workers if _stage(rank_steps, worker) == stage]
    return alike[len(alike) // 2] if alike else None


def _stage(rank_steps: Rows, worker: str) -> list[str]:
    """The stage of a pipeline that a worker is, as its role says; empty if that doesn't."""
    role = next((row["role"] for row in rank_steps if row["worker"] == worker), None) or ""
    return [part for part in role.split(", ") if part.startswith(_STAGE)]


def with_ranks(
    recording: Answer,
    frames: Frames,
    views: Views,
    workers: int,
    others: Sequence[Answer] = (),
) -> Answer:
    """The answer about a run: a slow rank or link first; advice to communicate less comes behind the rank that is late.

    Args:
        recording: The answer about one of its recordings.
        frames: The views OF_RUN, without those that lack data.
        views: All views.
        workers: How many the run has.
        others: The answers about the other recordings of `workers_behind`, which name code.
    """
    rank_rows, rank_steps = _rank_rows(frames), _rank_steps(frames)
    of_turns = _turns(frames)
    cause = shared_work(of_turns, [recording, *others])
    of_run = [
        with_shared_work(claim, cause) if claim.id == _NONE_SLOW else claim
        for claim in claims_of_run(frames, views, [recording, *others])
    ]
    late_claims = [claim for claim in of_run if claim.id in LATE]
    own = _behind_slow_ranks(recording, late_claims, frames)
    if not late_claims:
        own = (_with_turns(claim, frames, of_turns, cause, recording) for claim in own)
    own = (_of_recorded_ranks(claim, of_run, workers, recording.worker) for claim in own)
    own = (_with_waits(claim, frames, recording.worker) for claim in own)
    own = (_with_bubble(claim, of_run, rank_steps, recording) for claim in own)
    causes = [claim for claim in of_run if claim.id not in _SAYS_NOTHING]
    rest = [claim for claim in of_run if claim.id in _SAYS_NOTHING]
    in_order = _in_order_of_savings(list(own), rank_steps, recording)
    left_out = len(rank_rows) - MOST_RANKS
    more_ranks = {"other_ranks": f"… and {text.times(left_out, 'rank')} that took less"} if left_out > 0 else {}
    return replace(
        recording,
        claims=(*causes, *(_without_saving_of_late_ranks(claim, late_claims) for claim in in_order), *rest),
        not_said=(*not_said_of(of_run), *recording.not_said),
        sentences={**recording.sentences, **more_ranks},
        rows={**recording.rows, **({"stragglers": rank_rows[:MOST_RANKS]} if rank_rows else {})},
        ranks=workers,
    )


def claims_of_run(frames: Frames, views: Views, answers: Sequence[Answer]) -> list[Claim]:
    """What ranks say of each other, late ranks with what recordings show of them.

    Args:
        frames, views: As in `with_ranks`.
        answers: The answers about recordings of the run: those of `workers_behind`, as far as they are known.
    """
    rank_rows, rank_steps = _rank_rows(frames), _rank_steps(frames)
    rows = rows_of(frames["run_advice"]) if "run_advice" in frames else ()
    of_worker = {answer.worker: answer for answer in answers}
    claims = []
    for claim in (_claim(row, rank_rows, rank_steps, views) for row in rows):
        late = of_worker.get(claim.culprit.worker or "")
        if late is None:
            claims.append(claim)
            continue
        on_time = of_worker.get(_on_time(frames, late.worker, [*of_worker]) or "")
        row = next((row for row in rank_rows if row["worker"] == late.worker), {})
        claims.append(with_cause(Lateness(claim, late, on_time, row, rank_steps)))
    return claims


def _rank_rows(frames: Frames) -> Rows:
    return rows_of(frames["stragglers"]) if "stragglers" in frames else ()


def _rank_steps(frames: Frames) -> Rows:
    return rows_of(frames["rank_steps"]) if "rank_steps" in frames else ()


def _claim(row: dict[str, Any], stragglers: Rows, rank_steps: Rows, views: Views) -> Claim:
    worker = row["filter"] if row["rule"] in LATE else None
    rank = next((other["rank"] for other in (*stragglers, *rank_steps) if other["worker"] == worker), None)
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
        rows=(RowKey("stragglers", {"worker": worker}),)
        if any(other["worker"] == worker for other in stragglers)
        else (),
        question=question_of(views[row["view"]]),
    )


def _behind_slow_ranks(recording: Answer, late: list[Claim], frames: Frames) -> Iterator[Claim]:
    """The claims of a recording; communication much of which waits for a slow rank says so: that rank comes first."""
    if not late or recording.worker in [claim.filter for claim in late]:
        yield from recording.claims
        return
    cost_ns = {row["worker"]: row["mean_cost_ns"] for row in _rank_rows(frames)}
    for claim in recording.claims:
        transfers = _transfers(claim, frames, recording.worker)
        wait_ns = cost_ns.get(late[0].filter) or late[0].saving_ns or 0
        wait_ns = wait_ns if transfers is None else min(wait_ns, transfers.wait_ns)
        is_of_late = wait_ns and max(wait_ns, late[0].saving_ns or 0) >= _PARTLY * (claim.saving_ns or 0)
        is_wait = claim.id in _OF_COMMUNICATION and is_of_late
        transfer_ns = transfers.transfer_ns if transfers and recording.uses_device else 0
        yield _after(claim, late, wait_ns, transfer_ns, recording.step_noun) if is_wait else claim


def _of_recorded_ranks(claim: Claim, of_run: list[Claim], workers: int, worker: str) -> Claim:
    """A claim that would have all ranks recorded, where they are: who was last is known, or is in *Ranks*."""
    if all(other.confidence == "cannot_tell" for other in of_run):
        return claim
    last = next((other.filter for other in of_run if other.id in _NAMES_LAST and other.filter), worker)
    action = f"*Ranks* compares the {workers} that are recorded: find the one that comes last."
    if last != worker:
        action = f"Begin with {last}, which comes last most often by *Ranks*."
    return replace(claim, action=claim.action.replace(RECORD_ALL, action))


def _after(claim: Claim, late: list[Claim], wait_ns: float, transfer_ns: float, noun: str) -> Claim:
    """Communication that waits for late ranks: what to do is what is to do there, and then about what is left.

    What the late ranks save is a saving of theirs. The rest is worth saying if it is most, or known to be moving data;
    without a device it isn't, since threads wait in ways that no recording shows.

    Args:
        claim: The claim.
        late: The claims about late ranks.
        wait_ns: How long it waits for them per step.
        transfer_ns: How long it is known to move data per step.
        noun: What a step is called.
    """
    own_ns, saved_ns = claim.saving_ns or 0, late[0].saving_ns or 0
    wait = text.time(min(wait_ns, own_ns) if own_ns else wait_ns)
    slow = text.enumeration([other.filter for other in late])
    claim = replace(claim, title=f"{claim.title} {wait} of it per {noun} is waiting for {slow}.")
    rest = claim.less(saved_ns, round(wait_ns))
    if saved_ns >= MOSTLY * own_ns:
        rest = rest.at_most(round(transfer_ns))
        if (rest.saving_frac or 0) <= LEAST_EXPOSED:
            return replace(claim, action=_of_late_ranks(late)).at_most(saved_ns)
    are, left = "is" if len(late) == 1 else "are", text.time(rest.saving_ns or 0)
    title = f"{claim.title} Once {slow} {are} as fast as the others, about {left} is left."
    return replace(rest, title=title, action=f"{_of_late_ranks(late)} Then: {claim.action}")


def _of_late_ranks(late: list[Claim]) -> str:
    """What to do about communication that waits for late ranks."""
    slow = text.enumeration([claim.filter for claim in late])
    return f"Make {slow} as fast as the other ranks first. On {late[0].filter}: {late[0].action}"


def _without_saving_of_late_ranks(claim: Claim, late: list[Claim]) -> Claim:
    """A claim about which nothing is to do but what is to do about late ranks: that saving is a saving of theirs."""
    if not late or claim.action != _of_late_ranks(late):
        return claim
    return replace(claim, saving_ns=None, saving_frac=None, saving_low_ns=None, saving_high_ns=None)


def _in_order_of_savings(claims: Sequence[Claim], rank_steps: Rows, recording: Answer) -> list[Claim]:
    """The claims, those about the host of a rank that waits for others with what it saves alone, in order of that.

    So are those of the recording, in its order, that save less in the run.

    What would save next to nothing then is no claim: the one that says what is in order says so.
    """
    of_host = any(claim.id in OF_HOST and claim.saving_ns for claim in claims)
    pace = PaceOfOthers.of(rank_steps, recording.worker) if of_host else None
    bounds = [_bounded_by_others(claim, pace, recording.step_noun) for claim in claims]
    least_ns = max(1.0, LEAST_SHARE * (recording.usual_step_ns or recording.step_ns))
    of_others = [bound for claim, bound in zip(claims, bounds, strict=True) if claim is not bound]
    hidden_claims = [bound for bound in of_others if (bound.saving_ns or 0) < least_ns]
    of_recording = zip(recording.claims, bounds, strict=True)
    smaller_claims = [bound for claim, bound in of_recording if (bound.saving_ns or 0) < (claim.saving_ns or 0)]
    in_order = [
        _with_hidden(claim, hidden_claims) if claim.is_in_order else claim
        for claim in bounds
        if claim not in smaller_claims
    ]
    for bound in (bound for bound in smaller_claims if bound not in hidden_claims):
        smaller = (
            i
            for i, other in enumerate(in_order)
            if other.is_in_order or (other.saving_ns is not None and other.saving_ns < (bound.saving_ns or 0))
        )
        in_order.insert(next(smaller, len(in_order)), bound)
    return in_order


def _with_hidden(claim: Claim, hidden_claims: Sequence[Claim]) -> Claim:
    """The claim about what is in order, with what else costs time that other ranks take, too."""
    if not hidden_claims:
        return claim
    sentences = " ".join(f"{bound.title} {bound.evidence}" for bound in hidden_claims)
    return replace(claim, evidence=f"{claim.evidence} Hidden by waiting for other ranks: {sentences}".strip())


def _bounded_by_others(claim: Claim, pace: PaceOfOthers | None, noun: str) -> Claim:
    """A claim about the host of a rank that waits for others meanwhile: no step gets shorter than theirs."""
    saving_ns = claim.saving_ns
    if pace is None or not saving_ns or not pace.bounds(claim.id, saving_ns):
        return claim
    return replace(claim, evidence=f"{claim.evidence} {pace.words(saving_ns, noun)}").at_most(pace.most_ns)


def _with_bubble(claim: Claim, of_run: list[Claim], rank_steps: Rows, recording: Answer) -> Claim:
    """Communication of a pipeline's stage that is mostly its bubble: what to do is what makes that smaller.

    Not if it is said to wait for a late stage.
    """
    bubble = next((other for other in of_run if other.id == "pipeline" and other.saving_ns), None)
    kind = claim.exposure.kind if claim.exposure else None
    is_said = all(claim.title != own.title for own in recording.claims)
    if bubble is None or kind is None or kind.name not in PEER_TO_PEER or is_said:
        return claim
    steps = complete_steps(rank_steps, recording.worker)
    waits = [row["exposed_wait_ns"] for row in steps if row["exposed_wait_ns"] is not None]
    wait_ns = sum(waits) / len(waits) if waits else 0
    if wait_ns < MOSTLY * (claim.saving_ns or 0):
        return claim
    rest = f"{text.time(wait_ns)} of it per {recording.step_noun} is waiting for other stages of the pipeline."
    return replace(claim, title=f"{claim.title} {rest}", action=bubble.action).at_most(round(wait_ns))


def _with_turns(
    claim: Claim, frames: Frames, of_turns: Turns, cause: tuple[StepWork, str] | None, recording: Answer
) -> Claim:
    """Communication that is mostly waiting for other ranks, none of which is slow: what to do is to even them out.

    What waits nowhere but at a barrier needs no barrier.
    """
    transfers = _transfers(claim, frames, recording.worker)
    kind = claim.exposure.kind if claim.exposure else None
    if claim.id != _EXPOSED or transfers is None or kind is None or kind.name in (*PEER_TO_PEER, "barrier"):
        return claim
    if transfers.wait_ns < MOSTLY * (transfers.wait_ns + transfers.transfer_ns):
        return claim
    claim = claim.at_most(round(transfers.wait_ns))
    if not of_turns:
        return replace(claim, action=WAITING)
    wait = f"{text.time(transfers.wait_ns)} of it per {recording.step_noun} is waiting for ranks that are late in turn"
    if cause is None:
        return replace(claim, title=f"{claim.title} {wait}.", action=EVEN_OUT)
    work, _ = cause
    code = replace(claim.culprit, function=work.culprit.function, range=work.culprit.range)
    title = f"{claim.title} {wait}, when `{work.words}` takes them longer."
    return replace(claim, title=title, action=less_there(work.words), culprit=code)


def _with_waits(claim: Claim, frames: Frames, worker: str) -> Claim:
    """A claim about communication with how much of it is waiting, and how long moving data takes, where that is known.

    Steps in which moving data takes much longer have their names.
    """
    transfers = _transfers(claim, frames, worker)
    if claim.exposure is None or transfers is None:
        return claim
    whole = replace(claim, evidence=claim.exposure.evidence(transfers))
    steps = complete_steps(_rank_steps(frames), worker)
    typical_ns = median(row["exposed_transfer_ns"] for row in steps)
    slow = [row for row in steps if row["exposed_transfer_ns"] > _SLOW * max(1, typical_ns)]
    more_ns = sum(row["exposed_transfer_ns"] - typical_ns for row in slow)
    if not slow or more_ns < MOSTLY * sum(row["exposed_wait_ns"] + row["exposed_transfer_ns"] for row in steps):
        return whole
    there_ns = median(row["exposed_transfer_ns"] for row in slow)
    names = ", ".join([*(row["step"] for row in slow[:_MOST_STEPS]), *(["…"] if len(slow) > _MOST_STEPS else [])])
    title = f"{claim.title} Most of it is in {len(slow)} of {len(steps)} steps ({names})."
    evidence = f"{whole.evidence} There moving data takes {text.time(there_ns)} per step, else {text.time(typical_ns)}."
    return replace(whole, title=title, evidence=evidence, action=f"{_IN_SLOW_STEPS} {claim.action}")


def _transfers(claim: Claim, frames: Frames, worker: str) -> Transfers | None:
    """What all ranks know of the communication that a claim is about; None if it is about none, or that is unknown.

    It takes a recording of each rank: else one that wasn't recorded may have come last.
    """
    exposure = claim.exposure
    if exposure is None or "communication" not in frames:
        return None
    steps = complete_steps(_rank_steps(frames), worker)
    calls = [row for row in rows_of(frames["communication"]) if row["total_ns"]]
    known_ns = sum(row["total_ns"] for row in calls if row["is_transfer_known"])
    if not steps or not known_ns or known_ns < _NEARLY_ALL * sum(row["total_ns"] for row in calls):
        return None
    if any(row["exposed_wait_ns"] is None for row in steps):
        return None
    wait, transfer = (
        sum(row[name] for row in steps) / len(steps) for name in ("exposed_wait_ns", "exposed_transfer_ns")
    )
    return Transfers(wait, transfer, _fastest_transfer(calls, exposure.kind.name) if exposure.kind else None)


def _fastest_transfer(calls: Sequence[dict[str, Any]], kind: str) -> tuple[int, int] | None:
    """Bytes of the fastest large call of a kind, and how long it moves data once all ranks have come."""
    large = [
        (row["message_bytes"], row["mean_transfer_ns"])
        for row in calls
        if row["operation"] == kind and row["mean_transfer_ns"] and (row["message_bytes"] or 0) >= SMALL_BYTES
    ]
    return max(large, key=lambda call: call[0] / call[1], default=None)
