"""What the tables must say of a trace, computed from its events' JSON slowly, obviously and apart from the package.

Only what names mean is taken from the package. Times are small integers: time is counted instant by instant.
"""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from kinetoscope_tb.names.kernels import (
    communication_rule,
    is_collective_call,
    is_communication_range,
    is_data_loading,
    operator_of,
    step_number,
)
from kinetoscope_tb.names.tensor_cores import is_matrix_op, tensor_cores
from support import oracle
from support.build import TraceBuilder

DEVICE = {"kernel": "Kernel", "gpu_memcpy": "Memcpy", "gpu_memset": "Memset"}
PARTS = ("Kernel", "Memcpy", "Memset", "Communication", "Runtime", "DataLoader", "CPU Exec")


@dataclass(eq=False)
class Row:
    """One event; what it belongs to is filled in by `Recording`."""

    event: dict[str, Any]
    start: int
    end: int
    parent: Row | None = None  # of a range: the one right around it
    inside: list[Row] = field(default_factory=list)  # of a range: the ranges and calls right in it
    host: Row | None = None  # of a call: the innermost range open when it began
    op: Row | None = None  # of a call, of device work and of memory: the innermost operator
    launch: Row | None = None  # of device work

    @property
    def name(self) -> str:
        return self.event["name"]

    @property
    def thread(self) -> Any:
        return self.event["tid"]

    @property
    def is_op(self) -> bool:
        """torch up to 1.11 gave the annotations of data loaders the category of operators."""
        return self.event["cat"] == "cpu_op" and not is_data_loading(self.name)

    @property
    def dur(self) -> int:
        return self.end - self.start

    @property
    def is_communication(self) -> bool:
        caller = self.launch and self.launch.host
        is_launched_by_collective = self.event["cat"] == "kernel" and bool(caller) and is_collective_call(caller.name)
        return communication_rule(self.name) is not None or is_launched_by_collective

    @property
    def tensor_cores(self) -> str:
        return "no" if self.is_communication else tensor_cores(self.name)

    @property
    def is_repeat(self) -> bool:
        """Whether it is the only thing in an operator of its name."""
        outer = self.parent
        same = outer is not None and self.is_op and outer.is_op and operator_of(outer.name) == operator_of(self.name)
        return same and len(outer.inside) == 1

    @property
    def call(self) -> Row | None:
        """The call that it counts for: itself, or the one that it repeats."""
        return self.parent.call if self.is_repeat else self

    def ancestors(self) -> Iterable[Row]:
        row: Row | None = self
        while row is not None:
            yield row
            row = row.parent

    def innermost(self, name: str) -> Row | None:
        """The innermost call of an operator of this name around it, which may be itself."""
        return next((row for row in self.ancestors() if row.is_op and not row.is_repeat and row.name == name), None)

    def arg(self, name: str) -> Any:
        return self.event["args"].get(name)


