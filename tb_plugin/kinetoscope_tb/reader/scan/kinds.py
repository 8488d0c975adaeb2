"""Which frame an event belongs to: by its phase, its category and, for a few, its name.

The categories are those of kineto's output_json.cpp since torch 1.8, in any case of letters. CPU or device is never
decided by pid, since a process in a container may have pid 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...names.device_work import Work, device_work
from .tokens import distinct_codes, text_of


class Kind(IntEnum):
    """The frame of an event, and its kind there."""

    META = 0  # names of threads and processes
    UNTIMED = 1  # no usable time: dropped
    OPERATOR = 2
    ANNOTATION = 3
    RUNTIME = 4
    DRIVER = 5
    KERNEL = 6
    MEMCPY = 7
    MEMSET = 8
    MEMORY = 9
    PYTHON = 10
    FLOW = 11
    SYNC = 12
    OTHER = 13
    UNKNOWN = 14  # stored in `others`, and reported
    END = 15  # of a range that began with an event of its own


_BY_CATEGORY = {
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION,
    "runtime": Kind.RUNTIME,
    "hpu_op": Kind.RUNTIME,  # kineto's ActivityType.h: the host's runtime events
    "kernel": Kind.KERNEL,
    "mtia_ccp_events": Kind.KERNEL,
    "memcpy": Kind.MEMCPY,
    "gpu_memcpy": Kind.MEMCPY,
    "memset": Kind.MEMSET,
    "gpu_memset": Kind.MEMSET,
    "python_function": Kind.PYTHON,
    "cuda_sync": Kind.SYNC,
    "cuda_event": Kind.SYNC,
    "xpu_sync": Kind.SYNC,
}
_NOT_WORK = frozenset(
    {
        "trace",
        "user",
        "gpu_user_annotation",
        "overhead",
        "collective_comm",
        "cuda_profiler_range",
        "cpu_instant_event",
        "mtia_insight",
        "mtia_workloadd",
        "mtia_counters",
        "xpu_scope_profiler",
        "hardware_counters",
        "graph_event_node",  # torch 2.15's Cuspy: nodes of CUDA graphs that occupy no device
        "graph_host_node",
        "enqueue",  # torch_npu's queue of tasks
        "dequeue",
        "nvtx_range",  # Nsight Systems: from nvtxRangeStart to nvtxRangeEnd, perhaps on two threads
    }
)
_MEMORY_NAMES = frozenset({"[memory]", "[OutOfMemory]"})
_FLOW_PHASES = frozenset("stf")
_NOT_OPERATORS = (
    "ProfilerStep#",
    "enumerate(DataLoader)#",
    "enumerate(DataPipe)#",
    "Optimizer.step#",
    "Optimizer.zero_grad#",
)
"""torch up to 1.11 gives these annotations the category of operators."""

_LUMPED = b'"mtia_ccp_events"'
"""MTIA's category for all that a device does, whether it works or waits."""

_BY_NAME: dict[Work | None, Kind] = {
    "kernel": Kind.KERNEL,
    "memcpy": Kind.MEMCPY,
    "memset": Kind.MEMSET,
    "call": Kind.RUNTIME,
}
"""Of events without a category."""

_SHOWS_KIND = 1 << 12  # bytes of a text
_IN_A_LUMP = {"event_wait": Kind.OTHER, "event_record": Kind.OTHER, "dma_request": Kind.MEMCPY}


@lru_cache(1 << 10)
def kind_of_category(token: bytes) -> Kind:
    """The kind of a complete event (phase X, or B with E) of this category; upper and lower case changed over time."""
    category = text_of(token).lower()
    if category.endswith("_runtime"):
        return Kind.RUNTIME
    if category.endswith("_driver"):
        return Kind.DRIVER
    return _BY_CATEGORY.get(category, Kind.OTHER if category in _NOT_WORK else Kind.UNKNOWN)


