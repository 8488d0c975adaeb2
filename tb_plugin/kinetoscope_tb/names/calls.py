"""Classifies runtime and driver calls by name: which synchronize, allocate or copy."""

from __future__ import annotations

import re

from .regex import regex

_SYNCHRONIZES = regex(
    r"""
      (?:cuda|cu|hip|xpu|mu|cn|acl)\w*Synchronize
    | (?:cuda|hip)Mem(?:cpy|set)(?:2D|3D|ToSymbol|FromSymbol)?$
    | hipMemcpyWithStream$ | cuMemcpy(?:HtoD|DtoH|DtoD)(?:_v2)?$ | urEventWait$ | urQueueFinish$
    """,
    re.VERBOSE,
)
_ALLOCATES = regex(
    r"(?:cuda|hip)(?:Malloc|Free)(?:Async|Managed|Pitch)?$|cuMem(?:Alloc|Free|Create|Release|Map|Unmap|SetAccess)(?:_v2)?$"
    r"|hipMem(?:Create|Release|Map|Unmap|SetAccess)$|urUSM(?:DeviceAlloc|Free)$"
)

_PINS = regex(
    r"(?:cuda|hip)Host(?:Alloc|Malloc|Register|Free|Unregister)$|(?:cuda|hip)(?:MallocHost|FreeHost)$|cuMemHost\w+"
)
_MAPS = regex(r"(?:cu|hip)Mem(?:Create|Release|Map|Unmap|SetAccess)(?:_v2)?$")

_SETS_UP = regex(
    r"(?:cuda|cu|hip)(?:Stream(?:Create|GetPriority)|DeviceGet|GetDevice|Device(?:Primary)?Ctx|Ctx|Init|Event(?:Create)"
    r"|Func(?:GetAttributes|SetAttribute)|Occupancy|Module|Library|DriverGet|RuntimeGet|PointerGet)"
)

_OF_PROFILER = frozenset(("Activity Buffer Request", "Buffer Flush", "Instrumentation", "Resource"))

_LAUNCHES_KERNEL = regex(r"(?:cu|cuda|hip|hipExt)(?:Module)?(?:Launch|LaunchCooperative)Kernel|urEnqueueKernelLaunch")


def sets_up(name: str) -> bool:
    """Whether a call of this name takes long only where it creates a context or loads a library's code first."""
    return bool(_SETS_UP.match(name)) and not synchronizes(name)


def synchronizes(name: str) -> bool:
    """Whether a call of this name returns only when the device has finished something."""
    return bool(_SYNCHRONIZES.match(name))


def allocates(name: str) -> bool:
    """Whether a call of this name allocates or frees device memory, bypassing any caching allocator."""
    return bool(_ALLOCATES.match(name))


def maps_memory(name: str) -> bool:
    """Whether a call of this name maps device memory into a reserved range, as expandable segments do."""
    return bool(_MAPS.match(name))


def pins_memory(name: str) -> bool:
    """Whether a call of this name takes pinned memory of the host, or gives it back."""
    return bool(_PINS.match(name))


def records_for_profiler(name: str) -> bool:
    """Whether overhead of this name is the profiler's own work: a run without it has none of it."""
    return name in _OF_PROFILER


def copies_memory(name: str) -> bool:
    """Whether a call of this name copies memory; if host memory takes part, it may return only when the copy ends."""
    return "memcpy" in name.lower()


def may_wait(name: str) -> bool:
    """Whether a call of this name may return only when the device has finished something."""
    return synchronizes(name) or copies_memory(name)


def launches_kernel(name: str) -> bool:
    """Whether a call of this name launches one kernel."""
    return bool(_LAUNCHES_KERNEL.match(name))


def launches_graph(name: str) -> bool:
    """Whether a call of this name launches a graph."""
    return "GraphLaunch" in name
