"""Writes what a job did as torch's profiler records it: one Kineto file per rank."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .devices import Device
from .machine import Node, Process, Thread

SPAN = 1_700_000_000_000


def events_of(process: Process, *, has_stacks: bool) -> list[dict[str, Any]]:
    """The events of a process, ordered by their start."""
    rows = [*_host_events(process, has_stacks), *_work_events(process)]
    rows.sort(key=lambda row: (row["ts"], -row["dur"]))
    first = rows[0]["ts"] - 10
    length = max(row["ts"] + row["dur"] for row in rows) - first
    window = _event("PyTorch Profiler (0)", "Trace", first, length, "Spans", "PyTorch Profiler", {"Op count": 0})
    return [*_names(process), *rows, *_flows(process), window]


def document(process: Process, device: Device, devices: int, ranks: int, *, has_stacks: bool = False) -> dict[str, Any]:
    """The file of a process, as an object."""
    head: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [device.properties(number) for number in range(devices)] if device.name else [],
        "cupti_version": 24,
        "cuda_runtime_version": 12_060,
        "cuda_driver_version": 12_060,
        "record_shapes": 1,
        **({"with_stack": 1} if has_stacks else {}),
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1_790_857_026_000_000_000,
    }
    if ranks > 1:
        head["distributedInfo"] = _distributed(process.rank, ranks)
    return {**head, "traceEvents": events_of(process, has_stacks=has_stacks), "traceName": "trace.json"}


def without(contents: dict[str, Any], part: str) -> dict[str, Any]:
    """The file as it is recorded without steps or without shapes."""
    if part == "steps":
        events = [event for event in contents["traceEvents"] if not event["name"].startswith("ProfilerStep#")]
        return {**contents, "traceEvents": events}
    arguments = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")
    events = [
        {**event, "args": {name: value for name, value in event["args"].items() if name not in arguments}}
        if "args" in event
        else event
        for event in contents["traceEvents"]
    ]
    return {**contents, "record_shapes": 0, "traceEvents": events}


def write(contents: dict[str, Any], folder: Path, rank: int) -> Path:
    """Write a file under the name that a recorder gives it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rank{rank}.{SPAN}.pt.trace.json.gz"
    path.write_bytes(gzip.compress(json.dumps(contents).encode(), compresslevel=1, mtime=0))
    return path


def _event(
    name: str, category: str, start: float, length: float, pid: Any, tid: Any, args: dict[str, Any]
) -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": length, "args": args}


def _microseconds(ns: int) -> float:
    return round(ns / 1000, 3)


def _host_events(process: Process, has_stacks: bool) -> Iterator[dict[str, Any]]:
    for number, opened in enumerate(process.ranges):
        if opened.category == "python_function" and not has_stacks:
            continue
        assert opened.finish is not None
        length = opened.finish.end - opened.begin.end
        frame = {"Python id": number, "Python parent id": None} if opened.category == "python_function" else {}
        yield _event(
            opened.name, opened.category, _microseconds(opened.begin.end), _microseconds(length),
            process.pid, opened.begin.lane[2], {**opened.args, **frame, "Ev Idx": number},
        )  # fmt: skip


def _work_events(process: Process) -> Iterator[dict[str, Any]]:
    for node in process.nodes:
        if node.category:
            start, length = _microseconds(node.start), _microseconds(node.end - node.start)
            pid, tid = (process.pid, node.lane[2]) if node.lane[0] == "host" else node.lane[1:]
            yield _event(node.name, node.category, start, length, pid, tid, node.args)


def _flows(process: Process) -> Iterator[dict[str, Any]]:
    """The arrows from calls to their work, as torch writes them."""
    calls = {node.args["correlation"]: node for node in process.nodes if node.category == "cuda_runtime"}
    for node in process.nodes:
        if node.launch:
            number = node.args["correlation"]
            common = {"cat": "ac2g", "name": "ac2g", "id": number}
            call: Node = calls[number]
            yield {"ph": "s", **common, "pid": process.pid, "tid": call.lane[2], "ts": _microseconds(call.start)}
            place = {"pid": node.lane[1], "tid": node.lane[2]}
            yield {"ph": "f", "bp": "e", **common, **place, "ts": _microseconds(node.start)}


def _names(process: Process) -> Iterator[dict[str, Any]]:
    def name(kind: str, pid: int, tid: int, **args: str) -> dict[str, Any]:
        return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": args}

    yield name("process_name", process.pid, 0, name="python")
    yield name("process_labels", process.pid, 0, labels="CPU")
    threads: tuple[Thread, ...] = (process.main, process.autograd)
    for thread in threads:
        yield name("thread_name", process.pid, thread.tid, name=thread.name)
    lanes = sorted({node.lane for node in process.nodes if node.lane[0] == "stream"})
    for device in sorted({lane[1] for lane in lanes}):
        yield name("process_name", device, 0, name="python")
        yield name("process_labels", device, 0, labels=f"GPU {device}")
    for _, device, stream in lanes:
        yield name("thread_name", device, stream, name=f"stream {stream} ")


def _distributed(rank: int, ranks: int) -> dict[str, Any]:
    members = list(range(ranks))
    group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": ranks, "ranks": members}
    return {
        "backend": "nccl",
        "rank": rank,
        "world_size": ranks,
        "pg_count": 1,
        "pg_config": [group],
        "nccl_version": "2.21.5",
    }
