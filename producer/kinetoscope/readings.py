"""What the machine and the process use now: numbers of the kernel, of torch's allocator and of the GPU's driver.

A reading is a level (bytes in use) or a sum that only grows (bytes sent so far), whose rate is what matters. Nothing
waits for a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .machine import Machine

Readings = Iterable["Reading"]

_IDLE_GPU = 1  # of NVML's reasons for a lower clock: there is nothing to do


@dataclass(frozen=True)
class Reading:
    """One number.

    Args:
        counter: What is counted.
        series: Which of its values.
        value: The number.
        unit: Of the value, or of its rate if it is a sum.
        is_sum: Whether it only grows; its rate is per second of time, or of `whole`.
        whole: What grows by as much as the sum can; None for a second's worth.
    """

    counter: str
    series: str
    value: float
    unit: str
    is_sum: bool = False
    whole: float | None = None


def cpu(machine: Machine) -> Readings:
    """The share of all processors' time that is used."""
    busy, whole = machine.processors()
    yield Reading("cpu", "used", busy, "fraction", is_sum=True, whole=whole)


def memory(machine: Machine) -> Readings:
    """The machine's memory in use, and what it has swapped out."""
    told = machine.memory()
    yield Reading("memory", "used", told["virtual"].used, "bytes")
    yield Reading("swap", "used", told["swap"].used, "bytes")


def disk(machine: Machine) -> Readings:
    """What each disk reads and writes, and its share of time with anything to do."""
    for name, told in machine.disks().items():
        yield Reading(f"disk/{name}", "read", told.read_bytes, "bytes/s", is_sum=True)
        yield Reading(f"disk/{name}", "written", told.write_bytes, "bytes/s", is_sum=True)
        if told.busy_time is not None:
            yield Reading(f"disk/{name} busy", "busy", told.busy_time / 1000, "fraction", is_sum=True)


def network(machine: Machine) -> Readings:
    """What each network interface receives and sends."""
    for name, told in machine.cards().items():
        yield Reading(f"network/{name}", "received", told.received, "bytes/s", is_sum=True)
        yield Reading(f"network/{name}", "sent", told.sent, "bytes/s", is_sum=True)


def process(machine: Machine) -> Readings:
    """What this process uses: processors and memory."""
    seconds, resident = machine.process()
    yield Reading("process cpu", "cores", seconds, "cores", is_sum=True)
    yield Reading("process memory", "resident", resident, "bytes")


def allocator() -> tuple[int, Mapping[str, int]] | None:
    """Return (the current CUDA device, what torch's allocator tells of it); None if the program uses none.

    Asks nothing of the device.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return cuda.current_device(), cuda.memory_stats()


def torch_memory() -> Readings:
    """What torch's allocator holds of the current CUDA device, if the program uses one."""
    told = allocator()
    if told is None:
        return
    device, stats = told
    for series, key in (("allocated", "allocated_bytes.all.current"), ("reserved", "reserved_bytes.all.current")):
        if key in stats:
            yield Reading(f"gpu {device} memory", series, stats[key], "bytes")
    if "num_alloc_retries" in stats:
        yield Reading(f"gpu {device} allocation retries", "retries", stats["num_alloc_retries"], "")


def gpu() -> Readings:
    """What NVIDIA's driver says of the current CUDA device, if the program uses one.

    Raises:
        ImportError: nvidia-ml-py (`pynvml`) isn't installed.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return
    import pynvml  # type: ignore[import-untyped, import-not-found, unused-ignore]

    device = cuda.current_device()
    pynvml.nvmlInit()
    try:
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{cuda.get_device_properties(device).uuid}")
        yield from _of_driver(pynvml, handle, f"gpu {device}")
    finally:
        pynvml.nvmlShutdown()


def _of_driver(nvml: Any, handle: Any, name: str) -> Readings:
    asked: tuple[tuple[str, str, Callable[[], float]], ...] = (
        ("utilization", "fraction", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
        ("power", "W", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        ("temperature", "°C", lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        ("clock", "MHz", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        ("throttled", "", lambda: bool(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle) & ~_IDLE_GPU)),
    )
    for series, unit, ask in asked:
        try:
            value = float(ask())
        except nvml.NVMLError:  # not on this kind of GPU, or not for this user
            continue
        yield Reading(f"{name} {series}", series, value, unit)
