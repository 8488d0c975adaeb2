"""A machine on which a job runs: host threads, streams of devices, ranks, loader workers, and what waits for what.

A job is written as a program: calls on a `Thread` append nodes. `run` then gives every node its start and end. A node
starts when the one before it in its lane has ended and all that it waits for has; so how much of a copy, a batch or a
collective is hidden isn't an input, it comes out. The same program with a change is the job after the change.

All times are integer nanoseconds. Nothing here knows how a recording is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

QUEUE_DEPTH = 1024  # launches that wait in a stream before the next launch blocks, as in CUDA
LATENCY_NS = 4_500  # from the begin of a launch to that of its kernel on an idle device
KERNEL_GAP_NS = 900  # between two kernels of a stream

Lane = tuple[str, int, int]  # ("host", process, thread), ("stream", device, stream) or ("worker", 0, number)


class Deadlock(RuntimeError):
    """No rank can go on: a collective isn't joined by all of its ranks."""


@dataclass(slots=True, eq=False)
class Node:
    """A piece of work of one lane, or a wait.

    `after`: nodes that must have ended before it starts; `until`: nodes that must have ended before it ends;
    `launch`: the call that launched it; `room`: the work whose start makes room in the queue of its stream;
    `meeting`: the collective that it is a rank's part of.
    """

    lane: Lane
    name: str
    category: str
    length: int
    args: dict[str, Any] = field(default_factory=dict)
    after: tuple[Node, ...] = ()
    until: tuple[Node, ...] = ()
    launch: Node | None = None
    room: Node | None = None
    meeting: Meeting | None = None
    before: Node | None = None
    start: int = -1
    end: int = -1


@dataclass(slots=True, eq=False)
class Range:
    """An operator, annotation or Python function: from one border to another of the same thread."""

    name: str
    category: str
    args: dict[str, Any]
    begin: Node
    finish: Node | None = None


