"""Programs of which everything is known: what runs on the host and on streams, what waits for what, how long it takes.

A program is run by obvious rules; what it took is both written as a trace and returned. So the same program with
shorter work tells what "what if" should have said.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from support.build import TraceBuilder

DEVICE = 0
CALL = 3  # ns that each call takes by itself
RECORD, WAIT = "cudaEventRecord", "cudaStreamWaitEvent"


@dataclass(frozen=True)
class Op:
    """The host computes."""

    name: str
    dur: int


@dataclass(frozen=True)
class Launch:
    """The host launches a kernel."""

    name: str
    stream: int
    dur: int


@dataclass(frozen=True)
class Wait:
    """One stream is told to wait for what another one was given so far."""

    stream: int
    other: int


@dataclass(frozen=True)
class Sync:
    """The host waits for a stream, or for the whole device (None)."""

    stream: int | None


Program = list[Op | Launch | Wait | Sync]


def faster(program: Program, name: str, percent: int) -> Program:
    """The program in which all that is called so takes less time."""
    return [
        replace(part, dur=part.dur - part.dur * percent // 100) if getattr(part, "name", None) == name else part
        for part in program
    ]


@dataclass
class _Run:
    builder: TraceBuilder
    now: int = 0
    number: int = 0
    given: dict[int, int] = field(default_factory=dict)  # when each stream will be through with all that it has
    awaited: dict[int, int] = field(default_factory=dict)  # until when it has to wait before its next row
    last_record: dict[int, int] = field(default_factory=dict)

    def call(self, name: str, dur: int = CALL) -> int:
        self.number += 1
        self.builder.launch(self.now, dur, self.number, name=name)
        self.now += dur
        return self.number


def run(program: Program, *, start: int = 0) -> tuple[TraceBuilder, int]:
    """Return what a recording of one step of the program says, and how long the step took."""
    state = _Run(TraceBuilder(), now=start)
    for part in program:
        _RULES[type(part)](state, part)
    host = state.now
    end = max([host, *state.given.values()])
    state.builder.step(1, start, host - start)
    state.builder.events.insert(0, state.builder.events.pop())  # around what is as long as it
    return state.builder, end - start


def _op(state: _Run, part: Op) -> None:
    state.builder.op(part.name, state.now, part.dur)
    state.now += part.dur


def _launch(state: _Run, part: Launch) -> None:
    number = state.call("cudaLaunchKernel")
    begin = max(state.now, state.given.get(part.stream, 0), state.awaited.pop(part.stream, 0))
    state.builder.kernel(part.name, begin, part.dur, number, stream=part.stream)
    state.given[part.stream] = begin + part.dur


def _wait(state: _Run, part: Wait) -> None:
    record = state.call(RECORD)
    at = state.now
    number = state.call(WAIT)
    arguments = {"cuda_sync_kind": "Stream Wait Event", "wait_on_stream": part.other}
    place = {"device": DEVICE, "stream": part.stream, "correlation": number}
    known = {"wait_on_cuda_event_record_corr_id": record, "wait_on_cuda_event_id": record}
    state.builder.event("cuda_sync", WAIT, at, 1, pid=DEVICE, tid=part.stream, **arguments, **place, **known)
    over = state.given.get(part.other, 0)
    state.awaited[part.stream] = max(state.awaited.get(part.stream, 0), over)


def _sync(state: _Run, part: Sync) -> None:
    begin = state.now
    over = max(state.given.values(), default=0) if part.stream is None else state.given.get(part.stream, 0)
    name = "cudaDeviceSynchronize" if part.stream is None else "cudaStreamSynchronize"
    number = state.call(name, max(over - begin, 0) + CALL)
    if part.stream is not None:
        place = {"device": DEVICE, "stream": part.stream, "correlation": number, "cuda_sync_kind": "Stream Sync"}
        state.builder.event("cuda_sync", "Stream Sync", begin, 1, pid=DEVICE, tid=part.stream, **place)


_RULES = {Op: _op, Launch: _launch, Wait: _wait, Sync: _sync}
