"""One culprit, or why none can be named: rules in the order in which they are certain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from kinetoscope.journal.status import RankStatus

from ...reader.flight_recorder.files import DumpFolder, Problem
from .cycles import short_cycle
from .job import job_of
from .mismatch import Mismatch, mismatches
from .operations import RUNS_AT_ONCE, Operation
from .waits import Wait, WaitGraph, wait_graph

CULPRIT, CANNOT_TELL, SLOW_WORK, NOTHING_OPEN = "culprit", "cannot tell", "slow work", "nothing open"
OWN_CODE = "own code"
"""The rule for steps that last too long although no rank waits for another one."""


@dataclass(frozen=True)
class Verdict:
    """What is known of a hang.

    Args:
        outcome: CULPRIT, CANNOT_TELL, SLOW_WORK or NOTHING_OPEN.
        kind: Which rule decided.
        graph: Who waits for whom.
        ranks: The culprits, or those that others wait for in slow work; without a verdict, those that may be culprits.
        wait: The wait for them that says most.
        mismatch: What they called differently.
        problems: Files that aren't used.
        statuses: The state of each rank, if it is a run that `Tracer` records.
    """

    outcome: str
    kind: str
    graph: WaitGraph
    ranks: tuple[int, ...] = ()
    wait: Wait | None = None
    mismatch: Mismatch | None = None
    problems: tuple[Problem, ...] = field(default=())
    statuses: tuple[RankStatus, ...] = field(default=())

    @property
    def operation(self) -> Operation | None:
        """The operation of the first wait, as the rank that waits issued it."""
        return self.wait.operation if self.wait else None

    @property
    def culprits(self) -> tuple[int, ...]:
        """The ranks that hold up the others; none if that is unknown."""
        return self.ranks if self.outcome == CULPRIT else ()


def verdict(folder: DumpFolder) -> Verdict:
    """The verdict on a folder of dumps."""
    graph = wait_graph(job_of(folder))
    answer = next(answer for rule in _RULES if (answer := rule(graph)) is not None)
    return replace(answer, problems=folder.problems, statuses=folder.statuses)


def _all_went_on(graph: WaitGraph) -> Verdict | None:
    """All ranks went on: the step was only slow."""
    job = graph.job
    is_over = job.went_on and not job.ranks and job.went_on.issuperset(job.outdated)
    return Verdict(NOTHING_OPEN, "went on", graph, tuple(sorted(job.went_on))) if is_over else None


def _mismatch(graph: WaitGraph) -> Verdict | None:
    """Ranks that called something else than the majority; without a majority nobody can tell who is right."""
    if (first := next(iter(mismatches(graph.job)), None)) is None:
        return None
    outcome = CULPRIT if first.culprits else CANNOT_TELL
    return Verdict(outcome, first.aspect, graph, first.culprits or tuple(sorted(first.values)), mismatch=first)


def _order(graph: WaitGraph) -> Verdict | None:
    """Ranks that wait for each other in a cycle: no rank outside can end that."""
    cycle = short_cycle(graph.successors)
    return Verdict(CULPRIT, "order", graph, tuple(cycle), graph.closest_wait(set(cycle))) if cycle else None


def _slow_work(graph: WaitGraph) -> Verdict | None:
    """The others wait only for ranks whose work takes long in a healthy job, too."""
    if not graph.idle or not graph.job.slow_work.keys() >= set(graph.idle):
        return None
    return Verdict(SLOW_WORK, "slow work", graph, graph.idle, graph.closest_wait(set(graph.idle)))


def _absent(graph: WaitGraph) -> Verdict | None:
    """Sinks: ranks that never came, and wait for nothing.

    Of several the one for which all wait that wait for any other one; or those together for which the same ranks wait.
    Where sends and receives aren't recorded, one of several may itself wait for another.
    """
    if not graph.idle:
        return None
    waiters = {rank: graph.waiters(rank) for rank in graph.idle}
    most = max(waiters.values(), key=len)
    ranks = tuple(rank for rank in graph.idle if waiters[rank] == most)
    wait = graph.closest_wait(set(ranks))
    has_p2p = not graph.job.backends & set(RUNS_AT_ONCE)
    if len(graph.idle) > 1 and not (has_p2p and all(others <= most for others in waiters.values())):
        return Verdict(CANNOT_TELL, "several absent", graph, graph.idle, graph.closest_wait(set(graph.idle)))
    if 2 * len(ranks) > len(wait.operation.group.ranks):
        return Verdict(CANNOT_TELL, "most absent", graph, ranks, wait)
    return Verdict(CULPRIT, "absent", graph, ranks, wait)


def _without_dump(graph: WaitGraph) -> Verdict | None:
    """Ranks without a dump. They are the culprits if all others wait: then nobody else can hold them up."""
    suspects = tuple(rank for rank in graph.unclear if rank not in graph.waits)
    if not graph.unclear:
        return None
    if not suspects:
        return Verdict(CANNOT_TELL, "ring", graph, graph.unclear, graph.closest_wait(set(graph.unclear)))
    job, wait = graph.job, graph.closest_wait(set(suspects))
    if late := tuple(rank for rank in suspects if rank in job.pending):
        return Verdict(CANNOT_TELL, "not yet", graph, late, wait)
    if job.silent.issuperset(suspects) and not job.outdated and len(job.waiting_ranks) == len(job.ranks):
        return Verdict(CULPRIT, "no dump", graph, suspects, wait)
    return Verdict(CANNOT_TELL, "no dump", graph, suspects, wait)


def _on_device(graph: WaitGraph) -> Verdict | None:
    """All came, and nothing differs: ranks whose device did not begin, or did not finish while others wait for them.

    With gloo, or where the members aren't known, the others may have given up.
    """
    for rank, waits in graph.waits.items():
        for wait in waits:
            if wait.is_blocked or wait.operation.is_p2p:
                continue
            states = graph.job.calls(wait.operation.group, wait.operation.seq)
            not_begun = tuple(r for r, o in states.items() if not o.is_running and not o.is_complete)
            open_ranks = tuple(r for r, o in states.items() if not o.is_complete)
            if not_begun and 2 * len(not_begun) < len(states):
                return Verdict(CULPRIT, "not begun", graph, not_begun, wait)
            ended_elsewhere = 2 * len(open_ranks) < len(states) and wait.operation.waits_for_all
            is_known = wait.operation.group.is_exact and not graph.job.backends & set(RUNS_AT_ONCE)
            if ended_elsewhere and is_known and graph.waiters(rank):
                return Verdict(CULPRIT, "not finished", graph, open_ranks, wait)
    return None


def _in_own_code(graph: WaitGraph) -> Verdict | None:
    """Nobody waits in an operation, and all ranks are in a step that lasts too long, because of what they do.

    Of several ranks that is certain only where their operations are recorded, and if they are at the same line.
    """
    job = graph.job
    reports = [state.dump.report for state in job.ranks.values()]
    is_unclear = job.outdated or job.lost or job.silent or any(r is None or r.reason != "step" for r in reports)
    if graph.waits or not reports or is_unclear:
        return None
    ranks = tuple(sorted(job.ranks))
    if job.slow_work.keys() >= job.ranks.keys():
        return Verdict(SLOW_WORK, OWN_CODE, graph, ranks)
    activities = [report.activity for report in reports if report]
    lines = {(activity.file, activity.line) if activity else None for activity in activities}
    is_communication = any(activity and activity.function.startswith("torch.distributed.") for activity in activities)
    is_recorded = all(state.operations for state in job.ranks.values())
    is_certain = is_recorded and not is_communication and len(lines) == 1 and None not in lines
    return Verdict(CULPRIT, OWN_CODE, graph, ranks) if len(ranks) == 1 or is_certain else None


def _without_a_culprit(graph: WaitGraph) -> Verdict:
    """Nothing is open, or all are there."""
    job = graph.job
    if not graph.waits:
        unknown_ranks = tuple(sorted({*job.outdated, *job.lost, *job.silent}))
        if job.pending:
            return Verdict(CANNOT_TELL, "not yet", graph, tuple(sorted(job.pending)))
        return Verdict(CANNOT_TELL if unknown_ranks else NOTHING_OPEN, "nothing open", graph, unknown_ranks)
    first = min((w for waits in graph.waits.values() for w in waits), key=lambda wait: wait.operation.created_ns)
    kind = "all there" if first.operation.group.is_exact or first.operation.is_p2p else "members"
    return Verdict(CANNOT_TELL, kind, graph, tuple(sorted(graph.waits)), first)


_RULES: tuple[Callable[[WaitGraph], Verdict | None], ...] = (
    _all_went_on,
    _mismatch,
    _order,
    _slow_work,
    _absent,
    _without_dump,
    _on_device,
    _in_own_code,
    _without_a_culprit,
)
