"""A trace in a few lines, and the text of a table in a few more.

`TraceBuilder` writes the JSON that torch writes, and reads it back through the real reader: what a test states is a file.
Times are integer nanoseconds.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any

import polars as pl

from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace import Trace

PID = 1000


class TraceBuilder:
    """Events in the form of torch 2.8 and later, one method per kind of event."""

    def __init__(self, base_ns: int = 1_700_000_000_000_000_000, **top: Any) -> None:
        self.base_ns = base_ns
        self.top = top
        self.events: list[dict[str, Any]] = []

    def event(
        self, cat: str, name: str, at: int, dur: int | None, *, tid: Any = 1, pid: Any = PID, ph: str = "X", **args: Any
    ) -> TraceBuilder:
        """Any event; `at` and `dur` in nanoseconds."""
        times = {"ts": Microseconds(at)} | ({} if dur is None else {"dur": Microseconds(dur)})
        self.events.append({"ph": ph, "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args})
        return self

    def op(self, name: str, at: int, dur: int, *, thread: int = 1, **args: Any) -> TraceBuilder:
        return self.event("cpu_op", name, at, dur, tid=thread, **args)

    def annotation(self, name: str, at: int, dur: int, *, thread: int = 1, **args: Any) -> TraceBuilder:
        return self.event("user_annotation", name, at, dur, tid=thread, **args)

    def step(self, number: int, at: int, dur: int, **args: Any) -> TraceBuilder:
        return self.annotation(f"ProfilerStep#{number}", at, dur, **args)

    def launch(
        self,
        at: int,
        dur: int,
        correlation: int,
        *,
        name: str = "cudaLaunchKernel",
        thread: int = 1,
        cat: str = "cuda_runtime",
        **args: Any,
    ) -> TraceBuilder:
        return self.event(cat, name, at, dur, tid=thread, correlation=correlation, **args)

    def device(
        self,
        cat: str,
        name: str,
        at: int,
        dur: int,
        correlation: int = 0,
        *,
        device: int = 0,
        stream: int = 7,
        **args: Any,
    ) -> TraceBuilder:
        args = {"device": device, "stream": stream, "correlation": correlation, **args}
        return self.event(cat, name, at, dur, pid=device, tid=stream, **args)

    def kernel(self, name: str, at: int, dur: int, correlation: int = 0, **args: Any) -> TraceBuilder:
        return self.device("kernel", name, at, dur, correlation, **args)

    def marked(self, mark: str) -> TraceBuilder:
        """Give the last kernel a mark, as torch 2.15 does for nodes of graphs."""
        self.events[-1]["args"]["name"] = mark
        return self

    def memcpy(
        self, at: int, dur: int, correlation: int = 0, *, name: str = "Memcpy HtoD (Pageable -> Device)", **args: Any
    ) -> TraceBuilder:
        return self.device("gpu_memcpy", name, at, dur, correlation, **args)

    def memset(
        self, at: int, dur: int, correlation: int = 0, *, name: str = "Memset (Device)", **args: Any
    ) -> TraceBuilder:
        return self.device("gpu_memset", name, at, dur, correlation, **args)

    def memory(self, size: int, at: int, *, thread: int = 1, address: int = 1, **args: Any) -> TraceBuilder:
        args = {"Device Type": 0, "Device Id": -1, "Addr": address, "Bytes": size, **args}
        return self.event("cpu_instant_event", "[memory]", at, None, tid=thread, ph="i", **args)

    def allocations(self, count: int, start: int, dur: int, *, thread: int = 99) -> TraceBuilder:
        """So many allocations of another thread, spread evenly: events of the host, whose recording takes time."""
        for number in range(count):
            self.memory(64, start + number * dur // count, thread=thread, address=1 + len(self.events))
        return self

    def out_of_memory(self, asked: int, at: int, *, thread: int = 1, **args: Any) -> TraceBuilder:
        args = {"Device Type": 1, "Device Id": 0, "Bytes": asked, **args}
        return self.event("cpu_instant_event", "[OutOfMemory]", at, None, tid=thread, ph="i", **args)

    def python(self, name: str, at: int, dur: int, *, thread: int = 1, **args: Any) -> TraceBuilder:
        return self.event("python_function", name, at, dur, tid=thread, **args)

    def module(self, name: str, at: int, dur: int, *, number: int = 0, thread: int = 1) -> TraceBuilder:
        """A call of an nn.Module; torch numbers the modules of each class."""
        return self.python(f"nn.Module: {name}", at, dur, thread=thread, **{"Python module id": number})

    def arrow(self, number: int, start: tuple[int, int], end: tuple[int, int], *, cat: str = "fwdbwd") -> TraceBuilder:
        """A flow from one (thread, time) to another: from a forward operator to its backward."""
        for ph, (thread, at) in (("s", start), ("f", end)):
            self.event(cat, cat, at, None, tid=thread, ph=ph)
            self.events[-1]["id"] = number
        return self

    def window(self, at: int, dur: int) -> TraceBuilder:
        """The row that says from when to when was recorded."""
        return self.event("Trace", "PyTorch Profiler (0)", at, dur, pid="Spans", tid="PyTorch Profiler")

    def text(self) -> str:
        """The whole file."""
        top = {"schemaVersion": 1, "displayTimeUnit": "ms", "baseTimeNanoseconds": self.base_ns, **self.top}
        events = ",\n".join(map(dumps, self.events))
        return dumps(top)[:-1] + f', "traceEvents": [\n{events}\n]}}'

    def build(self) -> Trace:
        """The file, read by the reader. Equal files are read once; each trace has results of its own."""
        return replace(read(self.text()))


@lru_cache(maxsize=32)  # tests of one file often have the same trace
def read(text: str) -> Trace:
    """The trace in a text."""
    return read_blocks([text.encode()], path="built.pt.trace.json")


class Microseconds(float):
    """Nanoseconds that are written as microseconds with three decimals, exactly."""

    def __new__(cls, ns: int) -> Microseconds:
        value = super().__new__(cls, ns / 1000)
        value.ns = ns
        return value

    def __repr__(self) -> str:
        sign, ns = ("-", -self.ns) if self.ns < 0 else ("", self.ns)
        return f"{sign}{ns // 1000}.{ns % 1000:03d}"


class Pointer(int):
    """A number that is written in hexadecimal, without quotes: no JSON, but roctracer's (kineto e624b51d)."""

    def __repr__(self) -> str:
        return hex(self)

    __str__ = __repr__


def dumps(value: Any) -> str:
    """JSON text in which numbers keep the form of their class (json.dumps calls float.__repr__, never ours)."""
    if type(value) is str:
        return encode_basestring_ascii(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(k)}: {dumps(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(dumps, value)) + "]"
    return repr(value) if type(value) in (int, Microseconds, Pointer) else json.dumps(value)


def text(frame: pl.DataFrame) -> str:
    """The frame as aligned text: what golden files hold and tests compare."""
    cells = [["-" if v is None else str(v).replace("\n", " < ") for v in row] for row in [frame.columns, *frame.rows()]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in cells)


def same(frame: pl.DataFrame, expected: str) -> None:
    """Fail unless the frame has these columns and rows; two or more spaces part the cells."""

    def cells(lines: str) -> list[list[str]]:
        return [[c.strip() for c in line.split("  ") if c.strip()] for line in lines.strip().splitlines()]

    names = cells(expected)[0]
    got = text(frame.select(names))
    assert cells(got) == cells(expected), "\n" + got