class Recording:
    """The rows of a trace by kind, linked."""

    def __init__(self, builder: TraceBuilder) -> None:
        rows = [Row(e, e["ts"].ns, e["ts"].ns + (e["dur"].ns if "dur" in e else 0)) for e in builder.events]

        self.rows = rows

        def of(*categories: str) -> list[Row]:
            return [row for row in rows if row.event["cat"] in categories]

        self.ranges = sorted(of("cpu_op", "user_annotation"), key=lambda row: (row.start, -row.end))
        self.calls = sorted(of("cuda_runtime"), key=lambda row: (row.start, -row.end))
        self.device = sorted(of(*DEVICE), key=lambda row: row.start)
        self.memory = [row for row in rows if row.name == "[memory]"]
        for thread in {row.thread for row in self.ranges}:
            ranges = [row for row in self.ranges if row.thread == thread]
            for row, outer in zip(ranges, oracle.parents([(r.start, r.end) for r in ranges]), strict=True):
                if outer >= 0:
                    row.parent = ranges[outer]
                    row.parent.inside.append(row)
        self.link()

    def link(self) -> None:
        for row in [*self.calls, *self.memory]:
            row.host = self.innermost(row.thread, row.start)
            row.op = next((r for r in row.host.ancestors() if r.is_op), None) if row.host else None
        for call in self.calls:
            if call.host:
                call.host.inside.append(call)
            named = [r for r in self.by_thread() if r.is_op and r.arg("External id") == call.arg("External id")][:1]
            if not call.op and named and named[0].start <= call.start and named[0].end >= call.end:
                call.op = named[0]
        calls = sorted(self.calls, key=lambda row: (self.threads().index(row.thread), row.start, -row.end))
        for row in self.device:
            number = row.arg("correlation")  # 0 is none
            row.launch = next((c for c in calls if number and c.arg("correlation") == number), None)
            row.op = row.launch.op if row.launch else None

    def threads(self) -> list[Any]:
        """In the order in which the file names them first."""
        return sorted({row.thread for row in [*self.ranges, *self.calls, *self.memory]})

    def by_thread(self) -> list[Row]:
        return sorted(self.ranges, key=lambda row: self.threads().index(row.thread))

    def innermost(self, thread: Any, at: int) -> Row | None:
        """The range that began last of those that are open."""
        return ([r for r in self.ranges if r.thread == thread and r.start <= at < r.end] or [None])[-1]

    def self_ns(self, row: Row) -> int:
        """How many instants of a range belong neither to a range right in it nor to a call made in it.

        A call counts up to where the next range of its thread begins.
        """
        busy = set()
        for inner in row.inside:
            later = [r.start for r in self.ranges if r.thread == inner.thread and r.start > inner.start]
            end = inner.end if inner in self.ranges else min([inner.end, *later])
            busy |= set(range(inner.start, end))
        return len(set(range(row.start, row.end)) - busy)

    def steps(self) -> list[tuple[str, int, int, bool]]:
        """(name, start, end, whether all of it was recorded) of each step's window."""
        marked = [r for r in self.ranges if not r.is_op and step_number(r.name)]
        python = [row for row in self.rows if row.event["cat"] == "python_function"]
        everything = [*self.ranges, *self.calls, *self.device] or python or self.rows
        if not marked:
            first, last = min((r.start for r in everything), default=0), max((r.end for r in everything), default=0)
            host = [("all", first, last)]
        else:
            host = [(step_number(r.name) or "", r.start, r.end) for r in marked]

        def step_of(row: Row) -> int | None:
            begun = [i for i, (_, start, _) in enumerate(host) if start <= row.start]
            return begun[-1] if begun and row.end <= host[begun[-1]][2] else None

        work = [[r for r in self.device if r.launch and step_of(r.launch) == i] for i in range(len(host))]
        begin = reached = host[0][1]
        for stream in {(r.arg("device"), r.arg("stream")) for r in self.device}:
            own = [r for r in self.device if (r.arg("device"), r.arg("stream")) == stream]
            later = [r for r in own if r.launch and r.launch.start >= begin]
            if later:
                first = min(r.start for r in later)
                reached = max([reached, *(r.end for r in own if r not in later and r.start < first)])
        found = []
        with_work = [i for i, rows in enumerate(work) if rows]
        for i, (name, start, end) in enumerate(host):
            start = max(start, reached)
            reached = max([end, start, *(r.end for r in work[i])])
            is_cut = bool(with_work) and i > with_work[-1]
            if with_work and i == with_work[-1] and i:
                is_cut = len(work[i]) < 0.8 * len(work[i - 1])
            found.append((name, start, reached, not is_cut))
        return found

    def part_of(self, at: int) -> str:
        """What an instant counts for."""
        active = {"Other"}
        for row in self.device:
            if row.start <= at < row.end:
                active.add("Communication" if row.is_communication else DEVICE[row.event["cat"]])
        for row in self.ranges:
            if row.start <= at < row.end:
                if is_communication_range(row.name):
                    active.add("Communication")
                elif is_data_loading(row.name):
                    active.add("DataLoader")
                elif not step_number(row.name):
                    active.add("CPU Exec")
        if any(row.start <= at < row.end for row in self.calls):
            active.add("Runtime")
        return min(active, key=[*PARTS, "Other"].index)


def steps(recording: Recording) -> list[tuple[Any, ...]]:
    """The rows of `steps`."""
    rows = []
    for name, start, end, is_complete in recording.steps():
        at = [recording.part_of(t) for t in range(start, end)]
        rows.append((name, end - start, *(at.count(part) for part in [*PARTS, "Other"]), is_complete))
    return rows


