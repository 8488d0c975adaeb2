"""The answer about a run: first what its ranks say of each other, then what one of its recordings says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Any

from ..advice.communication import RECORD_ALL, SMALL_BYTES
from ..advice.exposure import Transfers
from ..advice.model import Certainty, Culprit
from ..distributed.imbalance.stragglers import CAUSES
from ..names import text
from ..names.collectives import PEER_TO_PEER
from .model import Answer, Claim, RowKey, Rows
from .recording import MOST, Views, not_said_of, question_of, rows_of

if TYPE_CHECKING:
    import polars as pl

    from ..distributed.run import Ranks

Frames = Mapping[str, "pl.DataFrame"]

OF_RUN = ("run_advice", "stragglers", "rank_steps", "communication")
"""The views of a run behind its answer."""

MOST_RANKS = 8
_MOST_LATE = 3  # whose recordings are read for their causes
LATE = ("straggler", "slow_at_times")
_SAYS_NOTHING = ("no_straggler", "no_last_rank", "unknown")
_OF_HOST = (
    *("host_bound", "launch_bound", "synchronizing", "allocation", "optimizer", "host_optimizer"),
    *("data_loading", "main_thread_waits", "small_operators", "operator_loop", "garbage_collection", "repeated_gap"),
    "longer_host_steps",
)
_NAMES_LAST = (*LATE, "last_rank")
_OF_COMMUNICATION = ("communication", "gloo")
_MOSTLY = 0.5  # of what communication takes
_NEARLY_ALL = 0.9  # of the time of all calls
_MORE = 1.02  # times the calls of another rank
_LESS_THERE = "Do it less often, on less data, or in another thread or process, or as much of it on all ranks."
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
    late = [recording if worker == recording.worker else answer_of(worker) for worker in late_workers(frames)]
    return with_ranks(recording, frames, views, workers, [answer for answer in late if answer is not None])


def frames_of_run(ranks: Ranks, views: Views) -> Frames:
    """The views OF_RUN of summaries; without those that lack data."""
    ranks_of = {view: ranks.of_span if views[view].scope == "span" else ranks for view in OF_RUN}
    return {view: views[view].frame(of, {}) for view, of in ranks_of.items() if not views[view].is_missing(of)}


def late_workers(frames: Frames) -> list[str]:
    """The workers that the others wait for most, by the views OF_RUN, the first one most; at most three."""
    rows = rows_of(frames["run_advice"]) if "run_advice" in frames else ()
    return [row["filter"] for row in rows if row["rule"] in LATE][:_MOST_LATE]


def with_ranks(
    recording: Answer,
    frames: Frames,
    views: Views,
    workers: int,
    late: Sequence[Answer] = (),
) -> Answer:
    """The answer about a run: a slow rank or link first; advice to communicate less comes behind the rank that is late.

    Args:
        recording: The answer about one of its recordings.
        frames: The views OF_RUN, without those that lack data.
        views: All views.
        workers: How many the run has.
        late: The answers about the recordings of `late_workers`, which name their code.
    """
    rank_rows, rank_steps = _rank_rows(frames), _rank_steps(frames)
    of_run = claims_of_run(frames, views, late or [recording], recording)
    late_claims = [claim for claim in of_run if claim.id in LATE]
    own = _behind_slow_ranks(recording, late_claims, rank_rows)
    own = (_of_recorded_ranks(claim, of_run, workers, recording.worker) for claim in own)
    own = (_with_waits(claim, frames, rank_steps, recording.worker) for claim in own)
    own = (_with_bubble(claim, of_run, rank_steps, recording) for claim in own)
    causes = [claim for claim in of_run if claim.id not in _SAYS_NOTHING]
    rest = [claim for claim in of_run if claim.id in _SAYS_NOTHING]
    left_out = len(rank_rows) - MOST_RANKS
    others = {"other_ranks": f"… and {text.times(left_out, 'rank')} that took less"} if left_out > 0 else {}
    return replace(
        recording,
        claims=(*causes, *_at_pace_of_others(list(own), rank_steps, recording), *rest),
        not_said=(*not_said_of(of_run), *recording.not_said),
        sentences={**recording.sentences, **others},
        rows={**recording.rows, **({"stragglers": rank_rows[:MOST_RANKS]} if rank_rows else {})},
        ranks=workers,
    )


def claims_of_run(frames: Frames, views: Views, late: Sequence[Answer], other: Answer | None = None) -> list[Claim]:
    """What ranks say of each other, late ranks with what their own recordings say.

    Args:
        frames, views, late: As in `with_ranks`.
        other: The answer about a recording that a late rank's operators are compared with.
    """
    rank_rows, rank_steps = _rank_rows(frames), _rank_steps(frames)
    claims = (
        [_claim(row, rank_rows, rank_steps, views) for row in rows_of(frames["run_advice"])]
        if "run_advice" in frames
        else []
    )
    for own_answer in late:
        claims = [_with_cause(claim, own_answer, rank_rows, rank_steps) for claim in claims]
        if other is not None:
            claims = [_with_own_work(claim, own_answer, other, _late_ns(claim, rank_rows)) for claim in claims]
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


def _late_ns(claim: Claim, rank_rows: Rows) -> float:
    """By how much a rank's cause makes it late in the average step; a rank saves less where others are late, too."""
    row = next((row for row in rank_rows if row["worker"] == claim.culprit.worker), {})
    often = (row.get("slow_steps") or 0) / (row.get("steps") or 1)
    return max(claim.saving_ns or 0, (row.get("part_in_slow_steps_ns") or 0) * often)


