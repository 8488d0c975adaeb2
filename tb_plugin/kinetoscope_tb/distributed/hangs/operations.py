"""Entries of a dump → operations: a collective, a send, a receive, or a batch of these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from ...names.collectives import NOT_A_CALL, SYNCHRONIZING, UNKNOWN, kind_of
from ...names.regex import regex
from ...reader.flight_recorder.schema import Entry
from .groups import Group

RUNS_AT_ONCE = ("gloo",)
"""Backends that begin each operation when it is issued; on a device it waits for what its stream holds before."""

_PEERS = regex(r":(send|recv) (\d{1,7})(?:->|<-)(\d{1,7})")  # "send 1->2", "recv 3<-0": ranks within the group


@dataclass(frozen=True)
class Operation:
    """What one rank issued as one: entries of the same number. torch ends a batch with an entry `coalesced`.

    Args:
        rank: The rank.
        group: Its process group.
        seq: Its number in the group; sends and receives have numbers of their own.
        entries: The entries of the number, in order.
    """

    rank: int
    group: Group
    seq: int
    entries: tuple[Entry, ...]

    @property
    def is_p2p(self) -> bool:
        """Whether it consists of sends and receives."""
        return self.entries[0].is_p2p

    @property
    def record_id(self) -> int:
        """Its place in the order of the rank."""
        return self.entries[0].record_id

    @property
    def created_ns(self) -> int:
        """When it was issued; 0 if that isn't known."""
        return self.entries[0].created_ns

    @property
    def line(self) -> str:
        """Where user code issued it; empty without stacks."""
        return next((entry.line for entry in self.entries if entry.line), "")

    @cached_property
    def is_complete(self) -> bool:
        """Whether it ended. Of a batch only the last entry says so."""
        return any(entry.is_complete for entry in self.entries)

    @cached_property
    def is_running(self) -> bool:
        """Whether it needs nothing more of its own rank."""
        return any(entry.is_started or entry.backend in RUNS_AT_ONCE for entry in self.entries)

    @cached_property
    def calls(self) -> tuple[Entry, ...]:
        """The entries that move data."""
        calls = tuple(entry for entry in self.entries if not NOT_A_CALL.match(entry.name.partition(":")[2]))
        return calls or self.entries

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Of each call its kind, such as all_reduce; its name where that isn't known."""
        kinds = (kind_of(entry.name.partition(":")[2] or entry.name) for entry in self.calls)
        return tuple(kind if kind != UNKNOWN else e.name for kind, e in zip(kinds, self.calls, strict=True))

    @property
    def waits_for_all(self) -> bool:
        """Whether no rank can complete it before all have issued it."""
        return not self.is_p2p and all(kind in SYNCHRONIZING for kind in self.kinds)

    @cached_property
    def peers(self) -> tuple[tuple[str, int | None], ...]:
        """Of a send or receive (send or recv, the other rank; None if it can't be known)."""
        matches = (_PEERS.search(entry.name) for entry in self.calls)
        return tuple((match[1], self.group.rank_of(int(match[3]))) for match in matches if match)


def operations(rank: int, entries: Iterable[tuple[Group, Entry]]) -> list[Operation]:
    """The operations of a rank, in the order in which it issued them."""
    members: dict[tuple[Group, bool, int], list[Entry]] = {}
    for group, entry in entries:
        members.setdefault((group, entry.is_p2p, entry.seq), []).append(entry)
    all_operations = (Operation(rank, group, seq, tuple(items)) for (group, _, seq), items in members.items())
    return sorted(all_operations, key=lambda operation: operation.record_id)
