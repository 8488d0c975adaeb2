"""A folder → the dumps in it, one of each rank.

torch names a dump by a prefix and the rank: TORCH_FR_DUMP_TEMP_FILE, and before TORCH_NCCL_DEBUG_INFO_TEMP_FILE. Some
add the host: nccl_trace_rank_HOST_RANK.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

from kinetoscope.journal.ending import Ending
from kinetoscope.journal.journal import journal_file
from kinetoscope.journal.status import RankStatus, last_steps
from kinetoscope.output.ring import LastMinutes, last_minutes, minutes_of_steps, ring_file

from ...discovery.jobs import states_of_ranks
from ...errors import LogdirError, TraceError
from ...filesystem import Entry as File
from ...filesystem import entry_at, exists, folders, is_url, names_in, printable, stored_bytes
from ...names.regex import regex
from ..pickles.machine import PROTOCOL, PickleError
from ..pickles.plain import plain_value
from . import error_files
from .hang_report import END, FOLDER, KEY
from .schema import KEYS, NOT_A_DUMP, Dump, DumpError, parse_dump

MOST_BYTES = 1 << 26
MOST_FILES = 1 << 14
_ENDING = r"(?:\.(?:json|pickle|pkl|bin|dump|txt))?$"
_RANK_AT_END = regex(rf"(?<![\d.])(\d{{1,7}}){_ENDING}", 2)
_RANK_IN_NAME = regex(r"rank[-_]?(\d{1,7})(?!\d)", 2)
TORCH_NAME = "trace_rank"  # of the files that torch names by itself
_HEAD = 1 << 12
_OTHER_ATTEMPT = "it is of an earlier attempt or of another machine, whose files `why` reads one at a time"
_BINS, _LAST_STEPS = 1 << 10, 16

Value = TypeVar("Value")


class ParseFile(Protocol):
    """A function that gives the value of a file, as `ParsedFiles` of the engine does without parsing it again."""

    def __call__(self, path: str, parse: Callable[[], Value], /) -> Value:
        """The value that `parse` makes of a file."""


def _always(_path: str, parse: Callable[[], Value], /) -> Value:
    return parse()


@dataclass(frozen=True)
class Problem:
    """A file that isn't used, or not wholly, and why.

    Args:
        path: The file.
        rank: The rank that its name has.
        reason: What is wrong, as a clause.
        is_lost: Whether nothing of it is used.
    """

    path: str
    rank: int
    reason: str
    is_lost: bool = True


@dataclass(frozen=True)
class DumpFolder:
    """The dumps of a job.

    Args:
        dumps: By rank.
        problems: What isn't used.
        statuses: The state of each rank, if it is a run that `Tracer` records.
        minutes: The last minutes of each rank that left them.
        ends: What ranks that ended badly wrote then, by rank.
    """

    dumps: tuple[Dump, ...]
    problems: tuple[Problem, ...] = ()
    statuses: tuple[RankStatus, ...] = ()
    minutes: Mapping[int, LastMinutes] = field(default_factory=dict)
    ends: tuple[Dump, ...] = ()


def rank_in_name(name: str) -> int | None:
    """The rank that the name of a dump ends with, or that it has behind the word rank; None if it has none."""
    match = _RANK_AT_END.search(name) or _RANK_IN_NAME.search(name)
    return int(match[1]) if match else None


def read_folder(path: str, parse_file: ParseFile = _always) -> DumpFolder:
    """Every dump in a folder and the folders below it; of several dumps of a rank, the newest.

    Of a run that `Tracer` records, these are the files that it wrote while a step lasted too long.

    Args:
        path: The folder.
        parse_file: Gives the values of files; by default it parses each.

    Raises:
        LogdirError: There is no such folder, or neither a dump nor a journal of a rank in it.
    """
    has_reports = not is_url(path) and exists(str(Path(path, FOLDER)))
    statuses = () if is_url(path) else states_of_ranks(Path(path))
    files = [] if statuses and not has_reports else _files(str(Path(path, FOLDER)) if has_reports else path)
    dumps: dict[int, Dump] = {}
    ends: dict[int, Dump] = {}
    problems = []
    for file in files[:MOST_FILES]:
        rank = rank_in_name(file.name)
        if rank is None:
            continue
        try:
            dump = parse_file(file.path, partial(read_dump, file.path, rank))
        except (DumpError, TraceError) as error:
            reason = error.problem if isinstance(error, TraceError) else str(error)
            problems.append(Problem(file.path, rank, reason))
            continue
        if dump is not None and dump.report is not None and dump.report.reason == END:
            ends[rank] = dump
        elif dump is not None:
            problems += _conflict(dumps.get(rank), dump)
            dumps[rank] = max((dumps.get(rank, dump), dump), key=_newness)
        elif TORCH_NAME in file.name:
            problems.append(Problem(file.path, rank, NOT_A_DUMP))
    if len(files) > MOST_FILES:
        problems.append(Problem(path, -1, f"only the first {MOST_FILES} of its {len(files)} files are read"))
    if not statuses:
        statuses, more = _torchrun_statuses(path)
        problems += more
    if not dumps and not ends and not statuses:
        reasons = "".join(f"\n{printable(problem.path)}: {problem.reason}" for problem in problems[:8])
        raise LogdirError(
            f"{printable(path)} has no dump of torch's flight recorder that can be read, and no {error_files.NAME} of "
            f"torchrun, which ranks write whose main function has @record.{reasons}"
        )
    minutes = _minutes(path, statuses, parse_file)
    statuses = tuple(_with_last_step(status, minutes.get(status.rank)) for status in statuses)
    in_order, ends_in_order = (tuple(items[rank] for rank in sorted(items)) for items in (dumps, ends))
    return DumpFolder(in_order, (*problems, *_notes(dumps)), statuses, minutes, ends_in_order)


def _torchrun_statuses(path: str) -> tuple[tuple[RankStatus, ...], list[Problem]]:
    """The states of the ranks that left error files in the newest attempt of one machine, and the files of others."""
    if is_url(path) or entry_at(path) is not None:
        return (), []
    listing = folders(path, lambda name: name == error_files.NAME)
    attempts: dict[str, dict[int, Ending]] = {}
    for file in [file for folder in listing for file in folder.entries][:MOST_FILES]:
        numbers = error_files.attempt_and_rank(file.path)
        ending = error_files.ending_in(stored_bytes(file.path, 0, error_files.MOST_BYTES)) if numbers else None
        if numbers is not None and ending is not None:
            attempts.setdefault(str(Path(file.path).parents[1]), {})[numbers[1]] = ending
    if not attempts:
        return (), []
    newest = max(attempts, key=lambda attempt: max(ending.ns for ending in attempts[attempt].values()))
    others = [Problem(attempt, -1, _OTHER_ATTEMPT) for attempt in sorted(attempts) if attempt != newest]
    ranks = [int(name) for name in names_in(newest) if name.isdecimal() and len(name) < 6]
    return error_files.statuses_of(attempts[newest], 1 + max(ranks)), others


def _minutes(path: str, statuses: Sequence[RankStatus], parse_file: ParseFile) -> dict[int, LastMinutes]:
    by_rank = ((status.rank, _minutes_of(Path(path), status.rank, parse_file)) for status in statuses)
    return {rank: minutes for rank, minutes in by_rank if minutes.steps}


def _minutes_of(run: Path, rank: int, parse_file: ParseFile) -> LastMinutes:
    """What a rank left at its end or while it hung; its journal's steps if these are newer, as while it lives."""
    of_ring = parse_file(str(ring_file(run, rank)), lambda: _with_few_steps(last_minutes(run, rank) or LastMinutes()))
    of_journal = parse_file(
        str(journal_file(run, rank)), lambda: _with_few_steps(minutes_of_steps(last_steps(run, rank)))
    )
    is_newer = bool(of_journal.steps) and (not of_ring.steps or of_journal.steps[-1][2] > of_ring.steps[-1][2])
    return of_journal if is_newer else of_ring


