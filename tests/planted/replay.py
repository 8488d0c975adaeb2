"""Replay a recording with something changed: a discrete-event simulation of one host and the streams of its devices.

A `Program` is what a real trace launches: host slices on their threads, GPU rows with the call that launched each, and
the calls that wait for the device. `simulate` derives all timestamps anew:

- Host time is one clock for all threads of the process. It runs as recorded, except in calls that wait.
- A row starts when its launch has been submitted, its stream's earlier rows have ended, and the row of another stream
  that it waits for has ended.
- A synchronizing call returns when its stream (or the whole device, or its own copy) is done.
- A launch blocks while the queue of the device is full.
"""

from __future__ import annotations

import bisect
import dataclasses
import gzip
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

CATEGORIES = {
    "operator": "cpu_op",
    "cpu_op": "cpu_op",
    "runtime": "cuda_runtime",
    "cuda_runtime": "cuda_runtime",
    "cuda_driver": "cuda_driver",
    "user_annotation": "user_annotation",
    "python_function": "python_function",
    "kernel": "kernel",
    "memcpy": "gpu_memcpy",
    "gpu_memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
    "gpu_memset": "gpu_memset",
}
ROWS = {"kernel", "gpu_memcpy", "gpu_memset"}
CALLS = {"cuda_runtime", "cuda_driver"}
BASE_NS = 1_700_000_000_000_000_000
QUEUE = 1000  # launches that a CUDA stream takes before the next one blocks (1024 on current drivers)
LEAD_NS = (2_000, 12_000)  # from a launch's begin to its row's start on an idle stream
SYNC_NS = 4_000  # a synchronizing call returns that long after the device is done
WAITED_NS = 20_000  # a row that starts so soon after the end of another stream's row waited for it
_SYNC_STREAM = re.compile(r"(cuda|hip)(StreamSynchronize|EventSynchronize|Memcpy$|MemcpyWithStream)")
_SYNC_DEVICE = re.compile(r"(cuda|hip)(DeviceSynchronize|Free$)|cuCtxSynchronize")
STREAM, DEVICE, ROW = range(3)  # what a call waits for


class Info(NamedTuple):
    """What an event says apart from its time."""

    cat: str
    name: str
    pid: Any
    tid: Any
    args: dict[str, Any]


@dataclass
class Program:
    """What a process did in one stretch of time; times in ns from its begin.

    Attributes:
        begin, end: Of each host slice.
        host: What each host slice is.
        launch: For each GPU row the host slice that launched it; rows are in the order of their launches.
        dur: How long each row runs.
        stream: Number of each row's stream.
        after: Row of another stream that it waits for, or -1.
        lead: From the begin of the launch to the row's start on an idle stream.
        rows: What each row is.
        waits: Host slice → what it waits for, and for ROW the row.
        length: Of the stretch.
        head: The other keys of the trace's file.
        main: (pid, tid) of the thread that runs the loop.
        next_id: Correlation of what is inserted next: above those of the base traces, below those of the next step.
    """

    begin: np.ndarray
    end: np.ndarray
    host: list[Info]
    launch: np.ndarray
    dur: np.ndarray
    stream: np.ndarray
    after: np.ndarray
    lead: np.ndarray
    rows: list[Info]
    waits: dict[int, tuple[int, int]]
    length: int
    head: dict[str, Any] = field(default_factory=dict)
    main: tuple[Any, Any] = (1, 1)
    next_id: int = 9_000_000

    def copy(self) -> Program:
        """One that can be changed without changing this."""
        arrays = {f.name: getattr(self, f.name).copy() for f in dataclasses.fields(self) if f.type == "np.ndarray"}
        lists = {name: list(getattr(self, name)) for name in ("host", "rows")}
        return dataclasses.replace(self, **arrays, **lists, waits=dict(self.waits), head=dict(self.head))

    def busy_ns(self) -> int:
        """How long the rows of the busiest stream run."""
        return int(np.bincount(self.stream, self.dur).max()) if self.rows else 0

    def computing(self, pattern: re.Pattern[str]) -> np.ndarray:
        """Which rows have a name of this pattern."""
        return np.array([bool(pattern.search(row.name)) for row in self.rows], bool)


