"""Process groups. A name alone doesn't tell a group: ranks that are split apart may give theirs the same one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...reader.flight_recorder.schema import Dump, Entry

WORLD = "default_pg"
_MOST_RANKS = 1 << 17
_NO_DESCRIPTION = ("", "undefined")


@dataclass(frozen=True, eq=False)
class Group:
    """A process group; there is one object of each.

    Args:
        name: Its name.
        description: What it is for; may be empty.
        ranks: Its members, in the order of their ranks within the group.
        is_exact: Whether a dump names the members. gloo doesn't record them: then these are the ranks that used it, or
            of the default group all ranks of which something is known.
    """

    name: str
    description: str
    ranks: tuple[int, ...]
    is_exact: bool

    @property
    def label(self) -> str:
        """What people call it."""
        return f"group {self.name}" if self.description in _NO_DESCRIPTION else self.description

    def rank_of(self, rank_in_group: int) -> int | None:
        """The global rank of a member; None if the order of the members isn't known."""
        is_known = (self.is_exact or self.description == WORLD) and rank_in_group < len(self.ranks)
        return self.ranks[rank_in_group] if is_known else None


def groups_of_entries(dumps: Sequence[Dump], world: tuple[int, ...]) -> Mapping[tuple[int, str, str], Group]:
    """The group of each (rank, name, description).

    Args:
        dumps: The dumps of a job.
        world: All ranks of the job.
    """
    keys: dict[tuple[str, str], set[int]] = {}
    for dump in dumps:
        for entry in dump.entries:
            keys.setdefault((entry.group, entry.description), set()).add(dump.rank)
    groups = {}
    for (name, description), users in keys.items():
        by_use = Group(name, description, world if description == WORLD else tuple(sorted(users)), is_exact=False)
        with_members = [dump for dump in dumps if dump.rank in users and dump.rank in dump.groups.get(name, ())]
        exact = {dump.rank: dump.groups[name] for dump in with_members}
        by_ranks = {ranks: Group(name, description, ranks, is_exact=True) for ranks in set(exact.values())}
        for rank in users:
            ranks = exact.get(rank) or next((ranks for ranks in by_ranks if rank in ranks), ())
            groups[rank, name, description] = by_ranks.get(ranks, by_use)
    return groups


def ranks_of_world(dumps: Sequence[Dump], others: Iterable[int]) -> tuple[int, ...]:
    """All ranks of a job: up to the highest of which anything is known.

    Args:
        dumps: Its dumps.
        others: Ranks without one, as far as they are known.
    """
    ranks = {dump.rank for dump in dumps} | set(others)
    ranks |= {rank for dump in dumps for members in dump.groups.values() for rank in members}
    highest = max(ranks, default=-1)
    return tuple(range(highest + 1)) if highest < _MOST_RANKS else tuple(sorted(ranks))


def entries_with_groups(dump: Dump, groups: Mapping[tuple[int, str, str], Group]) -> Iterable[tuple[Group, Entry]]:
    """Each entry of a dump with its group."""
    return ((groups[dump.rank, entry.group, entry.description], entry) for entry in dump.entries)
