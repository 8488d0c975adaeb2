"""The values of a dump → `Dump`: torch 2.4 to 2.15, pickle and JSON alike.

Source: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp. JSON writes the numbers of
`pg_status` as texts, 0 for a time that isn't known, and leaves out `entries` if there are none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

KEYS = ("version", "pg_status", "pg_config", "entries")
NOT_A_DUMP = "it isn't a dump of torch's flight recorder"
_WORD, _MOST_DIGITS, _MOST_DIMENSIONS, _LARGEST = 200, 19, 64, 1 << 63
_LIBRARY = ("/torch/", "/site-packages/", "/dist-packages/", "\\torch\\", "\\site-packages\\", "<frozen ")


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
        groups: The ranks of each process group by its name; those of gloo aren't recorded.
        last_enqueued: The last collective that was issued, by the number of the group in this process.
        entries: Oldest first.
        unreadable: Entries that can't be read.
    """

    rank: int
    path: str
    version: str
    groups: Mapping[str, tuple[int, ...]]
    last_enqueued: Mapping[int, int]
    entries: tuple[Entry, ...]
    unreadable: int = 0


def parse_dump(value: object, rank: int, path: str) -> Dump:
    """The dump that a value of JSON or of a pickle stands for. An entry that can't be read is counted.

    Raises:
        DumpError: It isn't a dump.
    """
    if not isinstance(value, dict) or sum(key in value for key in KEYS) < 2:
        raise DumpError(NOT_A_DUMP)
    items = value.get("entries", [])
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise DumpError("its entries aren't a list")
    entries = [entry for item in items if (entry := _entry(item)) is not None]
    entries.sort(key=lambda entry: entry.record_id)
    groups, last_enqueued = _groups(value.get("pg_config")), _last_enqueued(value.get("pg_status"))
    version = _text(value.get("version"))
    return Dump(rank, path, version, groups, last_enqueued, tuple(entries), len(items) - len(entries))


def _entry(item: object) -> Entry | None:
    """None if it lacks what tells which operation it is."""
    if not isinstance(item, dict):
        return None
    is_p2p = item.get("is_p2p") is True
    seq = _integer(item.get("p2p_seq_id" if is_p2p else "collective_seq_id"))
    record_id, name, group = _integer(item.get("record_id")), _text(item.get("profiling_name")), _group(item)
    if seq is None or record_id is None or not name or group is None:
        return None
    is_complete = item.get("state") == "completed" or _is_time(item.get("time_discovered_completed_ns"))
    # torch 2.13 never sets the state of gloo's operations. NCCL's watchdog also retires what timed out.
    is_retired = item.get("retired") is True and name.startswith("gloo:")
    return Entry(
        record_id,
        *group,
        _integer(item.get("pg_id")) or 0,
        seq,
        name,
        _integer(item.get("time_created_ns")) or 0,
        _sizes(item.get("input_sizes")),
        _sizes(item.get("output_sizes")),
        _texts(item.get("input_dtypes")),
        _texts(item.get("output_dtypes")),
        is_started=item.get("state") == "started" or is_complete or _is_time(item.get("time_discovered_started_ns")),
        is_complete=is_complete or is_retired,
        is_p2p=is_p2p,
        line=_line(item.get("frames")),
    )


def _group(item: Mapping[object, object]) -> tuple[str, str] | None:
    """(name, description)."""
    group = item.get("process_group")
    if isinstance(group, list | tuple) and group and all(isinstance(part, str) for part in group[:2]):
        return _text(group[0]), _text(group[1]) if len(group) > 1 else ""
    return None


def _integer(value: object) -> int | None:
    """A number, or a text of one, of 64 bits."""
    if isinstance(value, str) and len(value) <= _MOST_DIGITS + 1 and value.removeprefix("-").isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -_LARGEST <= value < _LARGEST:
        return None
    return value


def _is_time(value: object) -> bool:
    return (_integer(value) or 0) > 0


def _text(value: object) -> str:
    return value[:_WORD] if isinstance(value, str) else ""


def _texts(values: object) -> tuple[str, ...]:
    return tuple(map(_text, values)) if isinstance(values, list | tuple) else ()


def _sizes(tensors: object) -> tuple[int, ...]:
    """Elements of each tensor; -1 where its dimensions can't be read."""
    return tuple(map(_elements, tensors)) if isinstance(tensors, list | tuple) else ()


def _elements(dimensions: object) -> int:
    if not isinstance(dimensions, list | tuple) or len(dimensions) > _MOST_DIMENSIONS:
        return -1
    numbers = [_integer(dimension) for dimension in dimensions]
    return -1 if None in numbers else min(math.prod(n for n in numbers if n is not None), _LARGEST)


def _line(frames: object) -> str:
    """Where user code called; the innermost frame comes first."""
    for frame in frames if isinstance(frames, list | tuple) else ():
        name, number = (frame.get("filename"), _integer(frame.get("line"))) if isinstance(frame, dict) else ("", None)
        if isinstance(name, str) and name and number is not None and not any(part in name for part in _LIBRARY):
            return f"{name[-_WORD:]}:{number}"
    return ""


def _groups(config: object) -> dict[str, tuple[int, ...]]:
    """The ranks of each group by its name; gloo's recorder has one group without a name and without ranks."""
    groups = {}
    for key, group in config.items() if isinstance(config, dict) else ():
        if isinstance(group, dict) and (ranks := _ranks(group.get("ranks"))):
            groups[_text(group.get("name")) or _text(key)] = ranks
    return groups


def _ranks(value: object) -> tuple[int, ...]:
    """The ranks of a list, or of a text such as "[0, 1]"."""
    parts: Sequence[Any] = value if isinstance(value, list | tuple) else ()
    if isinstance(value, str):
        parts = [part.strip() for part in value.strip("[] ").split(",")]
    ranks = [_integer(part) for part in parts]
    return tuple(rank for rank in ranks if rank is not None) if all(r is not None and r >= 0 for r in ranks) else ()


def _last_enqueued(status: object) -> dict[int, int]:
    last_enqueued = {}
    for key, group in status.items() if isinstance(status, dict) else ():
        number, seq = (
            _integer(key),
            _integer(group.get("last_enqueued_collective")) if isinstance(group, dict) else None,
        )
        if number is not None and seq is not None:
            last_enqueued[number] = seq
    return last_enqueued
