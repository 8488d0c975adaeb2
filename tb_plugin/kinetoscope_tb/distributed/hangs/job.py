"""All ranks of a job side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ...reader.flight_recorder.files import DumpFolder, lost_ranks
from ...reader.flight_recorder.schema import Dump
from .groups import Group, entries_with_groups, groups_of_entries, ranks_of_world
from .operations import Operation, operations
from .slow_work import SlowWork, slow_work

FIRST_SEQ = 1
_TOUCH_S = 4.0  # a journal is written every two seconds
_PATIENCE_NS = 8_000_000_000


@dataclass(frozen=True)
class Rank:
    """What a rank issued, as far as its ring still has it.

    Args:
        dump: Its dump.
        operations: In the order in which they were issued.
    """

    dump: Dump
    operations: tuple[Operation, ...]

    @cached_property
    def by_group(self) -> Mapping[Group, Mapping[int, Operation]]:
        """The collectives of each group by their number."""
        groups: dict[Group, dict[int, Operation]] = {}
        for operation in self.operations:
            if not operation.is_p2p:
                groups.setdefault(operation.group, {})[operation.seq] = operation
        return groups

    @cached_property
    def open(self) -> tuple[Operation, ...]:
        """What has not ended, in order."""
        return tuple(operation for operation in self.operations if not operation.is_complete)

    @property
    def has_wrapped(self) -> bool:
        """Whether its ring lost the first entries."""
        return bool(self.dump.entries) and self.dump.entries[0].record_id > 0

    @cached_property
    def is_whole(self) -> bool:
        """Whether everything since the start is there: the ring did not wrap and was not reset."""
        first = {group: min(collectives) for group, collectives in self.by_group.items()}
        is_unused = not self.operations and bool(self.dump.last_enqueued)
        return (
            not self.has_wrapped
            and not is_unused
            and not self.dump.unreadable
            and all(seq <= FIRST_SEQ for seq in first.values())
        )

    def has_issued(self, group: Group, seq: int) -> bool | None:
        """Whether it issued a collective, whether or not its ring still has it; None if that is unknown.

        Numbers in a group grow by one, and the ring keeps the newest entries: a rank with any entry of the group that
        is newer than a number issued that too.
        """
        collectives = self.by_group.get(group)
        if collectives and max(collectives) >= seq:
            return True
        counts = self._last_enqueued(group)
        if counts and min(counts) >= seq:
            return True
        if collectives or self.is_whole or (counts and max(counts) < seq):
            return None if self.dump.unreadable and not (counts and max(counts) < seq) else False
        return None

    def _last_enqueued(self, group: Group) -> list[int]:
        """The numbers of collectives that `pg_status` may mean for a group: its own, or all that no entry claims.

        NCCL's status counts sends and receives too, so where a group has these it tells nothing.
        """
        ids = {operation.entries[0].group_id: operation.group for operation in self.operations}
        has_p2p = {operation.group for operation in self.operations if operation.is_p2p}
        if group in has_p2p:
            return []
        own = [seq for number, seq in self.dump.last_enqueued.items() if ids.get(number) == group]
        return own or [seq for number, seq in self.dump.last_enqueued.items() if number not in ids]


@dataclass(frozen=True)
class Job:
    """The ranks of a job.

    Args:
        ranks: Those with a dump that counts.
        outdated: Those whose dump is older than what others did with them since.
        lost: Those with a dump that can't be read.
        silent: Those without a dump, or with a report of an earlier step only.
        went_on: Those of `outdated` that completed the step of their dump, according to the run's journals.
        slow_work: What ranks do for which others wait in a healthy job, too.
        pending: Those that live and will write, since others wrote only some seconds ago.
    """

    ranks: Mapping[int, Rank]
    outdated: Mapping[int, Rank] = field(default_factory=dict)
    lost: frozenset[int] = frozenset()
    silent: frozenset[int] = frozenset()
    went_on: frozenset[int] = frozenset()
    slow_work: Mapping[int, SlowWork] = field(default_factory=dict)
    pending: frozenset[int] = frozenset()

    def calls(self, group: Group, seq: int) -> dict[int, Operation]:
        """A collective as the members issued it whose rings still have it, by rank."""
        states = {rank: state.by_group.get(group, {}) for rank, state in self.ranks.items()}
        return {rank: collectives[seq] for rank, collectives in states.items() if seq in collectives}

    @cached_property
    def backends(self) -> frozenset[str]:
        """Such as nccl and gloo."""
        return frozenset(entry.backend for state in self.ranks.values() for entry in state.dump.entries)

    @cached_property
    def waiting_ranks(self) -> tuple[int, ...]:
        """The ranks with an operation that has not ended."""
        return tuple(rank for rank, state in self.ranks.items() if state.open)


def job_of(folder: DumpFolder) -> Job:
    """The ranks of a folder of dumps."""
    unreadable = frozenset(lost_ranks(folder.problems, folder.dumps))
    sizes = [dump.report.world_size for dump in folder.dumps if dump.report]
    world = ranks_of_world(folder.dumps, unreadable | {size - 1 for size in sizes})
    groups, went_on = groups_of_entries(folder.dumps, world), ranks_that_went_on(folder)
    without_report = ranks_without_current_report(folder, went_on)
    went_on -= without_report
    ranks = {
        dump.rank: Rank(dump, tuple(operations(dump.rank, entries_with_groups(dump, groups))))
        for dump in folder.dumps
        if dump.rank not in without_report
    }
    old = went_on.union(outdated_ranks({rank: state for rank, state in ranks.items() if rank not in went_on}))
    current = {rank: state for rank, state in ranks.items() if rank not in old}
    silent = frozenset(world) - unreadable - ranks.keys()
    old_states = {rank: ranks[rank] for rank in sorted(old)}
    pending = frozenset(pending_ranks(folder)) & silent
    return Job(current, old_states, unreadable, silent, went_on, slow_work_of_ranks(folder), pending)


def pending_ranks(folder: DumpFolder) -> Iterator[int]:
    """The ranks that write their journals, so that they can write a report, too, while others wrote one just now.

    Ranks look for long steps once a second, and their steps begin at different times.
    """
    newest_ns = max((dump.report.written_ns for dump in folder.dumps if dump.report), default=0)
    for status in folder.statuses:
        now_ns = status.written_ns + round(status.age_s * 1e9)
        is_alive = status.state == "running" and not status.is_stopped and status.age_s <= _TOUCH_S
        if is_alive and now_ns - newest_ns < _PATIENCE_NS:
            yield status.rank


def slow_work_of_ranks(folder: DumpFolder) -> dict[int, SlowWork]:
    """The slow work of each rank that does some."""
    statuses = {status.rank: status for status in folder.statuses}
    reports = {dump.rank: dump.report for dump in folder.dumps if dump.report}
    return {rank: work for rank, report in reports.items() if (work := slow_work(report, statuses.get(rank)))}


def ranks_that_went_on(folder: DumpFolder) -> frozenset[int]:
    """The ranks that completed the step in which they wrote their dump, or the whole training: it was only slow."""
    steps = {dump.rank: dump.report.step for dump in folder.dumps if dump.report}
    statuses = [status for status in folder.statuses if status.rank in steps]
    return frozenset(
        status.rank
        for status in statuses
        if (status.completed or 0) > steps[status.rank] or (status.state, status.reason) == ("ended", "end")
    )


def ranks_without_current_report(folder: DumpFolder, went_on: frozenset[int]) -> frozenset[int]:
    """The ranks whose report is of an earlier slow step, and that have not completed the step that others are in."""
    steps = [dump.report.step for dump in folder.dumps if dump.report and dump.rank not in went_on]
    current_step = max(steps, default=-1)
    return frozenset(s.rank for s in folder.statuses if s.rank in went_on and (s.completed or 0) <= current_step)


def outdated_ranks(ranks: Mapping[int, Rank]) -> list[int]:
    """Ranks that must have gone on after their dump: another one completed a collective that waits for all members.

    Then the rank's own dump lacks it, or has an earlier one of the group open.
    """
    newest: dict[Group, int] = {}
    for state in ranks.values():
        for group, collectives in state.by_group.items():
            seqs = [seq for seq, operation in collectives.items() if operation.is_complete and operation.waits_for_all]
            newest[group] = max([newest.get(group, 0), *seqs])
    return [rank for rank, state in ranks.items() if any(_is_before(state, rank, *item) for item in newest.items())]


def _is_before(state: Rank, rank: int, group: Group, seq: int) -> bool:
    if rank not in group.ranks or not seq:
        return False
    collectives: Mapping[int, Operation] = state.by_group.get(group, {})
    is_behind = any(not operation.is_complete and number < seq for number, operation in collectives.items())
    return is_behind or state.has_issued(group, seq) is False