@dataclass(slots=True, eq=False)
class Meeting:
    """A collective: it ends for all ranks when the last has joined and the data has been moved."""

    size: int
    length: int
    parts: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class Kernel:
    """A kernel of a device: its symbol, how long it runs, and how it is launched."""

    name: str
    length: int
    grid: tuple[int, int, int] = (1056, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    registers: int = 96
    shared_memory: int = 0


@dataclass
class Pace:
    """How fast the host is: nanoseconds of an operator itself, of a launch, and of a call that needn't wait."""

    operator: int = 2_600
    launch: int = 4_200
    call: int = 1_500


class Process:
    """A rank: its threads, its devices, and all that they do, in the order of the program."""

    def __init__(self, rank: int, pace: Pace):
        self.rank, self.pace = rank, pace
        self.pid = 4_000 + rank
        self.nodes: list[Node] = []
        self.ranges: list[Range] = []
        self._last: dict[Lane, Node] = {}
        self._queued: dict[Lane, list[Node]] = {}
        self._numbers: Counter[str] = Counter()
        self.main = Thread(self, self.pid, f"thread {self.pid} (python)")
        self.autograd = Thread(self, self.pid + 50, f"thread {self.pid + 50} (pt_autograd_0)")

    def add(self, node: Node) -> Node:
        """Append work to its lane."""
        node.before = self._last.get(node.lane)
        self._last[node.lane] = node
        self.nodes.append(node)
        return node

    def last(self, lane: Lane) -> Node | None:
        """The last work of a lane until now."""
        return self._last.get(lane)

    def queue(self, node: Node) -> Node:
        """Append work to a stream; its launch waits while the queue is full."""
        queued = self._queued.setdefault(node.lane, [])
        if len(queued) >= QUEUE_DEPTH:
            assert node.launch is not None
            node.launch.room = queued[-QUEUE_DEPTH]
        queued.append(node)
        return self.add(node)

    def number(self, of: str) -> int:
        """The next number: of a correlation, of an operator."""
        self._numbers[of] += 1
        return self._numbers[of]


class Thread:
    """A host thread. Each method is what a program does there, one after the other."""

    def __init__(self, process: Process, tid: int, name: str):
        self.process, self.tid, self.name = process, tid, name
        self.lane: Lane = ("host", process.pid, tid)
        self._operators: list[int] = []

    def spend(self, length: int, after: Iterable[Node] = ()) -> Node:
        """The host is busy with whatever is open."""
        return self.process.add(Node(self.lane, "", "", max(0, int(length)), after=tuple(after)))

    def wait(self, *nodes: Node) -> Node:
        """The host does nothing until these have ended."""
        return self.process.add(Node(self.lane, "", "", 0, until=nodes))

    @contextmanager
    def range(self, name: str, category: str = "user_annotation", **args: Any) -> Iterator[Range]:
        """An annotation, or a Python function: what is done meanwhile is inside."""
        opened = Range(name, category, args, self.spend(0))
        self.process.ranges.append(opened)
        self.spend(150)
        yield opened
        opened.finish = self.spend(0)
        self.spend(120)

    @contextmanager
    def operator(self, names: str, dims: Any = (), types: Any = (), **args: Any) -> Iterator[None]:
        """An operator of torch; `outer > inner` is one that calls another with the same inputs."""
        name, _, inner = names.partition(" > ")
        number = self.process.number("operator")
        shapes = {"Input Dims": [list(dim) for dim in dims], "Input type": list(types)} if dims else {}
        half = self.process.pace.operator // 2
        with self.range(name, "cpu_op", **{"External id": number, **shapes, **args}):
            self.spend(half)
            self._operators.append(number)
            with self.operator(inner, dims, types, **args) if inner else nullcontext():
                yield
            self._operators.pop()
            self.spend(half)

    def call(self, name: str, length: int | None = None, *, until: Iterable[Node] = (), **args: Any) -> Node:
        """A call of the runtime: it takes so long, and lasts until these nodes have ended."""
        length = self.process.pace.call if length is None else int(length)
        args = {"cbid": 1, "correlation": args.get("correlation") or self.process.number("correlation")}
        if self._operators:
            args["External id"] = self._operators[-1]
        return self.process.add(Node(self.lane, name, "cuda_runtime", length, args, until=tuple(until)))

    def launch(
        self, kernel: Kernel, *, device: int = 0, stream: int = 7, after: Iterable[Node] = (), **args: Any
    ) -> Node:
        """Launch a kernel into a stream; it may also wait for nodes of other streams."""
        call = self.call("cudaLaunchKernel", self.process.pace.launch)
        shape = {
            "registers per thread": kernel.registers,
            "shared memory": kernel.shared_memory,
            "grid": list(kernel.grid),
            "block": list(kernel.block),
            "blocks per SM": round(kernel.grid[0] * kernel.grid[1] / 132, 4),
            "warps per SM": round(kernel.grid[0] * kernel.grid[1] * kernel.block[0] / 32 / 132, 4),
            "est. achieved occupancy %": 50,
        }
        return self._enqueue(call, kernel.name, "kernel", kernel.length, device, stream, after, {**shape, **args})

    def copy(
        self,
        name: str,
        count_bytes: int,
        rate: float,
        *,
        device: int = 0,
        stream: int = 7,
        is_blocking: bool = False,
        after: Iterable[Node] = (),
    ) -> Node:
        """Launch a copy of so many bytes at so many bytes per nanosecond; `is_blocking`: the call lasts until its end."""
        length = int(1_300 + count_bytes / rate)
        args = {"bytes": int(count_bytes), "memory bandwidth (GB/s)": round(count_bytes / length, 3)}
        if not is_blocking:
            call = self.call("cudaMemcpyAsync", self.process.pace.launch)
            return self._enqueue(call, name, "gpu_memcpy", length, device, stream, after, args)
        issue = self.spend(0)
        issue.args = {"correlation": self.process.number("correlation")}
        node = self._enqueue(issue, name, "gpu_memcpy", length, device, stream, after, args)
        self.call("cudaMemcpyAsync", until=(node,), correlation=issue.args["correlation"])
        return node

    def synchronize(self, name: str, *, device: int = 0, stream: int | None = None) -> Node:
        """Wait for a stream, or for all streams of a device."""
        lanes = [lane for lane in self.process._last if lane[:2] == ("stream", device) and stream in (None, lane[2])]
        return self.call(name, until=[self.process._last[lane] for lane in lanes])

    def _enqueue(
        self,
        call: Node,
        name: str,
        category: str,
        length: int,
        device: int,
        stream: int,
        after: Iterable[Node],
        args: dict[str, Any],
    ) -> Node:
        common = {"device": device, "context": 1, "stream": stream, "correlation": call.args["correlation"]}
        if self._operators:
            common["External id"] = self._operators[-1]
        lane = ("stream", device, stream)
        node = Node(lane, name, category, max(1, int(length)), {**common, **args}, after=tuple(after), launch=call)
        return self.process.queue(node)


def run(processes: list[Process], start: int = 1_000_000) -> None:
    """Give every node its start and end. Raises Deadlock if a collective is never joined by all."""
    positions = [0] * len(processes)
    while any(position < len(process.nodes) for position, process in zip(positions, processes, strict=True)):
        has_moved = False
        for number, process in enumerate(processes):
            while positions[number] < len(process.nodes) and _place(process.nodes[positions[number]], start):
                positions[number] += 1
                has_moved = True
        if not has_moved:
            raise Deadlock


def _place(node: Node, start: int) -> bool:
    """Give a node its times, if all that it depends on has its own."""
    needed = [*node.after, *node.until, *([node.before] if node.before else [])]
    if any(other.end < 0 for other in needed) or (node.room and node.room.start < 0):
        return False
    gap = KERNEL_GAP_NS if node.launch else 0
    earliest = [start, *(other.end for other in node.after)]
    if node.before:
        earliest.append(node.before.end + gap)
    if node.launch:
        earliest.append(node.launch.start + LATENCY_NS)
    node.start = max(earliest)
    if node.meeting:
        _join(node.meeting)
        return True
    node.end = max([node.start + node.length, *(other.end + node.length for other in node.until)])
    if node.room:
        node.end = max(node.end, node.room.start + node.length)
    return True


def _join(meeting: Meeting) -> None:
    """End a collective for all of its ranks once the last has joined."""
    starts = [part.start for part in meeting.parts if part.start >= 0]
    if len(starts) == meeting.size:
        for part in meeting.parts:
            part.end = max(starts) + meeting.length
