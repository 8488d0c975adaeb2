"""How kineto wrote the recording in each release, for each kind of device.

What changed when is what kineto's history says: output_json.cpp, its activity types and the headers of the releases.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from support.build import Microseconds, dumps

from .arguments import Arguments
from .recording import BEGAN_US, LENGTH_US, MAIN, Row, recording

Event = dict[str, Any]

TRIMESTER_NS = 7_889_238 * 10**9  # the base time is a multiple of it (kineto 8bf50de2)
CATEGORIES: dict[str, list[tuple[tuple[int, int], str]]] = {  # kind → since which torch it is called what
    "op": [((1, 8), "Operator"), ((1, 10), "cpu_op")],
    "annotation": [((1, 8), "Operator"), ((1, 10), "cpu_op"), ((1, 12), "user_annotation")],
    "runtime": [((1, 8), "Runtime"), ((1, 12), "cuda_runtime")],
    "kernel": [((1, 8), "Kernel"), ((1, 12), "kernel")],
    "memcpy": [((1, 8), "Memcpy"), ((1, 12), "gpu_memcpy")],
    "memset": [((1, 8), "Memset"), ((1, 12), "gpu_memset")],
    "python": [((1, 11), "python_function")],
    "overhead": [((1, 12), "overhead")],
    "sync": [((2, 1), "cuda_sync")],
    "gpu_annotation": [
        ((1, 8), "User"),
        ((1, 9), ""),
        ((1, 12), "gpu_user_Annotation"),
        ((1, 13), "gpu_user_annotation"),
    ],
    "memory": [((1, 9), ""), ((1, 12), "cpu_instant_event")],
}
LAUNCH_FLOW = [  # since which torch: category, name
    ((1, 8), ("async", "launch")),
    ((1, 10), ("async_gpu", "cudaLaunchKernel")),
    ((1, 12), ("async_cpu_to_gpu", "async_gpu")),
    ((2, 0), ("ac2g", "ac2g")),
]
BACKWARD_FLOW = [((1, 10), ("forward_backward", "fwd_bwd")), ((2, 0), ("fwdbwd", "fwdbwd"))]
ON_DEVICE = ("kernel", "memcpy", "memset", "sync", "gpu_annotation")


@dataclass(frozen=True)
class Kineto:
    """A release of torch on a kind of device.

    Args:
        torch: The release; (3, 0) stands for kineto's main branch after 2.13.
        vendor: cuda, rocm, xpu, mtia, hpu or privateuse1.
        top: Keys beside the events that only this one has.
        events: Further events that only this one has; ts and dur in microseconds since the recording began.
        pid, device: Of the process, and of its GPU; in a container they may be one number.
        on_demand: Whether a daemon asked for the trace: then what is known of the job comes last, with logs.
    """

    torch: tuple[int, int]
    vendor: str = "cuda"
    top: dict[str, Any] = field(default_factory=dict)
    events: tuple[Event, ...] = ()
    pid: int = MAIN
    device: int = 0
    on_demand: bool = False
    rows: tuple[Row, ...] | None = None

    def since(self, *torch: int) -> bool:
        """Whether it is this release or a later one."""
        return self.torch >= torch

    def spelling(self, table: list[tuple[tuple[int, int], Any]]) -> Any:
        """The last entry of a table that isn't later than this release, or None."""
        known = [value for since, value in table if self.torch >= since]
        return known[-1] if known else None

    @property
    def base_ns(self) -> int:
        """Unix time of the trace's zero."""
        return BEGAN_US * 1000 // TRIMESTER_NS * TRIMESTER_NS if self.since(2, 4) else 0

    def time(self, at: int) -> Any:
        """A moment as the release writes it."""
        return Microseconds((BEGAN_US + at) * 1000 - self.base_ns) if self.since(2, 4) else BEGAN_US + at

    def length(self, dur: int) -> Any:
        """A duration as the release writes it."""
        return Microseconds(dur * 1000) if self.since(2, 4) else dur

    def text(self) -> str:
        """The whole file."""
        events = list(self.all_events())
        head, tail = self.metadata()
        if self.torch == (1, 8) and self.top.get("array"):
            return "[\n" + ",\n".join(map(self.laid_out, events)) + "\n]"
        lines = [f"{json.dumps(k)}: {dumps(v)}" for k, v in head.items()]
        lines.append('"traceEvents": [\n' + ",\n".join(map(self.laid_out, events)) + "\n]")
        lines += [f"{json.dumps(k)}: {dumps(v)}" for k, v in tail.items()]
        return "{\n  " + ",\n  ".join(lines) + "\n}\n"

    def laid_out(self, event: Event) -> str:
        """One event as text: on two lines up to torch 2.11, then with a line for each key (kineto c51fcfea)."""
        if self.since(2, 12):
            body = ",\n".join(f"    {json.dumps(k)}: {dumps(v)}" for k, v in event.items())
            return "  {\n" + body + "\n  }"
        head = ", ".join(f"{json.dumps(k)}: {dumps(v)}" for k, v in event.items() if k not in ("ts", "dur", "args"))
        rest = ", ".join(f"{json.dumps(k)}: {dumps(v)}" for k, v in event.items() if k in ("ts", "dur", "args"))
        blank = "\n\n" if event["ph"] == "i" else "\n"
        return "  {\n    " + head + f",{blank}    " + rest + "\n  }"

    def metadata(self) -> tuple[Event, Event]:
        """The keys before and after the events."""
        head: Event = {"schemaVersion": 1}
        if self.torch in ((1, 9), (1, 10), (1, 11)) or self.since(1, 13):
            head["deviceProperties"] = [] if self.vendor not in ("cuda", "rocm") else [DEVICE]
        job: Event = {}
        if self.since(1, 10):
            job["distributedInfo"] = {"backend": "nccl", "rank": "0" if self.on_demand else 0, "world_size": 2}
            if self.since(2, 3):
                groups = [{"pg_name": "0", "pg_desc": "default_pg", "pg_size": 2, "ranks": [0, 1]}]
                job["distributedInfo"] |= {"pg_count": 1, "pg_config": groups, "nccl_version": "2.20.5"}
        if self.since(2, 0):
            job |= {"record_shapes": 1, "with_stack": 1, "profile_memory": 1}
        if self.since(2, 6):
            job |= {"cupti_version": 24, "cuda_runtime_version": 12040, "trace_id": "5A3D"}
        if self.since(2, 12):
            job["host_name"] = "node7"
        time = {"displayTimeUnit": "ms", "baseTimeNanoseconds": self.base_ns} if self.since(2, 4) else {}
        name = f"/tmp/libkineto_activities_{self.pid}.json" if self.on_demand else "/tmp/trace.json"
        log = {"WARNING": ["WARNING:2026-01-02 CuptiActivityProfiler.cpp:10] a\\tb"], "STAGE": []}
        tail: Event = job | (log if self.on_demand else {}) if self.on_demand else {}
        head |= {} if self.on_demand else job
        head |= {k: v for k, v in self.top.items() if k != "array"}
        if self.since(2, 8):
            head |= time
        else:
            tail |= time
        return head, tail | ({"traceName": name} if self.since(1, 11) else {})

    def all_events(self) -> Iterator[Event]:
        """The events in the order in which kineto wrote them: host, device, names, spans."""
        rows = list(self.rows or recording())
        arguments = Arguments(self, rows)
        names = list(self.name_events())
        if self.since(2, 12):
            yield from names
        for row in sorted(rows, key=lambda row: row.kind in ON_DEVICE):
            yield from self.row_events(row, arguments)
        if not self.since(2, 12):
            yield from names
        for event in self.events:
            dur = {"dur": self.length(event["dur"])} if "dur" in event else {}
            yield {**event, "ts": self.time(event["ts"]), **dur}
        span = {"pid": "Spans" if self.since(1, 10) else "Traces", "tid": "PyTorch Profiler"}
        times = {"ts": self.time(0), "dur": self.length(LENGTH_US)}
        yield {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", **span, **times, "args": {"Op count": 0}}
        for name, pid, at in (("Iteration Start: PyTorch Profiler", "Traces", 0), ("Record Window End", "", LENGTH_US)):
            yield {"name": name, "ph": "i", "s": "g", "pid": pid, "tid": "", "ts": self.time(at)}

    def row_events(self, row: Row, arguments: Arguments) -> Iterator[Event]:
        """A row, and the ends of arrows at it."""
        category = self.category(row)
        if category is None or (category == "" and row.kind != "memory"):
            return
        pid, tid = self.place(row)
        start = {"ts": self.time(row.at)}
        args = arguments.of(row)
        if row.kind == "memory":
            named = {"ph": "i", "cat": category, "s": "t"} if category else {"ph": "i", "s": "t"}
            instant_tid = row.thread if self.torch == (1, 9) else tid
            yield {**named, "name": row.name, "pid": pid, "tid": instant_tid, **start, "args": args}
            return
        yield {
            "ph": "X",
            "cat": category,
            "name": VENDOR_NAMES.get(self.vendor, {}).get(row.kind, row.name),
            "pid": pid,
            "tid": tid,
            **start,
            "dur": self.length(row.dur),
            "args": args,
        }
        yield from self.arrow_ends(row, pid, tid)

    def arrow_ends(self, row: Row, pid: Any, tid: Any) -> Iterator[Event]:
        """The arrow from a launch to its device row, and that from forward to backward."""
        bound = {"bp": "e"}
        if row.nth and row.kind in ("runtime", "kernel", "memcpy", "memset"):
            category, name = self.spelling(LAUNCH_FLOW)
            phase = "s" if row.kind == "runtime" else "f"
            plain_tid = row.thread if phase == "s" and not self.since(1, 10) else tid
            is_bound = phase == "f" or (1, 12) <= self.torch < (2, 0)
            at = {"ph": phase, "id": row.nth, "pid": pid, "tid": plain_tid, "ts": self.time(row.at)}
            yield {**at, "cat": category, "name": name, **(bound if is_bound else {})}
        arrow = self.spelling(BACKWARD_FLOW)
        if arrow and row.args.get("sequence") and row.name in ("aten::addmm", "AddmmBackward0"):
            phase = "s" if row.name == "aten::addmm" else "f"
            at = {"ph": phase, "id": row.args["sequence"], "pid": pid, "tid": tid, "ts": self.time(row.at)}
            yield {**at, "cat": arrow[0], "name": arrow[1], **(bound if phase == "f" else {})}

    def category(self, row: Row) -> str | None:
        """What the release calls the row; None if it doesn't write such rows."""
        if row.kind == "sync" and self.vendor == "xpu":
            return "xpu_sync" if self.since(3, 0) else None  # kineto 8285e5bf
        special = VENDOR_CATEGORIES.get(self.vendor, {})
        return special[row.kind] if row.kind in special else self.spelling(CATEGORIES[row.kind])

    def place(self, row: Row) -> tuple[Any, Any]:
        """pid and tid of a row."""
        if row.kind == "overhead" or (row.kind == "sync" and self.vendor == "xpu"):
            return -1, 0
        if row.kind not in ON_DEVICE:
            thread = row.thread
            return self.pid, thread if self.since(1, 10) else str(thread)
        if self.since(1, 10):
            is_apart = row.kind == "sync" and self.since(2, 13)  # a row of its own for waits (kineto 041e7ce9)
            return self.device, row.stream + 1_000_000 * is_apart
        return self.device, f"stream {row.stream}" + (" user" if row.kind == "gpu_annotation" else "")

    def name_events(self) -> Iterator[Event]:
        """The rows that name processes and threads, also those of GPUs that don't exist."""
        gpus = range(16 if self.since(2, 5) else 8)
        for pid, label in [(self.pid, "CPU"), *((gpu, f"GPU {gpu}") for gpu in gpus)]:
            for name, args in (("process_name", {"name": "python"}), ("process_labels", {"labels": label})):
                yield {"name": name, "ph": "M", "ts": self.time(0), "pid": pid, "tid": 0, "args": args}
        for pid, tid, name in ((self.pid, MAIN, f"thread {MAIN} (python)"), (self.device, 7, "stream 7 ")):
            at = {"pid": pid, "tid": tid if self.since(1, 10) else str(tid)}
            yield {"name": "thread_name", "ph": "M", "ts": self.time(0), **at, "args": {"name": name}}


VENDOR_CATEGORIES: dict[str, dict[str, str]] = {
    "xpu": {"runtime": "xpu_runtime"},
    "mtia": {
        "runtime": "mtia_runtime",
        "kernel": "mtia_ccp_events",
        "memcpy": "mtia_ccp_events",
        "memset": "gpu_memset",
        "sync": "mtia_ccp_events",
    },
    "hpu": {"runtime": "hpu_op"},
    "privateuse1": {"runtime": "privateuse1_runtime"},
}
VENDOR_NAMES = {"mtia": {"memcpy": "dma_request", "sync": "event_wait"}}
DEVICE = {
    "id": 0,
    "name": "NVIDIA A100",
    "totalGlobalMem": 42505273344,
    "computeMajor": 8,
    "computeMinor": 0,
    "warpSize": 32,
    "numSms": 108,
}
