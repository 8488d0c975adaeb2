"""Simulated jobs that stand still, and the dumps that torch's flight recorder would write of them.

Each rank has a program of calls. The host issues them, some ahead of the device; the device runs them in that order. A
collective completes once all its members' devices are at the same one, a send once the other end is there. So who holds
up whom follows from the programs, and nothing here knows how `why` decides.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

BEGAN_NS = 1_795_650_000_000_000_000


@dataclass(frozen=True)
class Call:
    """A call of a program.

    Args:
        group: The key of its group.
        kind: The operation; of sends and receives p2p.
        elements: Of its input and its output.
        dtype: Their type.
        parts: Of p2p: (send or recv, the other rank) of each; several are a batch.
    """

    group: str
    kind: str = "all_reduce"
    elements: int = 1024
    dtype: str = "Float"
    parts: tuple[tuple[str, int], ...] = ()


@dataclass
class Record:
    """A call that was issued."""

    call: Call
    seq: int
    p2p_seq: int
    number: int
    is_complete: bool = False
    is_started: bool = False


@dataclass
class Device:
    """What one rank has issued, and how far it is."""

    program: Sequence[Call]
    records: list[Record] = field(default_factory=list)
    done: int = 0
    is_stuck: bool = False

    @property
    def head(self) -> Record | None:
        return self.records[self.done] if self.done < len(self.records) else None


@dataclass
class Simulation:
    """A job.

    Args:
        groups: The members of each group by its key; a key is NAME or NAME/WHICH, if several groups have one name.
        programs: The calls of each rank.
        backend: gloo runs each call at once and does not record sends and receives.
        ahead: How many calls a host issues before it waits.
    """

    groups: Mapping[str, Sequence[int]]
    programs: Mapping[int, Sequence[Call]]
    backend: str = "nccl"
    ahead: int = 3

    def __post_init__(self) -> None:
        self.devices = {rank: Device(program) for rank, program in self.programs.items()}
        self._seqs: dict[tuple[int, str, bool], int] = {}

    def run(self, rounds: int = 10_000, *, stuck: int | None = None, holds_last: bool = False) -> Simulation:
        """Run until nothing moves, or for some rounds.

        Args:
            rounds: The most of them; each issues and completes a call of each rank at most.
            stuck: A rank whose device begins nothing more once it has come half of its way.
            holds_last: Whether the last call of each rank never completes, as on a broken network.
        """
        for _ in range(rounds):
            moved = [self._issue(rank) for rank in self.devices]
            for rank, device in self.devices.items():
                device.is_stuck = rank == stuck and device.done >= len(device.program) // 2
            for device in self.devices.values():
                if device.head and not device.is_stuck:
                    device.head.is_started = True
            moved += [self._complete(rank, holds_last=holds_last) for rank in self.devices]
            if not any(moved):
                break
        return self

    def _issue(self, rank: int) -> bool:
        device = self.devices[rank]
        if len(device.records) == len(device.program) or len(device.records) - device.done >= self.ahead:
            return False
        call = device.program[len(device.records)]
        key = rank, call.group, bool(call.parts)
        self._seqs[key] = self._seqs.get(key, 0) + 1
        seqs = [self._seqs.get((rank, call.group, is_p2p), 0) for is_p2p in (False, True)]
        device.records.append(Record(call, *seqs, len(device.records)))
        return True

    def _complete(self, rank: int, *, holds_last: bool) -> bool:
        device = self.devices[rank]
        head = device.head
        if head is None or not head.is_started or (holds_last and head.number == len(device.program) - 1):
            return False
        others = [r for r in self.groups[head.call.group] if r != rank] if not head.call.parts else []
        peers = [peer for _, peer in head.call.parts]
        heads = {other: self.devices[other].head for other in (*others, *peers)}
        if not all(h and h.is_started and _fit(rank, head, r, h) for r, h in heads.items()):
            return False
        for other in (rank, *heads):
            self.devices[other].records[self.devices[other].done].is_complete = True
            self.devices[other].done += 1
        return True

    # ---- dumps

    def dump(self, rank: int, *, ring: int = 2000, version: str = "2.10", text: bool = False) -> dict[str, Any]:
        """The values of a rank's dump, as JSON has them if `text`, else as a pickle."""
        keys = [key for key, members in self.groups.items() if rank in members]
        entries = self._entries(rank, keys)[-ring:]
        names = {key: {"name": self._name(key), "desc": _description(key), "ranks": ""} for key in keys}
        for key in keys:
            names[key]["ranks"] = str(list(self.groups[key]))
        is_gloo = self.backend == "gloo"
        config = {"": {"name": "", "desc": "", "ranks": "[]"}} if is_gloo else {v["name"]: v for v in names.values()}
        status = {str(nth): self._status(rank, key, text=text) for nth, key in enumerate(keys)}
        value = {"version": version, "pg_config": config, "pg_status": status, "comm_lib_version": ""}
        if entries or not text:
            value["entries"] = [_with_texts(entry) if text else entry for entry in entries]
        return value

    def _name(self, key: str) -> str:
        """The name of a group. Those of gloo are numbered by all ranks alike; NCCL's can be split under one name."""
        return key if self.backend == "gloo" else key.split("/")[0]

    def _status(self, rank: int, key: str, *, text: bool) -> dict[str, Any]:
        records = [r for r in self.devices[rank].records if r.call.group == key]
        complete = [r for r in records if r.is_complete]
        last = [max((r.p2p_seq if r.call.parts else r.seq for r in rs[-1:]), default=-1) for rs in (records, complete)]
        names = ("last_enqueued_collective", "last_started_collective", "last_completed_collective")
        return {n: str(v) if text else v for n, v in zip(names, (last[0], -1, last[1]), strict=True)}

    def _entries(self, rank: int, keys: Sequence[str]) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        for record in self.devices[rank].records:
            call = record.call
            if call.parts and self.backend == "gloo":
                continue
            group = list(self.groups[call.group])
            names = [call.kind] if not call.parts else []
            for direction, peer in call.parts:
                arrow = "->" if direction == "send" else "<-"
                names.append(f"{direction} {group.index(rank)}{arrow}{group.index(peer)}")
            names += ["coalesced"] if len(names) > 1 else []
            for nth, name in enumerate(names):
                is_marked = len(names) == 1 or nth == len(names) - 1
                entry = self._entry(rank, record, name, keys.index(call.group), is_marked=is_marked)
                entries.append({"record_id": len(entries), **entry})
        return entries

    def _entry(self, rank: int, record: Record, name: str, group_id: int, *, is_marked: bool) -> dict[str, Any]:
        call, is_gloo = record.call, self.backend == "gloo"
        is_complete = record.is_complete and is_marked and not is_gloo
        is_started = (record.is_started or record.is_complete) and is_marked and not is_gloo
        created_ns = BEGAN_NS + 10_000_000 * record.number + 1000 * rank
        sizes = [[call.elements]] if call.kind != "barrier" else []
        return {
            "pg_id": group_id,
            "process_group": (self._name(call.group), _description(call.group)),
            "collective_seq_id": record.seq,
            "p2p_seq_id": record.p2p_seq,
            "op_id": record.number + 1,
            "profiling_name": f"{self.backend}:{name}",
            "time_created_ns": created_ns,
            "input_sizes": sizes,
            "input_dtypes": [call.dtype] * len(sizes),
            "output_sizes": sizes,
            "output_dtypes": [call.dtype] * len(sizes),
            "state": "completed" if is_complete else "started" if is_started else "scheduled",
            "time_discovered_started_ns": created_ns + 5_000_000 if is_started else None,
            "time_discovered_completed_ns": created_ns + 9_000_000 if is_complete else None,
            "retired": record.is_complete and is_marked,
            "timeout_ms": 600_000,
            "is_p2p": bool(call.parts),
        }

    def write(
        self,
        folder: Path,
        *,
        without: Sequence[int] = (),
        ring: int = 2000,
        name: str = "nccl_trace_rank_",
        text: bool = False,
    ) -> Path:
        """Write the dump of each rank but some into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in self.devices.keys() - set(without):
            value = self.dump(rank, ring=ring, text=text)
            data = json.dumps(value, sort_keys=True).encode() if text else pickle.dumps(value, 2)
            (folder / f"{name}{rank}{'.json' if text else ''}").write_bytes(data)
        return folder


def _fit(rank: int, head: Record, other: int, other_head: Record) -> bool:
    """Whether two heads are ends of one operation."""
    a, b = head.call, other_head.call
    if a.parts or b.parts:
        ends = {("recv" if direction == "send" else "send", rank) for direction, peer in a.parts if peer == other}
        return bool(ends) and ends <= set(b.parts) and {peer for _, peer in b.parts} == {rank}
    return (a, head.seq) == (b, other_head.seq)


def _description(key: str) -> str:
    return "default_pg" if key == "0" else "undefined" if key.isdecimal() else f"mesh_{key.split('/')[0]}"


def _with_texts(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry as JSON has it: 0 for times that aren't known."""
    return {key: 0 if value is None else value for key, value in entry.items()}