def _with_cause(claim: Claim, late: Answer, rank_rows: Rows, rank_steps: Rows) -> Claim:
    """A late rank with the code that its own recording names, or that takes longer in the steps in which it is late."""
    of_answer = _with_own_cause(claim, late, _late_ns(claim, rank_rows))
    return of_answer if of_answer is not claim else _with_own_steps(claim, late, rank_rows, rank_steps)


def _with_own_cause(claim: Claim, recording: Answer, late_ns: float) -> Claim:
    """A late rank with the code that its own recording names for as much of the host's time."""
    if claim.id not in LATE or claim.culprit.worker != recording.worker:
        return claim
    least_ns = _MOSTLY * late_ns
    large = [own for own in recording.claims if (own.saving_ns or 0) >= least_ns]
    own = next((own for own in large if own.id in _OF_HOST or _is_only_in_some_steps(own)), None)
    if own is None:
        return claim
    code = replace(own.culprit, rank=claim.culprit.rank, worker=claim.culprit.worker)
    title = _with_place(claim, code.function) if code.function else claim.title
    says = own.title if code.function else f"{own.title} {own.evidence}"  # which may say where the host was
    evidence = f"{claim.evidence} Its own recording says: {says}"
    return replace(claim, title=title, evidence=evidence, action=own.action, culprit=code)


def _is_only_in_some_steps(own: Claim) -> bool:
    """Whether a claim names code that only longer steps run, on the device too."""
    return own.id == "longer_steps" and (own.culprit.function or own.culprit.range) is not None


def _with_own_steps(claim: Claim, late: Answer, rank_rows: Rows, rank_steps: Rows) -> Claim:
    """A rank that is late in some steps with the function that takes as much longer there than in its other steps.

    Its steps needn't be longer than its others: it waits less in them.
    """
    row = next((row for row in rank_rows if row["worker"] == late.worker), None)
    if claim.id not in LATE or claim.culprit.worker != late.worker or claim.culprit.function or row is None:
        return claim
    if row["cause"] not in (CAUSES["idle_ns"], CAUSES["dataloader_ns"]):
        return claim
    longer = _longer_steps(rank_steps, late.worker, row["part_in_slow_steps_ns"])
    is_late = [step for step, is_longer in longer.items() if is_longer]
    others = [step for step, is_longer in longer.items() if not is_longer]
    for work in late.step_work if is_late and others else ():
        there, elsewhere = (median(work.ns.get(step, 0) for step in steps) for steps in (is_late, others))
        if there - elsewhere >= _MOSTLY * row["part_in_slow_steps_ns"]:
            evidence = f"{claim.evidence} In these steps `{work.name}` takes {text.time(there)}, else "
            evidence += f"{text.time(elsewhere)}."
            code = replace(work.culprit, rank=claim.culprit.rank, worker=claim.culprit.worker)
            title = _with_place(claim, work.name)
            return replace(claim, title=title, evidence=evidence, action=_LESS_THERE, culprit=code)
    return claim