def kinds(
    phase: NDArray[Any], category: NDArray[Any], name: NDArray[Any], pid: NDArray[Any], tokens: Sequence[bytes]
) -> NDArray[np.int8]:
    """The Kind of each event, from codes into `tokens` (-1: none)."""
    result = _looked_up(category, tokens, kind_of_category)
    lump = bare = np.flatnonzero(category < 0)
    if bare.size:
        result[bare] = _looked_up(pid[bare], tokens, _kind_of_pid)
        lump = bare[result[bare] == Kind.KERNEL]
        rest = bare[result[bare] == Kind.UNKNOWN]
        result[rest] = _looked_up(name[rest], tokens, _kind_by_name)
    if _LUMPED in tokens:
        lump = np.append(lump, np.flatnonzero(category == tokens.index(_LUMPED)))
    if lump.size:
        result[lump] = _looked_up(name[lump], tokens, _kind_in_a_lump)
    names = _looked_up(name, tokens, _kind_of_name)
    result[(names == Kind.ANNOTATION) & (result == Kind.OPERATOR)] = Kind.ANNOTATION
    phases = _looked_up(phase, tokens, _kind_of_phase)
    result = np.where(phases == Kind.UNKNOWN, result, phases)
    result[(names == Kind.MEMORY) & (result != Kind.META) & (result != Kind.END)] = Kind.MEMORY
    return result


@lru_cache(1 << 10)
def _kind_of_phase(phase: bytes) -> Kind:
    """UNKNOWN: the category decides."""
    text = text_of(phase)
    if text in ("X", "B"):
        return Kind.UNKNOWN
    if text in ("M", "E"):
        return Kind.META if text == "M" else Kind.END
    return Kind.FLOW if text in _FLOW_PHASES else Kind.OTHER


@lru_cache(1 << 12)
def _kind_of_name(name: bytes) -> Kind:
    """MEMORY for any phase and category (both have changed); ANNOTATION instead of OPERATOR; else UNKNOWN."""
    text = text_of(name)
    if text in _MEMORY_NAMES:
        return Kind.MEMORY
    return Kind.ANNOTATION if text.startswith(_NOT_OPERATORS) else Kind.UNKNOWN


@lru_cache(1 << 10)
def _kind_of_pid(pid: bytes) -> Kind:
    """Of an event without a category, as the autograd profiler's own exporter writes it."""
    device, _, functions = text_of(pid).rpartition(" ")
    if functions != "functions":
        return Kind.UNKNOWN
    return Kind.OPERATOR if device == "CPU" else Kind.KERNEL


@lru_cache(1 << 12)
def _kind_by_name(name: bytes) -> Kind:
    """Of an event without a category: device work that its name shows, else UNKNOWN."""
    return _BY_NAME.get(device_work(text_of(name) or ""), Kind.UNKNOWN)


@lru_cache(1 << 12)
def _kind_in_a_lump(name: bytes) -> Kind:
    """Of a device's row where only the name tells kernels from copies."""
    text = text_of(name)
    if text.startswith(("Memcpy ", "Memset ")):
        return Kind.MEMCPY if text.startswith("Memcpy") else Kind.MEMSET
    return _IN_A_LUMP.get(text, Kind.KERNEL)


def _looked_up(codes: NDArray[Any], tokens: Sequence[bytes], kind_of: Callable[[bytes], Kind]) -> NDArray[np.int8]:
    """The function's value for each code, computed once per code that occurs; for code -1, that of an empty text.

    Kinds show in how a text begins, so that no cache has to store whole texts of any length.
    """
    kind_by_code = np.zeros(len(tokens) + 1, np.int8)  # the last place is that of code -1
    for code in distinct_codes(codes, len(tokens)):
        kind_by_code[code] = kind_of(tokens[code][:_SHOWS_KIND] if code >= 0 else b"")
    kind_of_each: NDArray[np.int8] = kind_by_code[codes]
    return kind_of_each
