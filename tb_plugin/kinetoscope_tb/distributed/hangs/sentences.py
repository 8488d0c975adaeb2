"""A verdict as one sentence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ...names.text import enumeration
from .mismatch import Mismatch
from .operations import Operation
from .order import waits_of_cycle
from .slow_work import GERUNDS
from .titles import full_title, instant, ranks_title
from .verdict import CANNOT_TELL, OWN_CODE, SLOW_WORK, Verdict
from .whereabouts import activity_clause, activity_clauses, short_line, step_clause, wait_words

_MOST_PARTS = 6


def sentence(verdict: Verdict) -> str:
    """The verdict in one sentence."""
    if verdict.mismatch is not None:
        text = _mismatch(verdict.mismatch, verdict.graph.job.pending)
    elif verdict.operation is not None:
        text = _SENTENCES[verdict.kind](verdict, verdict.operation)
    else:
        text = _without_operation(verdict)
    return f"Cannot tell: {text}" if verdict.outcome == CANNOT_TELL else text[:1].upper() + text[1:]


def _mismatch(mismatch: Mismatch, pending: Collection[int]) -> str:
    ranks_of: dict[str, list[int]] = {}
    for rank, value in sorted(mismatch.values.items()):
        ranks_of.setdefault(value, []).append(rank)
    usual = ranks_of.pop(mismatch.values[mismatch.operation.rank]) if mismatch.culprits else []
    calls = enumeration([_calls(mismatch, ranks) for ranks in [*ranks_of.values()][:_MOST_PARTS]])
    collective = f"collective {mismatch.operation.seq} of {mismatch.operation.group.label}"
    if not usual:
        late = sorted({*mismatch.operation.group.ranks}.intersection(pending))
        verb = "has" if len(late) == 1 else "have"
        ask = f", and {ranks_title(late)} {verb} written no report yet: ask again" if late else ""
        return f"as {collective}, {calls}: no majority says who is right{ask}."
    return f"{calls} as {collective}; {_calls(mismatch, usual)}."


def _calls(mismatch: Mismatch, ranks: Sequence[int]) -> str:
    """Such as rank 1 called all_reduce with 512 elements."""
    value = mismatch.values[ranks[0]]
    kind = mismatch.operation.kinds[0]
    what = {"operation": value, "dtype": f"{kind} with {value}", "size": f"{kind} with {value} elements"}
    return f"{ranks_title(ranks)} called {what[mismatch.aspect]}"


def _absent(verdict: Verdict, operation: Operation) -> str:
    what = f"{'the other end of ' if operation.is_p2p else ''}{full_title(operation)}"
    return f"{ranks_title(verdict.ranks)} never came to {what}{activity_clause(verdict)}{_waiters(verdict)}"


def _slow_work(verdict: Verdict, _operation: Operation | None = None) -> str:
    ranks_of: dict[str, list[int]] = {}
    for rank in verdict.ranks:
        ranks_of.setdefault(verdict.graph.job.slow_work[rank].kind, []).append(rank)
    return "; ".join(_work_clause(verdict, kind, ranks) for kind, ranks in ranks_of.items()) + _waiters(verdict)


def _work_clause(verdict: Verdict, kind: str, ranks: Sequence[int]) -> str:
    """Such as rank 0 has been saving a checkpoint (train.py:88) for 41 s."""
    works = [verdict.graph.job.slow_work[rank] for rank in ranks]
    verb, activity = "has" if len(ranks) == 1 else "have", works[0].activity
    where = f" ({short_line(activity)})" if activity and len(ranks) == 1 else ""
    duration = f" for {max(work.seconds for work in works):.0f} s"
    state = verdict.graph.job.ranks.get(ranks[0]) if len(ranks) == 1 else None
    wait = wait_words(state.dump.report) if state and state.dump.report else ""
    return f"{ranks_title(ranks)} {verb} been {GERUNDS[kind]}{where}{duration}{wait}"


def _several_absent(verdict: Verdict, _operation: Operation) -> str:
    return f"{ranks_title(verdict.ranks)} did not come, and nothing says which of them holds up the others."


def _most_absent(verdict: Verdict, operation: Operation) -> str:
    there = sorted(set(operation.group.ranks) - set(verdict.ranks))
    return f"only {ranks_title(there)} came to {full_title(operation)}; {ranks_title(verdict.ranks)} did not."


def _no_dump(verdict: Verdict, operation: Operation) -> str:
    who = ranks_title(verdict.ranks)
    if verdict.outcome == CANNOT_TELL:
        return f"no dump says whether {who} came to {full_title(operation)}."
    return f"{who} left no dump, and all others wait: {ranks_title([operation.rank])} in {full_title(operation)}."


def _not_yet(verdict: Verdict, operation: Operation | None) -> str:
    who, verb = ranks_title(verdict.ranks), "has" if len(verdict.ranks) == 1 else "have"
    waits = f", while others wait in {full_title(operation)}" if operation else ""
    return f"{who} {verb} written no report of this step yet{waits}: ask again."


def _ring(verdict: Verdict, operation: Operation) -> str:
    return f"the rings of {ranks_title(verdict.ranks)} no longer say whether they came to {full_title(operation)}."


def _order(verdict: Verdict, _operation: Operation) -> str:
    operations = waits_of_cycle(verdict.graph, verdict.ranks)
    triples = zip(verdict.ranks, (*verdict.ranks[1:], verdict.ranks[0]), operations, strict=True)
    parts = [f"rank {rank} waits for rank {other} in {full_title(operation)}" for rank, other, operation in triples]
    more = "; …" if len(parts) > _MOST_PARTS else ""
    who, order = ranks_title(verdict.ranks), "; ".join(parts[:_MOST_PARTS])
    return f"{who} wait for each other, as they call operations in different orders: {order}{more}."


def _not_begun(verdict: Verdict, operation: Operation) -> str:
    who = ranks_title(verdict.ranks)
    return f"{who} issued {full_title(operation)}, but earlier work on the device does not end; the others run it."


def _not_finished(verdict: Verdict, operation: Operation) -> str:
    return f"{ranks_title(verdict.ranks)} did not finish {full_title(operation)}, as others did{_waiters(verdict)}"


def _all_there(_verdict: Verdict, operation: Operation) -> str:
    what = full_title(operation)
    return f"all ranks came to {what} with the same operation, dtype and size: look at the network and the devices."


def _members(_verdict: Verdict, operation: Operation) -> str:
    what, group = full_title(operation), operation.group.label
    return f"all ranks that are known to use {group} came to {what}, and the dumps don't say who else belongs to it."


def _waiters(verdict: Verdict) -> str:
    """Such as "; ranks 0 and 1 wait for it since …"."""
    waiters = frozenset[int]().union(*map(verdict.graph.waiters, verdict.ranks)) - set(verdict.ranks)
    began = min((wait.operation.created_ns for rank in waiters for wait in verdict.graph.waits[rank]), default=0)
    verb, whom = "waits" if len(waiters) == 1 else "wait", "it" if len(verdict.ranks) == 1 else "them"
    since = f" since {instant(began)}" if instant(began) else ""
    return f"; {ranks_title(waiters)} {verb} for {whom}{since}." if waiters else "."


def _without_operation(verdict: Verdict) -> str:
    if verdict.kind == "not yet":
        return _not_yet(verdict, None)
    if verdict.kind == OWN_CODE:
        is_slow = verdict.outcome == SLOW_WORK
        clause = _slow_work(verdict).removesuffix(".") if is_slow else enumeration(activity_clauses(verdict))
        return f"{clause}{step_clause(verdict)}."
    if verdict.kind == "went on":
        return f"no rank waits any more: {ranks_title(verdict.ranks)} completed the step that lasted long."
    if verdict.graph.job.outdated:
        who = ranks_title(verdict.graph.job.outdated)
        return f"nothing is open, but the others ended collectives, or gave them up, which the dump of {who} lacks."
    if verdict.outcome == CANNOT_TELL:
        return f"nothing is open in the dumps that can be read, and there is none of {ranks_title(verdict.ranks)}."
    where = "".join(f"; {clause}" for clause in activity_clauses(verdict))
    return f"nothing recorded is open: no rank waits for another one in a collective{where}."


_SENTENCES: dict[str, Callable[[Verdict, Operation], str]] = {
    "slow work": _slow_work,
    "absent": _absent,
    "several absent": _several_absent,
    "most absent": _most_absent,
    "no dump": _no_dump,
    "not yet": _not_yet,
    "ring": _ring,
    "order": _order,
    "not begun": _not_begun,
    "not finished": _not_finished,
    "all there": _all_there,
    "members": _members,
}
