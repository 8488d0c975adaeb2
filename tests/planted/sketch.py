"""Host slices and launches to insert into a program, and ways to change it as a whole."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from planted.replay import CALLS, ROW, STREAM, Info, Program, dry_run

MATMUL = re.compile(r"gemm|nvjet|Cijk|cutlass::Kernel|matmul|tensorop", re.IGNORECASE)
CONVOLUTION = re.compile(r"dgrad|wgrad|fprop|winograd|implicit|conv2d|convolve|fft", re.IGNORECASE)
ATTENTION = re.compile(r"flash|fmha|attn_fwd|attention", re.IGNORECASE)
COMMUNICATION = re.compile(r"nccl", re.IGNORECASE)
PAUSE_NS = 100_000  # a host between two points of a warm loop pauses no longer
HEAVY = re.compile("|".join(p.pattern for p in (MATMUL, CONVOLUTION, ATTENTION)), re.IGNORECASE)


@dataclass
class Sketch:
    """What the host does in a stretch of time that is inserted at one instant."""

    at: int
    thread: tuple[Any, Any]
    now: int = 0
    slices: list[list[Any]] = field(default_factory=list)
    rows: list[tuple[int, int, int, Info, bool]] = field(default_factory=list)
    waits: dict[int, tuple[int, int]] = field(default_factory=dict)
    id: int = 0

    @contextlib.contextmanager
    def slice(self, name: str, cat: str = "cpu_op", **args: Any) -> Iterator[None]:
        """A slice around what is sketched within; a microsecond at each side is its own."""
        self.id += 1
        number = len(self.slices)
        self.slices.append([self.now, 0, Info(cat, name, *self.thread, {"External id": self.id, **args})])
        self.now += 1_000
        yield
        self.now += 1_000
        self.slices[number][1] = self.now

    @contextlib.contextmanager
    def nest(self, *operators: tuple[str, dict[str, Any]]) -> Iterator[None]:
        """Operators one in the other, each with its arguments."""
        with contextlib.ExitStack() as stack:
            for name, args in operators:
                stack.enter_context(self.slice(name, **args))
            yield

    def idle(self, length: int) -> None:
        """The host is busy with something that isn't recorded, or that the slices around it name."""
        self.now += int(length)

    def call(self, name: str, length: int = 4_000, wait: tuple[int, int] | None = None) -> int:
        """A runtime call."""
        self.id += 1
        cat = "cuda_driver" if re.match(r"cu[A-Z]", name) else "cuda_runtime"
        info = Info(cat, name, *self.thread, {"correlation": self.id})
        self.slices.append([self.now, self.now + int(length), info])
        if wait:
            self.waits[len(self.slices) - 1] = wait
        self.now += int(length)
        return len(self.slices) - 1

    def launch(self, name: str, dur: int, stream: int = 0, cat: str = "kernel", call: str = "cudaLaunchKernel",
               length: int = 4_000, joins: bool = False, waits: bool = False, **args: Any) -> None:  # fmt: skip
        """A call that launches one row.

        Args:
            joins: Whether the row waits for what was launched before on other streams, and the next row for it.
            waits: Whether the call returns only when its row is done.
        """
        number = self.call(call, length)
        if waits:
            self.waits[number] = ROW, len(self.rows)
        correlation = self.slices[number][2].args["correlation"]
        shape = {"grid": [2048, 1, 1], "block": [256, 1, 1], "blocks per SM": 16.0, "warps per SM": 64.0,
                 "est. achieved occupancy %": 60, "registers per thread": 64, "shared memory": 0} if cat == "kernel" else {}  # fmt: skip
        info = Info(cat, name, None, None, {"correlation": correlation, "External id": self.id, **shape, **args})
        self.rows.append((number, max(1, int(dur)), stream, info, joins))


