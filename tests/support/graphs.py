"""Recordings of graphs with any number of graphs, iterations and dialects, and what is true of them.

A `Work` is what one graph was captured from: operators in modules, with kernels. `captured` records the capture,
`replayed` the replays, `eager` the same work without a graph; `truth` says what each replayed row belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl
from hypothesis import strategies as st

from kinetoscope_tb.measures.graphs.replayed_calls import join_captures
from kinetoscope_tb.trace import Trace
from kinetoscope_tb.trace.model import CaptureFiles

from .build import TraceBuilder

Dialect = Literal["rocm", "cuda", "cuda node ids"]
DIALECTS: tuple[Dialect, ...] = ("rocm", "cuda", "cuda node ids")
_BEGIN = {"rocm": "hipStreamBeginCapture", "cuda": "cudaStreamBeginCapture_v10000"}
_END = {"rocm": "hipStreamEndCapture", "cuda": "cudaStreamEndCapture_v10000"}
_LAUNCH = {"rocm": "hipModuleLaunchKernel", "cuda": "cudaLaunchKernel"}
_REPLAY = {"rocm": "hipGraphLaunch", "cuda": "cudaGraphLaunch_v10000"}


@dataclass(frozen=True)
class Operator:
    """One call: its name, the sizes of its input, its module and the kernels that it launches."""

    name: str
    sizes: tuple[int, ...]
    module: int
    kernels: tuple[str, ...]


Work = tuple[Operator, ...]


def kernels_of(work: Work) -> list[str]:
    """The kernels in the order of their launches."""
    return [kernel for operator in work for kernel in operator.kernels]


def truth(work: Work) -> list[tuple[str, str, str]]:
    """(operator, shapes, module) of each kernel."""
    return [
        (operator.name, f"[{list(operator.sizes)}]", f"Model_0 / Layer_{operator.module}")
        for operator in work
        for _ in operator.kernels
    ]


def stack_of(operator: Operator) -> str:
    """Its call stack, as torch writes it."""
    return f"nn.Module: Layer_{operator.module};nn.Module: Model_0"


def joined(trace: Trace, *captures: Trace, node_notes: pl.DataFrame | None = None) -> Trace:
    """The finished trace, with these captures."""
    return join_captures(trace, CaptureFiles(captures, node_notes))


class GraphRecording:
    """A recording that is written from left to right; 100 ns per launch on the host, 1000 ns per kernel.

    Operators have their call stacks as text if `has_text`, as torch writes them, next to the Python calls around them.
    """

    def __init__(self, dialect: Dialect, *, has_text: bool = False) -> None:
        self.builder = TraceBuilder()
        self._has_text = has_text
        self._dialect = dialect
        self._words = "rocm" if dialect == "rocm" else "cuda"
        self._at, self._device_at, self._correlation = 0, 0, 0

    def captured(self, work: Work) -> GraphRecording:
        """The capture of a graph: launches that run nothing."""
        return self._run(work, is_capture=True)

    def eager(self, work: Work, *, mark: str = "") -> GraphRecording:
        """The same work, launched kernel by kernel, inside an annotation `mark`."""
        return self._run(work, is_capture=False, mark=mark)

    def replayed(
        self, work: Work, graph: int, *, kernels: Sequence[str] | None = None, dur: int = 1000, mark: str = ""
    ) -> GraphRecording:
        """One launch of a graph; `kernels` if it runs others than were captured, `mark` an annotation around it."""
        self._correlation += 1
        self._device_at = max(self._device_at, self._at)
        if mark:
            self.builder.annotation(mark, self._at - 10, 100)
        self.builder.launch(self._at, 50, self._correlation, name=_REPLAY[self._words])
        for node, kernel in enumerate(kernels_of(work) if kernels is None else kernels):
            numbers = (
                {"graph id": graph, "graph node id": graph << 32 | node} if self._dialect == "cuda node ids" else {}
            )
            self.builder.kernel(kernel, self._device_at, dur, self._correlation, **numbers)
            self._device_at += dur + 10
        self._at += 200
        return self

    def _run(self, work: Work, *, is_capture: bool, mark: str = "") -> GraphRecording:
        launches = sum(len(operator.kernels) for operator in work)
        length = 1000 + 100 * launches + 200 * len(work)
        if mark:
            self.builder.annotation(mark, self._at - 10, length + 20)
        self.builder.module("Model_0", self._at, length, number=1)
        if is_capture:
            self._call(_BEGIN[self._words], self._at + 10)
        at = self._at + 100
        for operator in work:
            inside = 100 + 100 * len(operator.kernels)
            self.builder.module(f"Layer_{operator.module}", at, inside, number=operator.module)
            text = {"Call stack": stack_of(operator)} if self._has_text else {}
            self.builder.op(operator.name, at + 10, inside - 20, **{"Input Dims": [list(operator.sizes)]}, **text)
            for place, kernel in enumerate(operator.kernels):
                self._launch(kernel, at + 20 + 100 * place, is_capture=is_capture)
            at += inside + 50
        if is_capture:
            self._call(_END[self._words], self._at + length - 20)
        self._at += length + 100
        return self

    def _launch(self, kernel: str, at: int, *, is_capture: bool) -> None:
        self._correlation += 1
        named = {"kernel": kernel} if self._words == "rocm" else {}
        self.builder.launch(at, 20, self._correlation, name=_LAUNCH[self._words], **named)
        if not is_capture:
            self._device_at = max(self._device_at, at)
            self.builder.kernel(kernel, self._device_at, 1000, self._correlation)
            self._device_at += 1010

    def _call(self, name: str, at: int) -> None:
        self._correlation += 1
        self.builder.launch(at, 5, self._correlation, name=name)


_OPERATORS = st.builds(
    Operator,
    st.sampled_from(["aten::mm", "aten::add", "my::attention"]),
    st.lists(st.integers(1, 8), min_size=1, max_size=2).map(tuple),
    st.integers(0, 3),
    st.lists(st.sampled_from(["gemm", "add", "attention", "norm"]), min_size=1, max_size=3).map(tuple),
)
WORKS = st.lists(_OPERATORS, min_size=1, max_size=12).map(tuple)