def overview(recording: Recording) -> list[tuple[Any, ...]]:
    """Category, mean, stdev, least and greatest of `overview`."""
    table = steps(recording)
    counted = [row for row in table if row[-1]] or table
    rows = []
    for name, column in [*((part, 2 + i) for i, part in enumerate([*PARTS, "Other"])), ("Step", 1)]:
        values = [row[column] for row in counted]
        stdev = statistics.stdev(values) if len(values) > 1 else None
        rows.append((name, statistics.mean(values), stdev, min(values), max(values)))
    return rows


def share(part: float, whole: float) -> float | None:
    """None if there is no whole."""
    return part / whole if whole else None


def operators(recording: Recording, key: Callable[[Row], Any] = lambda row: row.name) -> dict[Any, tuple[Any, ...]]:
    """Of each operator: calls, device self and total, host self and total, tensor cores, bytes of host and device."""
    groups = defaultdict(list)
    for row in recording.ranges:
        if row.is_op and not row.is_repeat:
            groups[key(row)].append(row)
    return {name: _operator(recording, calls) for name, calls in groups.items()}


def op_kernels(recording: Recording) -> dict[tuple[str, tuple[tuple[str, int], ...]], tuple[int, int]]:
    """Of each operator and each set of device work that its calls launch: calls, and time."""
    found: dict[Any, tuple[int, int]] = defaultdict(lambda: (0, 0))
    calls = [row for row in recording.ranges if row.is_op and not row.is_repeat]
    for call in calls:
        launched = [
            row
            for row in recording.device
            if row.op and call is next((a for a in row.op.ancestors() if a.name == call.name and a in calls), None)
        ]
        names = tuple(sorted(Counter(row.name for row in launched).items()))
        before = found[call.name, names]
        found[call.name, names] = before[0] + 1, before[1] + sum(row.dur for row in launched)
    busy = {name for name, names in found if names}
    return {key: amounts for key, amounts in found.items() if key[0] in busy}


def _operator(recording: Recording, calls: list[Row]) -> tuple[Any, ...]:
    of_group = {id(call) for call in calls}

    def own(rows: list[Row]) -> list[Row]:
        return [row for row in rows if row.op and id(row.op.call) in of_group]

    def within(rows: list[Row]) -> list[Row]:
        """Each row as often as a call of the group is around it."""
        return [row for row in rows if row.op for outer in row.op.ancestors() if id(outer) in of_group]

    def innermost(rows: list[Row]) -> list[Row]:
        """Each row for which the innermost call of an operator's name around it is of the group, once per such name."""
        names = {call.name for call in calls}
        return [row for row in rows if row.op for name in names if id(row.op.innermost(name)) in of_group]

    def time(rows: list[Row]) -> int:
        return sum(row.dur for row in rows)

    def tensor_core_share(rows: list[Row]) -> float | None:
        answers = [(row.tensor_cores, row.dur) for row in rows]
        return share(sum(d for a, d in answers if a == "yes"), sum(d for a, d in answers if a != "unknown"))

    def size(rows: list[Row]) -> int:
        return sum(row.arg("Bytes") for row in rows)

    device = recording.device
    on_host = [row for row in recording.memory if row.arg("Device Type") == 0]
    elsewhere = [row for row in recording.memory if row.arg("Device Type") != 0]
    inner = [row for row in recording.ranges if any(id(outer) in of_group for outer in row.ancestors())]
    answers = {row.tensor_cores for row in within(device)}
    is_eligible = any(is_matrix_op(row.name) for row in inner) or "yes" in answers
    eligible = None if "unknown" in answers and not is_eligible else is_eligible
    on_device = (time(own(device)), time(innermost(device)))
    cores = (eligible, tensor_core_share(own(device)), tensor_core_share(innermost(device)))
    return (
        len(calls),
        *(on_device if device else (None, None)),
        sum(recording.self_ns(row) for row in recording.ranges if row.call and id(row.call) in of_group),
        time(calls),
        *(cores if device else (None, None, None)),
        *((size(own(on_host)), size(within(on_host))) if on_host else (None, None)),
        *((size(own(elsewhere)), size(within(elsewhere))) if elsewhere else (None, None)),
    )