def _with_place(claim: Claim, name: str) -> str:
    """The title of a late rank, with what most of its lateness is in."""
    rank, worker = claim.culprit.rank, claim.culprit.worker
    return f"{claim.title} Most of what {worker if rank is None else f'rank {rank}'} takes longer is in `{name}`."


def _longer_steps(rank_steps: Rows, worker: str, part_ns: float) -> dict[str, bool]:
    """The complete steps of a rank, and whether it takes longer there than the others, by what it is late by."""
    own, others = _times_without_waiting(rank_steps, worker)
    before = f"{worker} "
    return {
        step.removeprefix(before): ns - median(others[step]) >= _MOSTLY * part_ns
        for step, ns in own.items()
        if step in others
    }


def _times_without_waiting(rank_steps: Rows, worker: str) -> tuple[dict[str, int], dict[str, list[int]]]:
    """How long a rank, and each other one, takes for its complete steps without waiting, by the name of the step."""
    own: dict[str, int] = {}
    others: dict[str, list[int]] = {}
    for row in rank_steps:
        if row["is_complete"] and row["without_waiting_ns"] is not None:
            if row["worker"] == worker:
                own[row["step"]] = row["without_waiting_ns"]
            else:
                others.setdefault(row["step"], []).append(row["without_waiting_ns"])
    return own, others


def _with_own_work(claim: Claim, late: Answer, other: Answer, late_ns: float) -> Claim:
    """A late rank with the operator that it calls more often than another rank does, for as much of its time."""
    if claim.id not in LATE or claim.culprit.worker != late.worker or claim.culprit.function or not late.steps:
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
    title = _with_place(claim, name)
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
        yield _after(claim, late, wait, recording.step_noun) if is_wait else claim


def _of_recorded_ranks(claim: Claim, of_run: list[Claim], workers: int, worker: str) -> Claim:
    """A claim that would have all ranks recorded, where they are: who was last is known, or is in *Ranks*."""
    if all(other.confidence == "cannot_tell" for other in of_run):
        return claim
    last = next((other.filter for other in of_run if other.id in _NAMES_LAST and other.filter), worker)
    action = f"*Ranks* compares the {workers} that are recorded: find the one that comes last."
    if last != worker:
        action = f"Begin with {last}, which comes last most often by *Ranks*."
    return replace(claim, action=claim.action.replace(RECORD_ALL, action))


def _after(claim: Claim, late: list[Claim], wait: str, noun: str) -> Claim:
    """Communication that waits for late ranks: what to do is what is to do there."""
    slow = text.listed([other.filter for other in late])
    title = f"{claim.title} {wait} of it per {noun} is waiting for {slow}."
    action = f"Make {slow} as fast as the other ranks first. On {late[0].filter}: {late[0].action}"
    return replace(claim, title=title, action=action)


def _at_pace_of_others(claims: Sequence[Claim], rank_steps: Rows, recording: Answer) -> list[Claim]:
    """The claims, those about the host of a rank that waits for others with what it saves alone, in order of that."""
    bounds = [_bounded_by_others(claim, rank_steps, recording) for claim in claims]
    in_order = [claim for claim, bound in zip(claims, bounds, strict=True) if claim is bound]
    for bound in (bound for claim, bound in zip(claims, bounds, strict=True) if claim is not bound):
        smaller = (
            i
            for i, other in enumerate(in_order)
            if other.is_in_order or (other.saving_ns is not None and other.saving_ns < (bound.saving_ns or 0))
        )
        in_order.insert(next(smaller, len(in_order)), bound)
    return in_order


