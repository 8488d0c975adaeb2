"""One recording in the spelling of every era and writer, and what each of them leaves out.

recording  what was recorded, as nobody writes it
kineto     how each release of torch writes it, for each kind of device
arguments  the arguments of its events
writers    kineto's siblings in torch 2.13
foreign    who writes traces without kineto
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.trace import Trace

from .foreign import Ascend, Legacy, Pairs
from .kineto import Kineto
from .writers import Annotated, Monitor, PythonExporter


class Writer(Protocol):
    """Whatever writes the recording."""

    def text(self) -> str:
        """The whole file."""


@dataclass(frozen=True)
class Era:
    """A form that traces have had.

    Args:
        name: Of the era or writer.
        writer: Writes the recording in it.
        lacks: What this form has no place for: what test_eras calls it.
    """

    name: str
    writer: Writer
    lacks: frozenset[str] = frozenset()

    @cached_property
    def trace(self) -> Trace:
        """The recording, written and read back."""
        return read_blocks([self.writer.text().encode()], path=f"{self.name}.pt.trace.json")


def _era(name: str, writer: Writer, lacks: Iterable[str] = ()) -> Era:
    return Era(name, writer, frozenset(lacks))


_COUNTERS = (
    {
        "ph": "C",
        "cat": "hardware_counters",
        "name": "sm__cycles",
        "pid": "GPU 0 Counters",
        "tid": 0,
        "ts": 50,
        "args": {"": 5},
    },
)
_NOT_WORK = tuple(  # rows on a device's stream that are none of its work
    {
        "ph": "X",
        "cat": category,
        "name": "x",
        "pid": 0,
        "tid": 20,
        "ts": 300,
        "dur": 500,
        "args": {"stream": 20, **args},
    }
    for category, args in (
        ("collective_comm", {"Collective name": "allreduce"}),
        ("cuda_event", {"event_id": 4, "correlation": 7}),
        ("cuda_profiler_range", {}),
    )
)
_MTIA_COUNTERS = ({"ph": "C", "cat": "mtia_counters", "name": "power", "pid": 0, "tid": 0, "ts": 50, "args": {"W": 5}},)
_NO_PROPERTIES = ("launch shape", "registers", "blocks", "occupancy", "limiter")
_NO_SIZES = ("registers", "blocks", "occupancy", "limiter")

ERAS = [
    _era("torch 1.8", Kineto((1, 8)), {"memory", "blocks", "occupancy", "limiter", "sequence", "python", "stacks"}),
    _era(
        "torch 1.8 array",
        Kineto((1, 8), top={"array": True}),
        {"memory", "blocks", "occupancy", "limiter", "sequence", "python", "stacks"},
    ),
    _era("torch 1.9", Kineto((1, 9)), {"addresses", "limiter", "python"}),
    _era("torch 1.10", Kineto((1, 10)), {"addresses", "limiter", "python"}),
    *(_era(f"torch 1.{minor}", Kineto((1, minor)), {"limiter"}) for minor in (11, 12, 13)),
    *(_era(f"torch 2.{minor}", Kineto((2, minor)), {"limiter"}) for minor in (0, 1, 2, 3, 4, 6, 8)),
    *(_era(f"torch 2.{minor}", Kineto((2, minor))) for minor in (12, 13)),
    _era("kineto main", Kineto((3, 0), events=_COUNTERS)),
    _era("with rows that are no work", Kineto((2, 10), events=_NOT_WORK), {"limiter"}),
    _era("Python exporter", PythonExporter((2, 13))),
    _era("CUPTI monitor", Monitor((2, 13)), _NO_PROPERTIES),
    _era("annotated graphs", Annotated((2, 13))),
    _era("on demand", Kineto((2, 6), on_demand=True), {"limiter"}),
    *(
        _era(f"ROCm, torch {major}.{minor}", Kineto((major, minor), "rocm"), _NO_PROPERTIES)
        for major, minor in ((1, 12), (2, 3))
    ),
    *(_era(f"ROCm, torch 2.{minor}", Kineto((2, minor), "rocm"), _NO_SIZES) for minor in (6, 12)),
    _era("in a container", Kineto((2, 8), pid=1, device=1), {"limiter"}),
    _era("ROCm, kineto main", Kineto((3, 0), "rocm"), _NO_SIZES),
    _era("XPU, kineto main", Kineto((3, 0), "xpu"), _NO_SIZES),
    _era("XPU", Kineto((2, 8), "xpu"), _NO_SIZES),
    _era("MTIA", Kineto((2, 12), "mtia", events=_MTIA_COUNTERS), _NO_PROPERTIES),
    _era("HPU", Kineto((2, 4), "hpu"), _NO_PROPERTIES),
    _era("PrivateUse1", Kineto((2, 8), "privateuse1"), _NO_PROPERTIES),
    _era("pairs of B and E", Pairs((2, 8)), {"limiter"}),
    _era("legacy", Legacy(), {*_NO_PROPERTIES, "memory", "shapes", "sequence", "python", "stacks", "runtime", "span"}),
    _era("Ascend", Ascend(), {*_NO_PROPERTIES, "memory", "python", "NCCL", "span"}),
]
