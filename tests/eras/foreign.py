"""The recording as those write it who don't use kineto."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from support.build import Microseconds, dumps

from .kineto import ON_DEVICE, Event, Kineto
from .recording import BACKWARD, BEGAN_US, MAIN, Row, op_numbers, recording

HCOM = "hcom_allReduce__123_0_1"
"""What Ascend calls the collective."""


class Pairs(Kineto):
    """Another tool's file: each range is a beginning (B) and an end (E), which come in the order of time."""

    def all_events(self) -> Iterator[Event]:
        events = []
        for event in super().all_events():
            if event["ph"] == "X":
                begin = {k: v for k, v in event.items() if k != "dur"} | {"ph": "B"}
                end = {k: event[k] for k in ("pid", "tid")}
                end |= {"ph": "E", "ts": Microseconds(event["ts"].ns + event["dur"].ns)}
                events += [(event["ts"].ns, -event["dur"].ns, begin), (end["ts"].ns, -(10**12), end)]
            else:
                events.append((event["ts"].ns, 0, event))
        return iter([event for *_, event in sorted(events, key=lambda e: e[:2])])


@dataclass(frozen=True)
class Legacy:
    """The autograd profiler's own exporter: an array, two processes by name, arrows instead of correlations.

    torch/autograd/profiler_util.py, EventList.export_chrome_trace. Times are relative to the start of the profiler.
    """

    def text(self) -> str:
        """The whole file."""
        return "[" + ", ".join(dumps(event) for event in self._events()) + "]"

    def _events(self) -> Iterator[Event]:
        rows = recording()
        for row in rows:
            if row.kind not in ("op", "annotation"):
                continue
            place = {"ts": Microseconds(row.at * 1000), "tid": row.thread, "pid": "CPU functions"}
            yield {"name": row.name, "ph": "X", **place, "dur": Microseconds(row.dur * 1000), "args": {}}
            for work in rows:
                if work.kind in ON_DEVICE and work.op and _launcher(rows, work) == row.nth:
                    yield from self._device(work, row.name, place)
        for work in rows:
            if work.kind in ("kernel", "memcpy", "memset") and not work.op:
                yield from list(self._device(work, "", {}))[2:]

    def _device(self, work: Row, name: str, place: Event) -> Iterator[Event]:
        number = work.nth * 100 + (work.at % 100)
        there = {"ts": Microseconds(work.at * 1000), "tid": 0, "pid": "CUDA functions"}
        arrow = {"id": number, "cat": "cpu_to_cuda", "args": {}}
        yield {"name": name, "ph": "s", **place, **arrow}
        yield {"name": work.name, "ph": "f", **there, **arrow}
        yield {"name": work.name, "ph": "X", **there, "dur": Microseconds(work.dur * 1000), "args": {}}


def _launcher(rows: list[Row], work: Row) -> int:
    """Number of the operator that launched the row."""
    return op_numbers(rows)[work.step, work.op]


@dataclass(frozen=True)
class Ascend:
    """torch_npu's trace_view.json: an array, times as texts, devices told by the names of their processes.

    torch_npu/profiler/analysis/prof_common_func/_trace_event_manager.py (Ascend/pytorch 734edcde).
    """

    hardware: int = MAIN << 10 | 4 << 5  # pid of the device's rows; CANN's and the collectives' lie beside it

    def text(self) -> str:
        """The whole file."""
        return json.dumps(list(self._events()))

    def _events(self) -> Iterator[Event]:
        cann, collectives = self.hardware - 32, self.hardware + 32
        processes = {MAIN: "Python", cann: "CANN", self.hardware: "Ascend Hardware", collectives: "Communication"}
        processes[cann + 96] = "Overlap Analysis"
        for pid, name in processes.items():
            yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}}
        rows = recording()
        for row in rows:
            if row.kind in ("op", "annotation"):
                yield self._host(row, "cpu_op" if row.kind == "op" else "user_annotation")
            elif row.kind == "runtime":
                yield self._event(row, cann, row.thread, {"Thread Id": row.thread, "Mode": "launch"})
            elif row.kind in ("kernel", "memcpy", "memset"):
                is_collective = "collective" in row.args
                pid = collectives if is_collective else self.hardware
                kind = {"kernel": "AI_CORE", "memcpy": "MEMCPY_ASYNC", "memset": "MEMSET_ASYNC"}[row.kind]
                name = row.name if row.kind == "kernel" else kind
                name = HCOM if is_collective else name
                yield self._event(replace(row, name=name), pid, row.stream, {"Task Type": kind, "Task Id": row.nth})
                if row.op:
                    yield from self._arrow(rows, row, pid)
                yield self._event(replace(row, name="Computing"), cann + 96, 0, {})
            elif row.kind == "sync":
                wait = replace(row, name="EVENT_WAIT")
                yield self._event(wait, self.hardware, row.stream, {"Task Type": "EVENT_WAIT"})

    def _host(self, row: Row, category: str) -> Event:
        args: Event = {"Call stack": "train.py(10): step"}
        if row.kind == "op":
            args |= {
                "Input Dims": row.args["shapes"],
                "Input type": "float",
                "Fwd thread id": int(row.thread == BACKWARD),
            }
            args |= {"Sequence number": row.args.get("sequence", -1)}
        return self._event(row, MAIN, row.thread, args) | {"cat": category}

    def _event(self, row: Row, pid: int, tid: int, args: Event) -> Event:
        times = {"ts": f"{BEGAN_US + row.at}.000", "dur": float(row.dur)}
        return {"ph": "X", "name": row.name, "pid": pid, "tid": tid, **times, "args": args}

    def _arrow(self, rows: list[Row], work: Row, pid: int) -> Iterator[Event]:
        launcher = next(row for row in rows if row.kind == "op" and row.nth == _launcher(rows, work))
        common = {"bp": "e", "name": "torch_to_npu", "id": work.nth * 100 + work.at % 100, "cat": "async_npu"}
        ends = (("s", MAIN, launcher.thread, launcher.at), ("f", pid, work.stream, work.at))
        for phase, process, tid, at in ends:
            yield {"ph": phase, **common, "pid": process, "tid": tid, "ts": f"{BEGAN_US + at}.000"}