# ---- programs


@dataclass(frozen=True)
class Layout:
    """The groups of a job, and the steps of each rank.

    Args:
        name: What it is called.
        groups: Members by key.
        step: The keys of the groups of a step's collectives, of which a rank calls those of its own groups.
        stages: Ranks by pipeline stage; each sends to the next one at the beginning of a step, and back.
    """

    name: str
    groups: Mapping[str, tuple[int, ...]]
    step: tuple[str, ...]
    stages: tuple[tuple[int, ...], ...] = ()

    @property
    def ranks(self) -> range:
        return range(len(self.groups["0"]))

    def program(self, rank: int, steps: int = 4) -> list[Call]:
        """The calls of a rank."""
        own = [Call(key, elements=1 << 10 + nth) for nth, key in enumerate(self.step) if rank in self.groups[key]]
        return [*self._pipeline(rank), *own] * steps

    def _pipeline(self, rank: int) -> list[Call]:
        stage = next((nth for nth, ranks in enumerate(self.stages) if rank in ranks), None)
        if stage is None:
            return []
        column = self.stages[stage].index(rank)
        before = self.stages[stage - 1][column] if stage else None
        after = self.stages[stage + 1][column] if stage + 1 < len(self.stages) else None
        parts = [("recv", before), ("send", after), ("recv", after), ("send", before)]
        return [Call("pp", "p2p", 256, parts=((way, peer),)) for way, peer in parts if peer is not None]

    def programs(self) -> dict[int, list[Call]]:
        """The calls of all ranks."""
        return {rank: self.program(rank) for rank in self.ranks}