def _with_few_steps(minutes: LastMinutes) -> LastMinutes:
    """The minutes with few enough steps for a thousand ranks: the slowest around each time, and the last ones."""
    steps = minutes.steps
    if len(steps) <= _BINS:
        return minutes
    begin_ns, end_ns = steps[0][2], max(steps[-1][2], steps[0][2] + 1)
    slowest: dict[int, int] = {}
    for nth, (_, start_ns, step_end_ns) in enumerate(steps):
        a_bin = (step_end_ns - begin_ns) * _BINS // (end_ns - begin_ns)
        if a_bin not in slowest or step_end_ns - start_ns > steps[slowest[a_bin]][2] - steps[slowest[a_bin]][1]:
            slowest[a_bin] = nth
    numbers = sorted({*slowest.values(), *range(len(steps) - _LAST_STEPS, len(steps))})
    return replace(minutes, steps=tuple(steps[nth] for nth in numbers))


def _with_last_step(status: RankStatus, minutes: LastMinutes | None) -> RankStatus:
    """The status of a rank that completed more steps than its journal, which lags by a second, says."""
    if minutes is None or not minutes.steps:
        return status
    return replace(status, completed=max(status.completed or 0, minutes.steps[-1][0] + 1))


def _files(path: str) -> list[File]:
    if not is_url(path) and not exists(path):
        raise LogdirError(f"There is no folder {printable(path)}.")
    if (file := entry_at(path)) is not None:
        return [file]
    listing = list(folders(path, lambda name: rank_in_name(name) is not None))
    if listing and listing[0].problem:
        raise LogdirError(f"{printable(path)} can't be listed: {listing[0].problem}.")
    return [file for folder in listing for file in folder.entries]


