"""The current resource usage of machine and process, from the kernel, torch's allocator and the GPU driver.

A reading is a level (bytes in use) or a cumulative sum (bytes sent so far), of which the rate matters. Nothing waits
for a GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..optional_packages import optional_package

if TYPE_CHECKING:
    from .procfs import SystemStats

Samples = Iterable["Sample"]

_IDLE_GPU = 1  # NVML's reason for a lower clock: the GPU is idle


@dataclass(frozen=True)
class Sample:
    """One number.

    Args:
        counter: The name of the counter.
        series: The name of the series.
        value: The number.
        unit: The unit of the value, or of its rate if it is a sum.
        is_sum: Whether it only grows; its rate is per second, or per unit of `whole`.
        whole: Another sum, the upper bound of this one's growth; None for a rate per second.
    """

    counter: str
    series: str
    value: float
    unit: str
    is_sum: bool = False
    whole: float | None = None


def cpu(stats: SystemStats) -> Samples:
    """Reads the share of all processors' time in use."""
    busy, whole = stats.processors()
    yield Sample("cpu", "used", busy, "fraction", is_sum=True, whole=whole)


def memory(stats: SystemStats) -> Samples:
    """Reads the machine's memory in use, and its swap."""
    values = stats.memory()
    yield Sample("memory", "used", values["virtual"].used, "bytes")
    yield Sample("swap", "used", values["swap"].used, "bytes")


def disk(stats: SystemStats) -> Samples:
    """Reads each disk's throughput and busy time."""
    for name, values in stats.disks().items():
        yield Sample(f"disk/{name}", "read", values.read_bytes, "bytes/s", is_sum=True)
        yield Sample(f"disk/{name}", "written", values.write_bytes, "bytes/s", is_sum=True)
        if values.busy_time is not None:
            yield Sample(f"disk/{name} busy", "busy", values.busy_time / 1000, "fraction", is_sum=True)


def network(stats: SystemStats) -> Samples:
    """Reads each network interface's throughput."""
    for name, values in stats.network_interfaces().items():
        yield Sample(f"network/{name}", "received", values.received, "bytes/s", is_sum=True)
        yield Sample(f"network/{name}", "sent", values.sent, "bytes/s", is_sum=True)


def process(stats: SystemStats) -> Samples:
    """Reads this process's CPU and memory usage."""
    seconds, resident = stats.process()
    yield Sample("process cpu", "cores", seconds, "cores", is_sum=True)
    yield Sample("process memory", "resident", resident, "bytes")


def allocator() -> tuple[int, Mapping[str, int]] | None:
    """Return (the current CUDA device, its allocator's statistics); None if the program uses none.

    It doesn't access the device.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return cuda.current_device(), cuda.memory_stats()


def torch_memory() -> Samples:
    """Reads torch's allocator for the current CUDA device, if the program uses one."""
    values = allocator()
    if values is None:
        return
    device, stats = values
    for series, key in (("allocated", "allocated_bytes.all.current"), ("reserved", "reserved_bytes.all.current")):
        if key in stats:
            yield Sample(f"gpu {device} memory", series, stats[key], "bytes")
    if "num_alloc_retries" in stats:
        yield Sample(f"gpu {device} allocation retries", "retries", stats["num_alloc_retries"], "")


def gpu() -> Samples:
    """Reads NVIDIA's driver for the current CUDA device, if the program uses one.

    Raises:
        ImportError: nvidia-ml-py (`pynvml`) isn't installed.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return
    nvml = optional_package("pynvml", "nvidia-ml-py")
    device = cuda.current_device()
    nvml.nvmlInit()
    try:
        handle = nvml.nvmlDeviceGetHandleByUUID(f"GPU-{cuda.get_device_properties(device).uuid}")
        yield from _of_driver(nvml, handle, f"gpu {device}")
    finally:
        nvml.nvmlShutdown()


def _of_driver(nvml: Any, handle: Any, name: str) -> Samples:
    queries: tuple[tuple[str, str, Callable[[], float]], ...] = (
        ("utilization", "fraction", lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
        ("power", "W", lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        ("temperature", "°C", lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        ("clock", "MHz", lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        ("throttled", "", lambda: bool(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle) & ~_IDLE_GPU)),
    )
    for series, unit, query in queries:
        try:
            value = float(query())
        except nvml.NVMLError:  # not supported by this GPU, or not permitted to this user
            continue
        yield Sample(f"{name} {series}", series, value, unit)
