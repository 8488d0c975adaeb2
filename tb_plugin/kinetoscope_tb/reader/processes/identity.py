"""What the processes of a file are called, and what the file says about each.

Tools that merge files show whose events are whose in different ways: SGLang's merger labels pids (`[TP01] 4711`),
TraceLens' TraceFuse adds `rank` to the arguments and moves pids, scripts name the process `Rank 1`. The metadata
outside of the events are those of the first file alone; devices may be those of all, one after the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...arrays.gather import NONE
from ...names.processes import UNRANKED, Process
from ...names.regex import regex
from ...names.roles import FRONTEND
from ...trace.meta import MOST_RANKS, Meta
from ..frames.metadata import Metadata
from ..scan.rows import SortedEvents
from ..scan.tokens import Texts
from .ownership import Owners, label_of

_AXES = regex(r"(?:(?:TP|DP|PP|EP|CP|DCP)\d{1,6}(?:-|$))+")
_AXIS = regex(r"([A-Z]+)0*(\d+)")
_RANK = regex(r"(?<![a-z])rank[-_ ]?(\d{1,7})(?!\d)", re.IGNORECASE)
_NAMES = ("process_name", "process_labels")
_OF_JOB = frozenset({"backend", "world_size", "options", "counters", "launcher", "torch_version", "cuda_version"})
"""Metadata of a process that hold for the others of its job."""
_LONGEST = 64  # characters of a name


@dataclass(frozen=True)
class Identity:
    """What is known about a process of a file.

    Args:
        process: Its name.
        rank: Its rank over the whole job, if the file says it.
    """

    process: Process
    rank: int | None = None


def identities(events: SortedEvents, texts: Texts, owners: Owners, outside: Metadata) -> list[Identity]:
    """The identity of each process, in the order of the file."""
    works = [owners.has_work(nth) for nth in range(len(owners.pids))]
    ranks = _ranks(events, texts, owners)
    home, rank_of_file = home_of_metadata(owners), rank_in(outside.top)
    if home is not None and ranks[home] is None and rank_of_file not in ranks:
        ranks[home] = rank_of_file
    ids = _distinct(owners.pids, [f"{pid} #{nth + 1}" for nth, pid in enumerate(owners.pids)])
    names = []
    for nth, pid in enumerate(owners.pids):
        label = label_of(pid)[0]
        is_rank = works[nth] or not any(works) or ranks[nth] is not None or label
        names.append(_name(label, ranks[nth], ids[nth]) if is_rank else FRONTEND)
    workers = _distinct(
        names, [f"{name} ({label_of(process_id)[1]})" for name, process_id in zip(names, ids, strict=True)]
    )
    processes = [Process(*pair) for pair in zip(ids, workers, strict=True)]
    return [Identity(*identity) for identity in zip(processes, ranks, strict=True)]


def home_of_metadata(owners: Owners) -> int | None:
    """The process that the metadata of the file are about: the first one that isn't a frontend; None if unknown."""
    if not owners.is_appended:
        return None
    return next((nth for nth in range(len(owners.pids)) if owners.has_work(nth)), 0)


def rank_in(top: Mapping[str, Any]) -> int | None:
    """The rank that metadata state."""
    return Meta(top).rank


def _name(label: str, rank: int | None, number: str) -> str:
    if _AXES.fullmatch(label):
        return "-".join(f"{axis}-{number}" for axis, number in _AXIS.findall(label))
    if rank is not None:
        return f"rank{rank}"
    return label[:_LONGEST] or f"{UNRANKED}{number}"[:_LONGEST]


def _distinct(names: Sequence[str], others: Sequence[str]) -> list[str]:
    """The names; others for those that are the same."""
    uses = Counter(names)
    return [name if uses[name] == 1 else other for name, other in zip(names, others, strict=True)]


