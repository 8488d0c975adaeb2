"""In a cycle of ranks that call operations in different orders: who departs from its own earlier order."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import pairwise

from .job import Rank
from .operations import Operation
from .waits import WaitGraph

_FEWEST = 2  # intervals that make an order


def waits_of_cycle(graph: WaitGraph, cycle: Sequence[int]) -> list[Operation]:
    """The operation in which each rank of a cycle waits for the next one."""
    pairs = zip(cycle, (*cycle[1:], cycle[0]), strict=True)
    return [next(wait.operation for wait in graph.waits[rank] if other in wait.missing) for rank, other in pairs]


def departing_ranks(graph: WaitGraph, cycle: Sequence[int]) -> list[int]:
    """The ranks of a cycle that did not call what the one before waits for, although they always did at that point."""
    operations = waits_of_cycle(graph, cycle)
    before = (operations[-1], *operations[:-1])
    states = graph.job.ranks
    return [r for r, own, other in zip(cycle, operations, before, strict=True) if _departs(states[r], own, other)]


def _departs(state: Rank, own: Operation, other: Operation) -> bool:
    """Whether a rank called a group less often than always before, between its last two operations of its own group."""
    if own.is_p2p or other.is_p2p or own.group == other.group:
        return False
    marks = [operation.record_id for seq, operation in sorted(state.by_group[own.group].items()) if seq <= own.seq]
    calls = sorted(operation.record_id for operation in state.by_group.get(other.group, {}).values())
    counts = [bisect(calls, b) - bisect(calls, a) for a, b in pairwise(marks)]
    return len(counts) > _FEWEST and len(set(counts[:-1])) == 1 and counts[-1] < counts[0]