def read_dump(path: str, rank: int) -> Dump | None:
    """The dump in a file; None if it is another file, which its beginning says.

    Raises:
        DumpError: It is too large, or its values aren't those of a dump.
        TraceError: It can't be read.
    """
    data = stored_bytes(path, 0, _HEAD)
    if not _begins_dump(data):
        return None
    data = stored_bytes(path, 0, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise DumpError(f"it has more than {MOST_BYTES >> 20} MiB")
    dump = parse_dump(_value(data), rank, path)
    members = {rank for ranks in dump.groups.values() for rank in ranks}
    if members and rank not in members:
        raise DumpError(f"its name has rank {rank}, but its process groups don't")
    return dump


def _begins_dump(head: bytes) -> bool:
    """Whether it is a pickle or JSON with a key of a dump."""
    keys = (*KEYS, KEY, "comm_lib_version", "nccl_version", "nccl_comm_state")
    return (head[:1] == PROTOCOL or head.lstrip()[:1] == b"{") and any(key.encode() in head for key in keys)


def _value(data: bytes) -> Any:
    try:
        return plain_value(data) if data[:1] == PROTOCOL else json.loads(data)
    except PickleError as error:
        raise DumpError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise DumpError(f"it isn't JSON: {error}"[:200]) from error


def _newness(dump: Dump) -> tuple[int, int, bool]:
    """When `Tracer` wrote it, else the newest entry; then the number of entries, then whether it has stacks."""
    newest = max((entry.created_ns for entry in dump.entries), default=0)
    return (
        dump.report.written_ns if dump.report else newest,
        len(dump.entries),
        any(entry.line for entry in dump.entries),
    )


def _conflict(earlier: Dump | None, dump: Dump) -> list[Problem]:
    """What is left out where two files have the same rank; earlier steps, or a dump in two forms, are no problem."""
    if earlier is None or (earlier.report and dump.report) or _newness(earlier)[:2] == _newness(dump)[:2]:
        return []
    older, newer = sorted((earlier, dump), key=_newness)
    reason = f"{printable(newer.path)} is a newer dump of rank {dump.rank}"
    return [Problem(older.path, dump.rank, reason)]


def _notes(dumps: dict[int, Dump]) -> list[Problem]:
    return [
        Problem(dump.path, rank, f"{dump.unreadable} of its entries can't be read", is_lost=False)
        for rank, dump in sorted(dumps.items())
        if dump.unreadable
    ]


def lost_ranks(problems: Sequence[Problem], dumps: Sequence[Dump]) -> set[int]:
    """The ranks of which a file is there, but none can be read."""
    return {problem.rank for problem in problems if problem.is_lost} - {dump.rank for dump in dumps} - {-1}
