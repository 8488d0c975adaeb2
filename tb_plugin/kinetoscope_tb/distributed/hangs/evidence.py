"""What a verdict rests on: a row per rank, and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from .job import Job, Rank
from .operations import RUNS_AT_ONCE, Operation
from .order import departing_ranks
from .slow_work import GERUNDS, LONGEST_S
from .titles import full_title, instant, ranks_title, title
from .verdict import NOTHING_OPEN, SLOW_WORK, Verdict
from .whereabouts import function_and_line, ranks_without_report, reports

_MOST_LINES, _MOST_RANKS = 12, 4


@dataclass(frozen=True)
class Row:
    """What a rank is in.

    Args:
        rank: The rank.
        group: The process group of what it waits in, or of its last operation.
        last_completed: Its last operation that ended, in that group.
        open: What it waits in; else what is known of it.
        since_ns: When it issued that, in ns since 1970; None if it waits in nothing.
        waits_for: The ranks without which that can't complete, or without which it may not.
        line: Where its code is, or issued that, or its last operation; empty without stacks.
        function: What its code is in; empty without what `Tracer` writes.
    """

    rank: int
    group: str | None
    last_completed: str | None
    open: str
    since_ns: int | None = None
    waits_for: tuple[int, ...] = ()
    line: str = ""
    function: str = ""


def rows(verdict: Verdict) -> list[Row]:
    """A row per rank, also for those without a dump."""
    job = verdict.graph.job
    states = {**job.ranks, **job.outdated}
    ranks = sorted({*states, *job.lost, *job.silent})
    return [_row(verdict, rank, states[rank]) if rank in states else _row_without_dump(verdict, rank) for rank in ranks]


def _row_without_dump(verdict: Verdict, rank: int) -> Row:
    return Row(rank, None, None, "dump can't be read" if rank in verdict.graph.job.lost else "no dump")


def _idle_state(job: Job, rank: int) -> str:
    if rank in job.went_on:
        return "went on"
    if rank in job.slow_work:
        return GERUNDS[job.slow_work[rank].kind]
    return "dump is too old" if rank in job.outdated else "nothing open"


def _row(verdict: Verdict, rank: int, state: Rank) -> Row:
    function, line = function_and_line(state.dump)
    if not (waits := verdict.graph.waits.get(rank, ())):
        last = state.operations[-1] if state.operations else None
        group, issued_at = (last.group.label, last.line) if last else (None, "")
        last_completed, what = _last_completed(state, last), _idle_state(verdict.graph.job, rank)
        return Row(rank, group, last_completed, what, line=line or issued_at, function=function)
    wait = next((wait for wait in waits if wait.is_blocked), waits[0])
    operation, others = wait.operation, tuple(sorted({*wait.missing, *wait.unclear}))
    last_completed, line = _last_completed(state, operation), line or operation.line
    since_ns, group = operation.created_ns or None, operation.group.label
    return Row(rank, group, last_completed, title(operation), since_ns, others, line, function)


def _last_completed(state: Rank, operation: Operation | None) -> str | None:
    """The last operation that ended in the group of another one."""
    for other in reversed(state.operations if operation else ()):
        if operation and other.is_complete and (other.group, other.is_p2p) == (operation.group, operation.is_p2p):
            return title(other)
    return None


def evidence(verdict: Verdict) -> list[str]:
    """What the ranks in question did last, and what limits the verdict."""
    lines = [*_last_operations(verdict), *reports(verdict), *ranks_without_report(verdict), *_limits(verdict)]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"… and {more} more."] if more > 0 else [])]


def _last_operations(verdict: Verdict) -> Iterator[str]:
    if verdict.kind == "order" and len(ranks := departing_ranks(verdict.graph, verdict.ranks)) == 1:
        yield f"Rank {ranks[0]} departs from the order in which it called them before; the others keep theirs."
    for rank in verdict.ranks[:_MOST_RANKS]:
        state = verdict.graph.job.ranks.get(rank)
        if state is not None and not state.open and state.operations:
            last = state.operations[-1]
            where = f" at {last.line}" if last.line else ""
            when = f", issued {instant(last.created_ns)}" if instant(last.created_ns) else ""
            yield f"Rank {rank} has nothing open; its last operation is {full_title(last)}{where}{when}."


def _limits(verdict: Verdict) -> Iterator[str]:
    job = verdict.graph.job
    if verdict.outcome == SLOW_WORK:
        yield f"Healthy jobs do that too. If the step lasts for {LONGEST_S / 60:.0f} minutes, it counts as a hang."
    if job.backends & set(RUNS_AT_ONCE) and not all(state.dump.report for state in job.ranks.values()):
        yield (
            "gloo's sends and receives aren't recorded, nor who belongs to a group, nor whether an operation failed: a "
            "rank with nothing open may wait in a receive, or have lost a peer. Its stack and its log say."
        )
    if (old := job.outdated.keys() - job.went_on) and verdict.outcome != NOTHING_OPEN:
        yield f"Others completed more with {ranks_title(old)} than that dump has: it is older, and isn't used."
    if job.went_on and verdict.outcome != NOTHING_OPEN:
        yield f"The step of {ranks_title(job.went_on)} ended after that dump, which isn't used: ask again."
    if wrapped_rings := [rank for rank, state in job.ranks.items() if state.has_wrapped]:
        who = ranks_title(wrapped_rings)
        yield f"The ring of {who} wrapped: earlier operations are lost. TORCH_FR_BUFFER_SIZE makes it longer."
    for problem in verdict.problems:
        yield f"{problem.path}: {problem.reason}."