def insert(program: Program, sketches: list[Sketch]) -> Program:
    """The program with these stretches of host time in it."""
    result = program.copy()
    sketches = sorted(sketches, key=lambda s: s.at)
    at = np.array([s.at for s in sketches], np.int64)
    shift = np.concatenate([[0], np.cumsum([s.now for s in sketches])]).astype(np.int64)
    result.begin = program.begin + shift[np.searchsorted(at, program.begin, "right")]
    result.end = program.end + shift[np.searchsorted(at, program.end, "left")]
    result.end = np.maximum(result.end, result.begin)
    result.length = program.length + int(shift[-1])
    begins, ends, launches, durs, streams, afters = [], [], [], [], [], []
    number = program.next_id
    device, vendor = _row_places(program), "hip" if is_amd(program) else "cuda"
    for sketch, before in zip(sketches, shift.tolist(), strict=False):
        hosts, rows, offset = len(result.host), len(result.rows), number
        for begin, end, info in sketch.slices:
            begins.append(sketch.at + before + begin)
            ends.append(sketch.at + before + end)
            args = {k: v + offset if k in ("External id", "correlation") else v for k, v in info.args.items()}
            result.host.append(info._replace(name=re.sub(r"^cuda(?=[A-Z])", vendor, info.name), args=args))
        for launch, dur, stream, info, joins in sketch.rows:
            launches.append(hosts + launch)
            durs.append(dur)
            streams.append(stream)
            afters.append(_last_before(program, sketch.at, stream) if joins else -1)
            pid, tid, device_id, stream_id = device(stream)
            moved = {key: info.args[key] + offset for key in ("correlation", "External id")}
            args = {**info.args, **moved, "device": device_id, "stream": stream_id}
            result.rows.append(info._replace(pid=pid, tid=tid, args=args))
            if joins and (following := _first_from(program, sketch.at, stream)) >= 0:
                result.after[following] = len(result.rows) - 1
        result.waits.update({hosts + at: (kind, rows + row if kind == ROW else row) for at, (kind, row) in sketch.waits.items()})  # fmt: skip
        number += sketch.id + 1
    added = {"begin": begins, "end": ends, "launch": launches, "dur": durs, "stream": streams, "after": afters}
    added["lead"] = [5_000] * len(durs)
    arrays = {k: np.concatenate([getattr(result, k), np.array(v, np.int64)]) for k, v in added.items()}
    return dataclasses.replace(result, **arrays, next_id=number)


def is_amd(program: Program) -> bool:
    """Whether the program runs on ROCm."""
    return any(info.name.startswith("hip") for info in program.host)


def _row_places(program: Program) -> Callable[[int], tuple[Any, Any, Any, Any]]:
    """For a stream's number: pid, tid, device and stream as rows have them; new ones for a new stream."""
    known: dict[int, tuple[Any, Any, Any, Any]] = {}
    for number, info in zip(program.stream.tolist(), program.rows, strict=True):
        known.setdefault(
            number, (info.pid, info.tid, info.args.get("device", info.pid), info.args.get("stream", info.tid))
        )
    pid, _, device, _ = next(iter(known.values()), (0, 7, 0, 7))
    return lambda number: known.get(number, (pid, 100 + number, device, 100 + number))


def _last_before(program: Program, at: int, stream: int) -> int:
    """The row launched last before an instant on another stream."""
    earlier = np.flatnonzero((program.begin[program.launch] < at) & (program.stream != stream))
    return int(earlier[-1]) if earlier.size else -1


def _first_from(program: Program, at: int, stream: int) -> int:
    later = np.flatnonzero((program.begin[program.launch] >= at) & (program.stream != stream))
    return int(later[0]) if later.size else -1


