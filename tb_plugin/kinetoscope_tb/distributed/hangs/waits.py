"""The wait-for graph: rank → operation → ranks without which it can't complete.

A rank waits in its first open operation, and in others that already run. A member of a collective isn't there if it
did not issue the collective, or if its device has not come to it because an earlier operation is open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from .groups import Group
from .job import Job
from .operations import Operation


@dataclass(frozen=True)
class Wait:
    """An operation in which a rank waits.

    Args:
        operation: The operation, as the rank issued it.
        missing: Ranks of which it is known that they aren't there.
        unclear: Ranks of which nothing tells whether they are there.
    """

    operation: Operation
    missing: tuple[int, ...] = ()
    unclear: tuple[int, ...] = ()

    @property
    def is_blocked(self) -> bool:
        """Whether a rank lacks, or may lack."""
        return bool(self.missing or self.unclear)


@dataclass(frozen=True)
class WaitGraph:
    """Who waits for whom.

    Args:
        job: The ranks.
        waits: Of each waiting rank the operations in which it waits.
    """

    job: Job
    waits: Mapping[int, tuple[Wait, ...]]

    @cached_property
    def successors(self) -> dict[int, set[int]]:
        """Of each waiting rank those of which it is known that it waits for them."""
        return {rank: {other for wait in waits for other in wait.missing} for rank, waits in self.waits.items()}

    @cached_property
    def idle(self) -> tuple[int, ...]:
        """Sinks: ranks that others wait for, and that wait in nothing recorded."""
        others = set().union(*self.successors.values())
        return tuple(sorted(others - self.waits.keys()))

    @cached_property
    def unclear(self) -> tuple[int, ...]:
        """Ranks that others may wait for."""
        return tuple(sorted({rank for waits in self.waits.values() for wait in waits for rank in wait.unclear}))

    @cached_property
    def predecessors(self) -> dict[int, set[int]]:
        """Of each rank those that wait for it, or may wait for it."""
        predecessors: dict[int, set[int]] = {}
        for waiter, waits in self.waits.items():
            for other in {other for wait in waits for other in (*wait.missing, *wait.unclear)}:
                predecessors.setdefault(other, set()).add(waiter)
        return predecessors

    def waiters(self, rank: int) -> frozenset[int]:
        """The ranks that wait for a rank, also through others, or may wait for it."""
        ranks, stack = {rank}, [rank]
        while stack:
            new = self.predecessors.get(stack.pop(), set()) - ranks
            ranks |= new
            stack += new
        return frozenset(ranks - {rank})

    def closest_wait(self, ranks: frozenset[int] | set[int]) -> Wait:
        """The wait that says best where ranks are missing: for the fewest ranks, and of these the first."""
        waits = (w for waits in self.waits.values() for w in waits if ranks.intersection((*w.missing, *w.unclear)))
        return min(waits, key=lambda w: (len(w.missing) + len(w.unclear), w.operation.created_ns, w.operation.rank))


def wait_graph(job: Job) -> WaitGraph:
    """The graph of a job."""
    absent_ranks: dict[tuple[Group, int], Wait] = {}  # of a collective they are the same for all that wait
    waits: dict[int, tuple[Wait, ...]] = {}
    for rank in job.waiting_ranks:
        own = []
        for operation in _active(job, rank):
            if operation.is_p2p:
                own.append(_p2p_wait(job, operation))
                continue
            key = operation.group, operation.seq
            if key not in absent_ranks:
                absent_ranks[key] = _collective_wait(job, operation)
            own.append(_without(absent_ranks[key], operation))
        waits[rank] = tuple(own)
    return WaitGraph(job, waits)


def _without(wait: Wait, operation: Operation) -> Wait:
    """The wait of another rank in the same collective: no rank waits for itself."""
    missing = tuple(rank for rank in wait.missing if rank != operation.rank)
    return Wait(operation, missing, tuple(rank for rank in wait.unclear if rank != operation.rank))


def _active(job: Job, rank: int) -> Iterator[Operation]:
    """The first open operation, and the first of each group that runs already."""
    groups: set[tuple[Group, bool]] = set()
    for nth, operation in enumerate(job.ranks[rank].open):
        if (nth == 0 or operation.is_running) and (operation.group, operation.is_p2p) not in groups:
            groups.add((operation.group, operation.is_p2p))
            yield operation


def _collective_wait(job: Job, operation: Operation) -> Wait:
    there = {rank: _is_there(job, rank, operation) for rank in operation.group.ranks}
    if not operation.group.is_exact:  # a rank without a dump may belong to it
        there |= dict.fromkeys((job.silent | job.lost) - there.keys())
    missing = tuple(rank for rank, is_there in there.items() if is_there is False)
    return Wait(operation, missing, tuple(rank for rank, is_there in there.items() if is_there is None))


def _is_there(job: Job, rank: int, operation: Operation) -> bool | None:
    """Whether a member has come to a collective; None if nothing tells."""
    if (state := job.ranks.get(rank)) is None:
        return None
    if not (was_issued := state.has_issued(operation.group, operation.seq)):
        return was_issued
    own = state.by_group.get(operation.group, {}).get(operation.seq)
    return own is None or own.is_complete or own.is_running or own is state.open[0]


def _p2p_wait(job: Job, operation: Operation) -> Wait:
    missing, unclear = set(), set()
    for direction, peer in operation.peers:
        state = job.ranks.get(peer) if peer is not None else None
        if peer is not None and state is None:
            unclear.add(peer)
        elif peer is not None and state is not None and not _has_counterpart(state.open, operation, direction):
            missing.add(peer)
    return Wait(operation, tuple(sorted(missing)), tuple(sorted(unclear)))


def _has_counterpart(open_operations: tuple[Operation, ...], operation: Operation, direction: str) -> bool:
    """Whether a peer is in the receive of a send, or in the send of a receive."""
    counterpart = ("recv" if direction == "send" else "send", operation.rank)
    return any(
        other.group == operation.group and counterpart in other.peers and (nth == 0 or other.is_running)
        for nth, other in enumerate(open_operations)
    )
