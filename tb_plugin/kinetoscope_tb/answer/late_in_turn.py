"""Ranks that are late in turn: none is slow, but one is late in each step, and what takes it longer there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from ..distributed.imbalance.stragglers import LEAST_ONCE_FRAC
from .late_cause import MOSTLY, less_there, longer_there
from .model import Answer, Claim, Rows
from .step_work import StepWork

_FEWEST = 2  # ranks that share what takes them longer


@dataclass(frozen=True)
class Turns:
    """The ranks that are late in some steps each.

    Args:
        late_ns: By how much each worker is late, by the steps in which it is; the worker that is late most comes first.
        steps: The complete steps of each of these.
    """

    late_ns: Mapping[str, Mapping[str, float]]
    steps: Mapping[str, Sequence[str]]

    def __bool__(self) -> bool:
        """Whether there are several such ranks."""
        return len(self.late_ns) > 1


def turns(rank_steps: Rows) -> Turns:
    """Who is late when: by a twentieth of a step, and by half of what the latest one is late by."""
    rows = [row for row in rank_steps if row["is_complete"] and row["without_waiting_ns"] is not None]
    own: dict[str, dict[str, int]] = {}
    for row in rows:
        own.setdefault(row["step"], {})[row["worker"]] = row["without_waiting_ns"]
    least_ns = LEAST_ONCE_FRAC * sum(row["total_ns"] or 0 for row in rows) / max(1, len(rows))
    late: dict[str, dict[str, float]] = {}
    for step, times in own.items():
        over = {worker: ns - median(_without(times, worker)) for worker, ns in times.items()} if len(times) > 1 else {}
        most = max(over.values(), default=0)
        for worker, ns in over.items():
            if ns >= max(1, least_ns, MOSTLY * most):
                late.setdefault(worker, {})[step] = ns
    in_order = sorted(late, key=lambda worker: (-sum(late[worker].values()), worker))
    steps = {worker: [step for step, times in own.items() if worker in times] for worker in in_order}
    return Turns({worker: late[worker] for worker in in_order}, steps)


def _without(times: Mapping[str, int], worker: str) -> list[int]:
    return [ns for other, ns in times.items() if other != worker]


def shared_work(of_turns: Turns, answers: Sequence[Answer]) -> tuple[StepWork, str] | None:
    """The innermost function that takes most ranks longer in the steps in which they are late, and how much, in words.

    Args:
        of_turns: The ranks that are late in turn.
        answers: The answers about recordings of the run.
    """
    of_late = [answer for answer in answers if answer.worker in of_turns.late_ns and answer.step_work]
    by_name: dict[str, list[tuple[StepWork, str]]] = {}
    for answer in of_late:
        late = of_turns.late_ns[answer.worker]
        elsewhere = [step for step in of_turns.steps[answer.worker] if step not in late]
        for work, words in longer_there(answer, list(late), elsewhere, MOSTLY * median(late.values())):
            where = f"{answer.worker} is late in {len(late)} of {len(of_turns.steps[answer.worker])} steps."
            by_name.setdefault(work.name, []).append((work, f"{where} {words}"))
    matches = (of_ranks for of_ranks in by_name.values() if len(of_ranks) >= max(_FEWEST, len(of_late) / 2))
    of_ranks = next(matches, None)
    return None if of_ranks is None else (of_ranks[0][0], " ".join(words for _, words in of_ranks))


def with_shared_work(claim: Claim, cause: tuple[StepWork, str] | None) -> Claim:
    """That no rank is slow, with what takes ranks longer that are late in turn."""
    if cause is None:
        return claim
    work, words = cause
    title = f"{claim.title} In the steps in which they are late, `{work.words}` takes longer."
    code = replace(claim.culprit, function=work.culprit.function, range=work.culprit.range)
    return replace(
        claim, title=title, evidence=f"{claim.evidence} {words}", action=less_there(work.words), culprit=code
    )
