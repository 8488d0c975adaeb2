"""The values of a dump → `Dump`: torch 2.4 to 2.15, pickle and JSON alike.

Source: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp. JSON writes the numbers of
`pg_status` as texts, 0 for a time that isn't known, and leaves out `entries` if there are none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .hang_report import END, KEY, HangReport, hang_report
from .values import integer, is_library, source_line, text, text_list

KEYS = ("version", "pg_status", "pg_config", "entries")
NOT_A_DUMP = "it isn't a dump of torch's flight recorder"
_MOST_DIMENSIONS, _LARGEST, _MOST_RANKS = 64, 1 << 63, 1 << 20
_WORLD = ("0", "default_pg")


class DumpError(ValueError):
    """A value that isn't a dump of the flight recorder, with the reason."""


@dataclass(frozen=True)
class Entry:
    """A collective, a send or a receive that a rank issued.

    Args:
        record_id: Its number among all entries of the process.
        group: The name of its process group.
        description: What the group is for, such as default_pg; may be empty.
        group_id: The number of the group in this process alone.
        seq: Its number among the collectives of the group, or among the sends and receives if `is_p2p`.
        name: Such as nccl:all_reduce or nccl:send 1->2.
        created_ns: When it was issued, in ns since 1970; 0 if that isn't known.
        in_sizes: Elements of each input.
        out_sizes: Elements of each output.
        in_dtypes: Types of the inputs, as torch names them.
        out_dtypes: Types of the outputs.
        is_started: Whether the device began it; gloo never says so.
        is_complete: Whether it ended.
        is_p2p: Whether it is a send or a receive, or a batch of these.
        line: The innermost frame outside of torch, as file:line; empty without stacks.
    """

    record_id: int
    group: str
    description: str
    group_id: int
    seq: int
    name: str
    created_ns: int
    in_sizes: tuple[int, ...]
    out_sizes: tuple[int, ...]
    in_dtypes: tuple[str, ...]
    out_dtypes: tuple[str, ...]
    is_started: bool
    is_complete: bool
    is_p2p: bool
    line: str = ""

    @property
    def backend(self) -> str:
        """Such as nccl or gloo."""
        return self.name.partition(":")[0]


@dataclass(frozen=True)
class Dump:
    """What one rank's recorder held.

    Args:
        rank: The rank, from the file's name.
        path: The file.
        version: The version of the format, such as 2.10.
        groups: The ranks of each process group by its name; of those of gloo, `Tracer` alone writes them.
        last_enqueued: The last collective that was issued, by the number of the group in this process.
        entries: Oldest first.
        unreadable: Entries that can't be read.
        report: What `Tracer` added; None without.
    """

    rank: int
    path: str
    version: str
    groups: Mapping[str, tuple[int, ...]]
    last_enqueued: Mapping[int, int]
    entries: tuple[Entry, ...]
    unreadable: int = 0
    report: HangReport | None = None


def parse_dump(value: object, rank: int, path: str) -> Dump:
    """The dump that a value of JSON or of a pickle stands for. An entry that can't be read is counted.

    Raises:
        DumpError: It isn't a dump.
    """
    report = hang_report(value.get(KEY)) if isinstance(value, dict) else None
    if not isinstance(value, dict) or (report is None and sum(key in value for key in KEYS) < 2):
        raise DumpError(NOT_A_DUMP)
    items = value.get("entries", [])
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise DumpError("its entries aren't a list")
    entries = [entry for item in items if (entry := _entry(item)) is not None]
    entries.sort(key=lambda entry: entry.record_id)
    groups = {**_groups(value.get("pg_config")), **_groups_of_report(value.get(KEY))}
    last_enqueued = _last_enqueued(value.get("pg_status"))
    version, unreadable = text(value.get("version")), len(items) - len(entries)
    entries += _message_entries(rank, entries, report)
    if report is not None and report.reason == END and entries:
        entries[-1] = replace(entries[-1], is_complete=False)  # gloo's that failed looks like one that completed
    return Dump(rank, path, version, groups, last_enqueued, tuple(entries), unreadable, report)


def _message_entries(rank: int, entries: Sequence[Entry], report: HangReport | None) -> list[Entry]:
    """The send or receive that the stack of a rank is in, where the recorder lacks it: gloo's."""
    if report is None or report.message is None or any(entry.is_p2p and not entry.is_complete for entry in entries):
        return []
    (operation, peer), activity = report.message, report.activity
    arrow, backend = "->" if operation == "send" else "<-", entries[-1].backend if entries else "gloo"
    group = next(((e.group, e.description) for e in entries if e.description == _WORLD[1]), _WORLD)
    began_ns = report.written_ns - round((activity.seconds if activity else 0) * 1e9)
    return [
        Entry(
            record_id=max((entry.record_id for entry in entries), default=-1) + 1,
            group=group[0],
            description=group[1],
            group_id=-1,
            seq=1,
            name=f"{backend}:{operation}" + ("" if peer is None else f" {rank}{arrow}{peer}"),
            created_ns=began_ns,
            in_sizes=(),
            out_sizes=(),
            in_dtypes=(),
            out_dtypes=(),
            is_started=True,
            is_complete=False,
            is_p2p=True,
            line=source_line(activity.file, activity.line) if activity else "",
        )
    ]