def _ranks(events: SortedEvents, texts: Texts, owners: Owners) -> list[int | None]:
    """The rank of each process from its label, its name, its arguments or its collectives, in this order."""
    by_name, by_argument = _ranks_by_name(events, texts, owners), _ranks_by_argument(events, owners)
    ranks = []
    for nth, pid in enumerate(owners.pids):
        label = label_of(pid)[0]
        match = re.fullmatch(r"TP(\d{1,7})", label) or _RANK.search(label)
        number = int(match[1]) if match else by_name[nth]
        number = by_argument[nth] if number is None else number
        ranks.append(number if number is None or 0 <= number < MOST_RANKS else None)
    uses = Counter(ranks)
    return [rank if uses[rank] == 1 else None for rank in ranks]


def _ranks_by_name(events: SortedEvents, texts: Texts, owners: Owners) -> list[int | None]:
    """The ranks in the names and labels of the processes themselves."""
    ranks: list[int | None] = [None] * len(owners.pids)
    rows = events.frames["names"]
    columns = (rows[name].tolist() for name in ("name", "pid", "label"))
    for name, pid, label, owner in zip(*columns, owners.of_rows["names"].tolist(), strict=True):
        if owner < 0 or label == NONE or texts[name] not in _NAMES or texts[pid] != owners.pids[owner]:
            continue
        match = _RANK.search(texts[label] or "")
        if match:
            ranks[owner] = int(match[1])
    return ranks


def _ranks_by_argument(events: SortedEvents, owners: Owners) -> list[int | None]:
    """The rank that a merger wrote into every event of a process."""
    ranks: list[int | None] = []
    for nth in range(len(owners.pids)):
        values = [
            np.unique(events.frames[name]["merged_rank"][owners.of_rows[name] == nth])
            for name in ("host_events", "launches")
        ]
        distinct = np.unique(np.concatenate(values))
        ranks.append(int(distinct[0]) if distinct.size == 1 and distinct[0] >= 0 else None)
    return ranks


def own_pids(events: SortedEvents, texts: Texts) -> dict[str, str]:
    """What TraceFuse says of the pids of events before it moved them: by the pids that they have now."""
    pids = {}
    for name in ("host_events", "launches", "device_events"):
        rows = events.frames[name]
        is_said = rows["own_pid"] >= 0
        pairs = np.unique(np.stack([rows["pid"][is_said], rows["own_pid"][is_said]]), axis=1).T.tolist()
        pids.update({texts[pid] or "": texts[own] or "" for pid, own in pairs})
    return pids


def metadata_of(outside: Metadata, identity: Identity, *, is_home: bool, position: tuple[int, int] | None) -> Metadata:
    """The metadata of one process, from those of the file.

    Args:
        outside: Those of the file.
        identity: The process.
        is_home: Whether they are about this process.
        position: Which one it is in the file, and of how many; None if they don't follow one another.
    """
    top = dict(outside.top)
    if isinstance(top.get("deviceProperties"), list):
        top["deviceProperties"] = _devices(top["deviceProperties"], position)
    if not is_home:
        for key in ("kinetoscope", "distributedInfo"):
            if isinstance(top.get(key), Mapping):
                top[key] = {name: value for name, value in top[key].items() if name in _OF_JOB}
        top = {key: value for key, value in top.items() if key not in ("host_name", "global_rank", "traceName")}
    if identity.rank is not None and rank_in(top) is None:
        top["global_rank"] = identity.rank
    return replace(outside, top=top)


def _devices(devices: list[Any], position: tuple[int, int] | None) -> list[Any]:
    """The devices of a process; where each file's were appended, those of its own."""
    parts: list[list[Any]] = []
    for device in devices:
        if not parts or device["id"] in {other["id"] for other in parts[-1]}:
            parts.append([])
        parts[-1].append(device)
    if position is not None and len(parts) == position[1]:
        return parts[position[0]]
    return list({device["id"]: device for device in reversed(devices)}.values())[::-1]