@dataclass
class Replay:
    """The timestamps of a program on the axis of its recording, in ns."""

    program: Program
    begin: np.ndarray
    end: np.ndarray
    row_begin: np.ndarray
    row_end: np.ndarray
    axis: tuple[np.ndarray, np.ndarray]

    def at(self, recorded: np.ndarray) -> np.ndarray:
        """When the host comes to instants of the program."""
        return np.round(np.interp(recorded, *self.axis)).astype(np.int64)

    def last_ns(self) -> int:
        """When host and device are done."""
        return int(max(self.end.max(initial=0), self.row_end.max(initial=0)))

    def events(self) -> list[dict[str, Any]]:
        """Host slices and GPU rows as a trace's events, in µs."""
        first, origin = BASE_NS // 1000, 1_000_000
        sides = ((self.program.host, self.begin, self.end), (self.program.rows, self.row_begin, self.row_end))
        return [
            {
                "ph": "X",
                "cat": info.cat,
                "name": info.name,
                "pid": info.pid,
                "tid": info.tid,
                "ts": round((begin + origin) / 1000 + first % 10**9, 3),
                "dur": round((end - begin) / 1000, 3),
                "args": info.args,
            }
            for infos, begins, ends in sides
            for info, begin, end in zip(infos, begins.tolist(), ends.tolist(), strict=True)
        ]


def load(path: Path) -> dict[str, Any]:
    """A trace's file as one object."""
    raw = path.read_bytes()
    document = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return document if isinstance(document, dict) else {"traceEvents": document}


def _row_stream(event: dict[str, Any]) -> tuple[Any, Any]:
    args = event.get("args", {})
    return args.get("device", event["pid"]), args.get("stream", event["tid"])


def program_of(document: dict[str, Any], window: tuple[float, float] | None = None) -> Program:
    """What a trace launches within a window, given in µs of its own clock; the whole trace without one."""
    events = [e for e in document["traceEvents"] if e.get("ph") == "X" and str(e.get("cat", "")).lower() in CATEGORIES]
    for event in events:
        event["cat"] = CATEGORIES[event["cat"].lower()]
    host = [e for e in events if e["cat"] not in ROWS and not e["name"].startswith("ProfilerStep")]
    calls = [e for e in host if e["cat"] in CALLS]
    low = window[0] if window else min(e["ts"] for e in (calls or host))
    high = window[1] if window else max(e["ts"] + e["dur"] for e in calls)
    host = [e for e in host if e["ts"] < high and e["ts"] + e["dur"] > low and e["dur"] >= 0]
    host = [e for e in host if e["cat"] not in CALLS or (e["ts"] >= low and e["ts"] + e["dur"] <= high)]
    host.sort(key=lambda e: (e["ts"], -e["dur"]))
    begin = np.array([round((max(e["ts"], low) - low) * 1000) for e in host], np.int64)
    end = np.array([round((min(e["ts"] + e["dur"], high) - low) * 1000) for e in host], np.int64)
    index = {e["args"].get("correlation"): at for at, e in enumerate(host) if e["cat"] in CALLS and e["ts"] >= low}
    rows = [e for e in events if e["cat"] in ROWS and e.get("args", {}).get("correlation") in index]
    rows.sort(key=lambda e: (host[index[e["args"]["correlation"]]]["ts"], e["ts"]))
    streams = {key: at for at, (key, _) in enumerate(Counter(map(_row_stream, rows)).most_common())}  # 0 is the busiest
    stream = np.array([streams[_row_stream(e)] for e in rows], np.int64)
    launch = np.array([index[e["args"]["correlation"]] for e in rows], np.int64)
    start = np.array([round((e["ts"] - low) * 1000) for e in rows], np.int64)
    dur = np.array([max(1, round(e["dur"] * 1000)) for e in rows], np.int64)
    lead = np.clip(start - begin[launch], *LEAD_NS) if len(rows) else start
    mains = [(e["pid"], e["tid"]) for e in host if e["cat"] in CALLS]
    program = Program(
        begin, end, [Info(e["cat"], e["name"], e["pid"], e["tid"], e.get("args", {})) for e in host],
        launch, dur, stream, _dependencies(start, dur, stream), lead,
        [Info(e["cat"], e["name"], e["pid"], e["tid"], e.get("args", {})) for e in rows],
        {}, round((high - low) * 1000),
        {key: value for key, value in document.items() if key != "traceEvents"},
        mains[0] if mains else (1, 1),
    )  # fmt: skip
    program.waits = _waits(program)
    return program