def kernels(recording: Recording, key: Callable[[Row], Any] = lambda row: row.name) -> dict[Any, tuple[Any, ...]]:
    """Of each kernel: calls, total, longest, shortest, mean blocks per SM and occupancy, whether it communicates."""
    groups = defaultdict(list)
    for row in recording.device:
        if row.event["cat"] == "kernel":
            groups[key(row)].append(row)
    return {
        name: (
            len(rows),
            sum(row.dur for row in rows),
            max(row.dur for row in rows),
            min(row.dur for row in rows),
            weighted(rows, "blocks per SM"),
            weighted(rows, "est. achieved occupancy %"),
            rows[0].is_communication,
        )
        for name, rows in groups.items()
    }


def weighted(rows: list[Row], name: str) -> float | None:
    """Mean of an argument by duration; a plain one if nothing lasts."""
    known = [(row.arg(name), row.dur) for row in rows if row.arg(name) is not None]
    if not known:
        return None
    long = sum(dur for _, dur in known)
    return sum(v * dur for v, dur in known) / long if long else sum(v for v, _ in known) / len(known)


def copies(recording: Recording) -> dict[Any, tuple[Any, ...]]:
    """Of each kind of copy or fill on a device: calls, bytes, total and longest time, bytes per second."""
    groups = defaultdict(list)
    for row in recording.device:
        if row.event["cat"] != "kernel":
            groups[row.name, row.arg("device")].append(row)
    found = {}
    for key, rows in groups.items():
        known = [row for row in rows if row.arg("bytes") is not None]
        moved, long = sum(row.arg("bytes") for row in known), sum(row.dur for row in known)
        rate = share(moved * 10**9, long) if known else None
        total = sum(row.dur for row in rows)
        found[key] = (len(rows), moved if known else None, total, max(row.dur for row in rows), rate)
    return found


def launches(recording: Recording) -> dict[str, tuple[Any, ...]]:
    """Of each runtime function: calls, total and longest time, calls that launched, rows launched and their time."""
    groups = defaultdict(list)
    for call in recording.calls:
        groups[call.name].append(call)
    found = {}
    for name, calls in groups.items():
        rows = [row for row in recording.device if row.launch in calls]
        launching = {id(row.launch) for row in rows}
        times = sum(call.dur for call in calls), max(call.dur for call in calls)
        found[name] = (len(calls), *times, len(launching), len(rows), sum(row.dur for row in rows))
    return found


def activity(recording: Recording) -> dict[tuple[int, int], tuple[int, float]]:
    """Of each device at each instant of the steps: whether a kernel runs, and the multiprocessors' share with work."""
    windows = recording.steps()
    found = {}
    kernels = [row for row in recording.device if row.event["cat"] == "kernel"]
    for device in {row.arg("device") for row in kernels}:
        for at in range(windows[0][1], windows[-1][2]):
            running = [r for r in kernels if r.arg("device") == device and r.start <= at < r.end]
            found[device, at] = (int(bool(running)), min(1, sum(r.arg("blocks per SM") or 0 for r in running)))
    return found


def gpus(recording: Recording) -> dict[int, tuple[Any, ...]]:
    """Of each device: share of instants with a kernel, multiprocessors' share, occupancy, tensor cores' share."""
    windows = recording.steps()
    window = range(windows[0][1], windows[-1][2])
    found = {}
    for device in {row.arg("device") for row in recording.device}:
        rows = [r for r in recording.device if r.event["cat"] == "kernel" and r.arg("device") == device]
        running = {t: [r for r in rows if r.start <= t < r.end] for t in window}
        filled = sum(min(1, sum(r.arg("blocks per SM") or 0 for r in at)) for at in running.values())
        says = any(r.arg("blocks per SM") is not None for r in rows)
        instants = [row for at in running.values() for row in at]
        occupied = [
            r.arg("est. achieved occupancy %") for r in instants if r.arg("est. achieved occupancy %") is not None
        ]
        answers = [row.tensor_cores for row in instants]
        known = len(answers) - answers.count("unknown")
        found[device] = (
            share(sum(bool(at) for at in running.values()), len(window)) if rows else None,
            share(filled, len(window)) if says else None,
            share(sum(occupied) / 100, len(occupied)),
            share(answers.count("yes"), known) if 2 * known >= len(answers) else None,
        )
    return found