def spots(program: Program, *, in_optimizer: bool = False) -> list[tuple[int, tuple[Any, Any]]]:
    """Instants between operators that launch, and the thread: where something can be inserted.

    What happens in the optimizer's ranges has a cause of its own, so they are left out unless asked for.
    """
    result, until = [], -1
    optimizer = [at for at, info in enumerate(program.host) if info.name.startswith("Optimizer.")]
    ranges = [] if in_optimizer else list(zip(program.begin[optimizer], program.end[optimizer], strict=True))
    launching = np.sort(program.begin[program.launch])
    order = np.lexsort((-program.end, program.begin))
    calls = [at for at in order.tolist() if program.host[at].cat in CALLS]
    call_begin, call_end = program.begin[calls], np.maximum.accumulate(program.end[calls]) if calls else program.end
    for at in order.tolist():
        info = program.host[at]
        if info.cat != "cpu_op" or program.begin[at] < until:
            continue
        until = int(program.end[at])
        begin = int(program.begin[at])
        inside = int(np.searchsorted(call_begin, begin, "left")) - 1
        if (inside >= 0 and call_end[inside] > begin) or any(low <= begin <= high for low, high in ranges):
            continue
        if np.searchsorted(launching, begin) < np.searchsorted(launching, until):
            result.append((begin, (info.pid, info.tid)))
    return result or [(0, program.main)]


def choose(program: Program, count: int, rng: np.random.Generator) -> list[Sketch]:
    """Empty sketches at so many places, spread over the program."""
    places = spots(program)
    count = min(count, len(places))
    edges = np.linspace(0, len(places), count + 1).astype(int)
    return [Sketch(*places[int(rng.integers(low, high))]) for low, high in itertools.pairwise(edges)]


def squeeze(program: Program, most_ns: int) -> Program:
    """The program without pauses of the host that are longer than this."""
    points = np.unique(np.concatenate([[0], program.begin, program.end, [program.length]]))
    moved = np.concatenate([[0], np.cumsum(np.minimum(np.diff(points), most_ns))])
    result = program.copy()
    result.begin, result.end = (moved[np.searchsorted(points, side)] for side in (program.begin, program.end))
    result.length = int(moved[-1])
    return result


def faster_host(program: Program, factor: float) -> Program:
    """The same host work in less time."""
    result = program.copy()
    result.begin, result.end = ((side * factor).astype(np.int64) for side in (program.begin, program.end))
    result.length = round(program.length * factor)
    return result


def duration_ns(program: Program, steps: int = 2) -> int:
    """How long so many of its steps take, by the host or the device, whichever ends last."""
    return dry_run(program, steps)[0].last_ns()


def lost_share(program: Program, planted: Program) -> float:
    """Which part of the planted program's time the plant costs."""
    return 1 - duration_ns(program) / duration_ns(planted)


def calibrate(program: Program, plant: Callable[[int], Program], share: float) -> Program:
    """Plant as much as costs this share of the time (secant method on the amount)."""
    amount = int(share / (1 - share) * duration_ns(program) / 2)
    goal = duration_ns(program) / (1 - share)
    for _ in range(6):
        planted = plant(amount)
        missing = goal - duration_ns(planted)
        if abs(missing) < 0.05 * goal:
            return planted
        amount = max(1_000, amount + int(missing / 2))
    return plant(amount)


def without_waits(program: Program) -> Program:
    """The program with queries in place of the calls that wait for the device."""
    result = dataclasses.replace(program.copy(), waits={})
    for at in program.waits:
        info = result.host[at]
        result.host[at] = info._replace(name=re.sub(r"^([a-z]+)\w+Synchronize$", r"\1EventQuery", info.name))
    return result


def end_with_a_read(program: Program) -> Program:
    """At the end of the step the host reads the loss."""
    sketch = Sketch(program.length, program.main)
    read_scalar(sketch)
    return insert(program, [sketch])


def read_scalar(sketch: Sketch) -> None:
    """`loss.item()`: a copy of four bytes that the host waits for."""
    with sketch.slice("aten::item"), sketch.slice("aten::_local_scalar_dense"):
        sketch.launch(
            "Memcpy DtoH (Device -> Pageable)", 1_500, cat="gpu_memcpy", call="cudaMemcpyAsync", length=6_000, bytes=4
        )
        sketch.call("cudaStreamSynchronize", 4_000, (STREAM, 0))