def _dependencies(start: np.ndarray, dur: np.ndarray, stream: np.ndarray) -> np.ndarray:
    """For each row the row of another stream whose end let it start: it had been idle before, and ended just before."""
    after = np.full(start.size, -1, np.int64)
    ends = start + dur
    if np.unique(stream).size < 2:
        return after
    order = np.argsort(ends, kind="stable")
    sorted_ends = ends[order]
    for row in range(start.size):
        at = int(np.searchsorted(sorted_ends, start[row] + 1)) - 1
        while at >= 0 and start[row] - sorted_ends[at] <= WAITED_NS:
            other = int(order[at])
            if stream[other] != stream[row] and other < row:
                after[row] = other
                break
            if stream[other] == stream[row]:
                break  # its own stream was busy until then
            at -= 1
    return after


def _waits(program: Program) -> dict[int, tuple[int, int]]:
    waits: dict[int, tuple[int, int]] = {}
    copies = {int(launch): row for row, launch in enumerate(program.launch)}
    for at, info in enumerate(program.host):
        if info.cat not in CALLS:
            continue
        if _SYNC_DEVICE.search(info.name):
            waits[at] = DEVICE, 0
        elif at in copies and "Memcpy" in info.name:
            row = copies[at]
            name = program.rows[row].name
            if "Pageable" in name and ("DtoH" in name or program.dur[row] > 20_000):
                waits[at] = ROW, row
        elif _SYNC_STREAM.search(info.name):
            waits[at] = STREAM, _stream_before(program, at)
    return waits


def _stream_before(program: Program, at: int) -> int:
    """The stream that a call waits for: that of the copy which its thread launched before it, or the first."""
    thread = program.host[at].pid, program.host[at].tid
    before = [
        (program.begin[launch], row)
        for row, launch in enumerate(program.launch.tolist())
        if program.begin[launch] < program.begin[at] and (program.host[launch].pid, program.host[launch].tid) == thread
    ]
    if not before or "Memcpy" not in program.host[program.launch[(row := max(before)[1])]].name:
        return 0
    return int(program.stream[row])


def repeat(program: Program, times: int, rng: np.random.Generator, noise: float = 0.02) -> Program:
    """The program again and again, each time a little different, within steps that its profiler marks."""
    factors = np.maximum(0.7, 1 + noise * rng.standard_normal(times))
    lengths = np.round(program.length * factors).astype(np.int64)
    shifts = np.cumsum(lengths) - lengths
    hosts, rows = len(program.host) + 1, len(program.rows)
    begin, end = (
        np.column_stack([(side * factors[:, None]).astype(np.int64) + shifts[:, None], last])
        for side, last in ((program.begin, shifts), (program.end, shifts + lengths))
    )
    jitter = 1 + noise * rng.standard_normal((times, rows))
    step = np.repeat(np.arange(times), rows)
    after = np.tile(program.after, times)
    return dataclasses.replace(
        program,
        begin=begin.ravel(),
        end=end.ravel(),
        host=[info for step in range(times) for info in _numbered_host(program, step)],
        launch=np.tile(program.launch, times) + step * hosts,
        dur=np.maximum(1, program.dur * jitter).astype(np.int64).ravel(),
        stream=np.tile(program.stream, times),
        after=np.where(after >= 0, after + step * rows, -1),
        lead=np.tile(program.lead, times),
        rows=[_renumbered(info, step) for step in range(times) for info in program.rows],
        waits={
            at + step * hosts: (kind, row + step * rows if kind == ROW else row)
            for step in range(times)
            for at, (kind, row) in program.waits.items()
        },
        length=int(lengths.sum()),
    )