def _bounded_by_others(claim: Claim, rank_steps: Rows, recording: Answer) -> Claim:
    """A claim about the host of a rank that waits for others meanwhile: no step gets shorter than theirs.

    That counts where it waits for half as long as it would save: other ranks that take as long as this one do what it
    does, and save as much.
    """
    saving_ns = claim.saving_ns
    if claim.id not in _OF_HOST or not saving_ns:
        return claim
    _, others = _times_without_waiting(rank_steps, recording.worker)
    steps = _complete_steps(rank_steps, recording.worker)
    waits = [(row, max(others[row["step"]])) for row in steps if row["wait_ns"] is not None and row["step"] in others]
    if not waits:
        return claim
    wait_ns = sum(row["wait_ns"] for row, _ in waits) / len(waits)
    slowest_ns = sum(slowest for _, slowest in waits) / len(waits)
    most_ns = round(sum(max(0, row["total_ns"] - slowest) for row, slowest in waits) / len(waits))
    if wait_ns < _MOSTLY * saving_ns or most_ns >= saving_ns:
        return claim
    evidence = (
        f"{claim.evidence} This rank waits {text.time(wait_ns)} per {recording.step_noun} for others, the slowest of "
        f"which takes {text.time(slowest_ns)} without waiting: while it does, this rank alone saves at most "
        f"{text.time(most_ns)}, not {text.time(saving_ns)}."
    )
    frac = None if claim.saving_frac is None else claim.saving_frac * most_ns / saving_ns
    return replace(claim, evidence=evidence, saving_ns=most_ns, saving_frac=frac)


def _with_bubble(claim: Claim, of_run: list[Claim], rank_steps: Rows, recording: Answer) -> Claim:
    """Communication of a pipeline's stage that is mostly its bubble: what to do is what makes that smaller.

    Not if it is said to wait for a late stage.
    """
    bubble = next((other for other in of_run if other.id == "pipeline" and other.saving_ns), None)
    kind = claim.exposure.kind if claim.exposure else None
    is_said = all(claim.title != own.title for own in recording.claims)
    if bubble is None or kind is None or kind.name not in PEER_TO_PEER or is_said:
        return claim
    steps = _complete_steps(rank_steps, recording.worker)
    waits = [row["wait_ns"] for row in steps if row["wait_ns"] is not None]
    wait_ns = sum(waits) / len(waits) if waits else 0
    if wait_ns < _MOSTLY * (claim.saving_ns or 0):
        return claim
    rest = f"{text.time(wait_ns)} of it per {recording.step_noun} is waiting for other stages of the pipeline."
    return replace(claim, title=f"{claim.title} {rest}", action=bubble.action)


def _complete_steps(rank_steps: Rows, worker: str) -> list[dict[str, Any]]:
    return [row for row in rank_steps if row["worker"] == worker and row["is_complete"]]


def _with_waits(claim: Claim, frames: Frames, rank_steps: Rows, worker: str) -> Claim:
    """A claim about communication with how much of it is waiting, and how long moving data takes, where that is known.

    That takes a recording of each rank: else one that wasn't recorded may have come last.
    """
    exposure = claim.exposure
    if exposure is None or "communication" not in frames:
        return claim
    steps = _complete_steps(rank_steps, worker)
    calls = [row for row in rows_of(frames["communication"]) if row["total_ns"]]
    known_ns = sum(row["total_ns"] for row in calls if row["is_transfer_known"])
    if not steps or not known_ns or known_ns < _NEARLY_ALL * sum(row["total_ns"] for row in calls):
        return claim
    if any(row["wait_ns"] is None for row in steps):
        return claim
    wait, transfer = (sum(row[name] for row in steps) / len(steps) for name in ("wait_ns", "exposed_transfer_ns"))
    fastest = _fastest_transfer(calls, exposure.kind.name) if exposure.kind else None
    return replace(claim, evidence=exposure.evidence(Transfers(wait, transfer, fastest)))


def _fastest_transfer(calls: Sequence[dict[str, Any]], kind: str) -> tuple[int, int] | None:
    """Bytes of the fastest large call of a kind, and how long it moves data once all ranks have come."""
    large = [
        (row["message_bytes"], row["mean_transfer_ns"])
        for row in calls
        if row["operation"] == kind and row["mean_transfer_ns"] and (row["message_bytes"] or 0) >= SMALL_BYTES
    ]
    return max(large, key=lambda call: call[0] / call[1], default=None)