LAYOUTS = (
    Layout("world", {"0": (0, 1, 2, 3)}, ("0", "0")),
    Layout("pairs", {"0": (0, 1, 2, 3), "1": (0, 1), "2": (2, 3)}, ("0", "1", "2")),
    Layout(
        "mesh",
        {
            "0": (*range(8),),
            **{f"tp/{n}": (2 * n, 2 * n + 1) for n in range(4)},
            "dp/0": (0, 2, 4, 6),
            "dp/1": (1, 3, 5, 7),
        },
        (*(f"tp/{n}" for n in range(4)), "dp/0", "dp/1", "0"),
    ),
    Layout(
        "nested",
        {"0": (*range(8),), "10": (0, 1, 2, 3), "11": (4, 5, 6, 7), **{f"2{n}": (2 * n, 2 * n + 1) for n in range(4)}},
        (*(f"2{n}" for n in range(4)), "10", "11", "0"),
    ),
    Layout(
        "pipeline",
        {"0": (*range(6),), "pp": (*range(6),), "dp/0": (0, 1), "dp/1": (2, 3), "dp/2": (4, 5)},
        ("dp/0", "dp/1", "dp/2", "0"),
        stages=((0, 1), (2, 3), (4, 5)),
    ),
)


def stopped(layout: Layout, rank: int, at: int) -> dict[int, list[Call]]:
    """Programs in which a rank stops before a call."""
    return {**layout.programs(), rank: layout.program(rank)[:at]}


def changed(layout: Layout, ranks: Sequence[int], **changes: Any) -> dict[int, list[Call]]:
    """Programs in which ranks call the last collective of the job in another way."""
    programs = layout.programs()
    for rank in ranks:
        programs[rank][-1] = replace(programs[rank][-1], **changes)
    return programs


def swapped(layout: Layout, rank: int) -> dict[int, list[Call]]:
    """Programs in which a rank calls the last two collectives of the job in the other order."""
    programs = layout.programs()
    programs[rank][-2:] = programs[rank][:-3:-1]
    return programs