def dry_run(program: Program, steps: int) -> tuple[Replay, np.ndarray]:
    """A replay of so many equal steps without names, and the steps' begins."""
    plain = dataclasses.replace(program, host=[], rows=[])
    hosts, rows = len(program.host), len(program.rows)
    shifts = np.arange(steps) * program.length
    step = np.repeat(np.arange(steps), rows)
    after = np.tile(program.after, steps)
    plain.begin, plain.end = ((side + shifts[:, None]).ravel() for side in (program.begin, program.end))
    plain.launch, plain.dur = np.tile(program.launch, steps) + step * hosts, np.tile(program.dur, steps)
    plain.stream, plain.lead = np.tile(program.stream, steps), np.tile(program.lead, steps)
    plain.after = np.where(after >= 0, after + step * rows, -1)
    plain.waits = {
        at + step * hosts: (kind, row + step * rows if kind == ROW else row)
        for step in range(steps)
        for at, (kind, row) in program.waits.items()
    }
    replay = simulate(plain)
    return replay, replay.at(shifts)


def _numbered_host(program: Program, step: int) -> list[Info]:
    mark = Info("user_annotation", f"ProfilerStep#{step + 5}", *program.main, {"External id": 900_000_000 + step})
    return [*(_renumbered(info, step) for info in program.host), mark]


_IDS = ("correlation", "External id", "external id", "Record function id", "Python id", "Python parent id", "Ev Idx")


def _renumbered(info: Info, step: int) -> Info:
    """The same event, with ids of its own in each step."""
    args = info.args
    moved = {key: args[key] + step * 10_000_000 for key in _IDS if key in args and isinstance(args[key], int)}
    return info._replace(args={**args, **moved}) if moved and step else info


def simulate(program: Program) -> Replay:
    """All timestamps, from the host's work and the rows' durations."""
    actions = [(begin, 1, row) for row, begin in enumerate(program.begin[program.launch].tolist())]
    actions += [(int(program.begin[at]), 2, at) for at in program.waits]
    actions.sort()
    old, new = [0], [0]  # the host's clock as recorded → as simulated, piecewise linear
    end, lead, dur, on, after, launches = (
        side.tolist()
        for side in (program.end, program.lead, program.dur, program.stream, program.after, program.launch)
    )
    starts, ends = [0] * len(dur), [0] * len(dur)
    free: dict[int, int] = {}
    begun: list[int] = []  # starts of rows in the order of their launches, running maximum

    def now(at: int) -> int:
        if at >= old[-1]:
            return new[-1] + at - old[-1]
        place = bisect.bisect_right(old, at) - 1
        span = old[place + 1] - old[place]
        return new[place] + round((at - old[place]) * (new[place + 1] - new[place]) / span)

    def block(since: int, until: int, ends_at: int) -> None:
        if since < old[-1]:
            return  # another thread waits already
        begins_at = now(since)
        old.extend((since, max(until, since + 1)))
        new.extend((begins_at, max(ends_at, begins_at + 1)))

    for at, kind, item in actions:
        if kind == 1:
            if len(begun) >= QUEUE and begun[-QUEUE] > now(at):
                block(at, end[launches[item]], begun[-QUEUE])
            submitted = now(at) + lead[item]
            if len(begun) >= QUEUE:
                submitted = max(submitted, begun[-QUEUE])
            stream = on[item]
            start = max(submitted, free.get(stream, 0))
            if after[item] >= 0:
                start = max(start, ends[after[item]])
            starts[item], ends[item] = start, start + dur[item]
            free[stream] = ends[item]
            begun.append(max(start, begun[-1]) if begun else start)
        else:
            what, row = program.waits[item]
            done = ends[row] if what == ROW else (free.get(row, 0) if what == STREAM else max(free.values(), default=0))
            block(at, end[item], max(now(at) + SYNC_NS // 2, done + SYNC_NS))
    old.append(max(old[-1], int(program.end.max(initial=0))) + 1)
    new.append(new[-1] + old[-1] - old[-2])
    replay = Replay(
        program,
        program.begin,
        program.end,
        np.array(starts, np.int64),
        np.array(ends, np.int64),
        (np.array(old, float), np.array(new, float)),
    )
    replay.begin, replay.end = replay.at(program.begin), replay.at(program.end)
    return replay


def write(path: Path, events: list[dict[str, Any]], head: dict[str, Any]) -> None:
    """The events as a trace's file."""
    path.write_text(json.dumps({"schemaVersion": 1, **head, "traceEvents": events}))