def _entry(item: object) -> Entry | None:
    """None if it lacks what tells which operation it is."""
    if not isinstance(item, dict):
        return None
    is_p2p = item.get("is_p2p") is True
    seq = integer(item.get("p2p_seq_id" if is_p2p else "collective_seq_id"))
    record_id, name, group = integer(item.get("record_id")), text(item.get("profiling_name")), _group(item)
    if seq is None or record_id is None or not name or group is None:
        return None
    is_complete = item.get("state") == "completed" or _is_time(item.get("time_discovered_completed_ns"))
    # torch 2.13 never sets the state of gloo's operations. NCCL's watchdog also retires what timed out.
    is_retired = item.get("retired") is True and name.startswith("gloo:")
    return Entry(
        record_id,
        *group,
        integer(item.get("pg_id")) or 0,
        seq,
        name,
        integer(item.get("time_created_ns")) or 0,
        _sizes(item.get("input_sizes")),
        _sizes(item.get("output_sizes")),
        text_list(item.get("input_dtypes")),
        text_list(item.get("output_dtypes")),
        is_started=item.get("state") == "started" or is_complete or _is_time(item.get("time_discovered_started_ns")),
        is_complete=is_complete or is_retired,
        is_p2p=is_p2p,
        line=_line(item.get("frames")),
    )


def _group(item: Mapping[object, object]) -> tuple[str, str] | None:
    """(name, description)."""
    group = item.get("process_group")
    if isinstance(group, list | tuple) and group and all(isinstance(part, str) for part in group[:2]):
        return text(group[0]), text(group[1]) if len(group) > 1 else ""
    return None


def _is_time(value: object) -> bool:
    return (integer(value) or 0) > 0


def _sizes(tensors: object) -> tuple[int, ...]:
    """Elements of each tensor; -1 where its dimensions can't be read."""
    return tuple(map(_elements, tensors)) if isinstance(tensors, list | tuple) else ()


def _elements(dimensions: object) -> int:
    if not isinstance(dimensions, list | tuple) or len(dimensions) > _MOST_DIMENSIONS:
        return -1
    numbers = [integer(dimension) for dimension in dimensions]
    return -1 if None in numbers else min(math.prod(n for n in numbers if n is not None), _LARGEST)


def _line(frames: object) -> str:
    """Where user code called; the innermost frame comes first."""
    for frame in frames if isinstance(frames, list | tuple) else ():
        name, number = (frame.get("filename"), integer(frame.get("line"))) if isinstance(frame, dict) else ("", None)
        if isinstance(name, str) and name and number is not None and not is_library(name):
            return source_line(name, number)
    return ""


def _groups(config: object) -> dict[str, tuple[int, ...]]:
    """The ranks of each group by its name; gloo's recorder has one group without a name and without ranks."""
    groups = {}
    for key, group in config.items() if isinstance(config, dict) else ():
        if isinstance(group, dict) and (ranks := _ranks(group.get("ranks"))):
            groups[text(group.get("name")) or text(key)] = ranks
    return groups


def _groups_of_report(report: object) -> dict[str, tuple[int, ...]]:
    """The ranks of each group by its name, as `Tracer` wrote them."""
    groups = report.get("groups") if isinstance(report, dict) else None
    items = groups.items() if isinstance(groups, dict) else ()
    return {text(name): members for name, value in items if (members := _ranks(value))}


def _ranks(value: object) -> tuple[int, ...]:
    """The ranks of a list, or of a text such as "[0, 1]"; none if one isn't valid.

    torch 2.13 writes numbers without a meaning for groups that gloo has split.
    """
    parts: Sequence[Any] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, str):
        parts = [part.strip() for part in value.strip("[] ").split(",")]
    ranks = [integer(part) for part in parts]
    valid_ranks = tuple(rank for rank in ranks if rank is not None and 0 <= rank < _MOST_RANKS)
    return valid_ranks if len(valid_ranks) == len(ranks) else ()


def _last_enqueued(status: object) -> dict[int, int]:
    last_enqueued = {}
    for key, group in status.items() if isinstance(status, dict) else ():
        number, seq = (
            integer(key),
            integer(group.get("last_enqueued_collective")) if isinstance(group, dict) else None,
        )
        if number is not None and seq is not None:
            last_enqueued[number] = seq
    return last_enqueued
