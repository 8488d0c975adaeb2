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
    from .procfs import SystemStats

Samples = Iterable["Sample"]

_IDLE_GPU = 1  # of NVML's reasons for a lower clock: there is nothing to do


@dataclass(frozen=True)
class Sample:
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


def cpu(stats: SystemStats) -> Samples:
    """The share of all processors' time that is used."""
    busy, whole = stats.processors()
    yield Sample("cpu", "used", busy, "fraction", is_sum=True, whole=whole)


def memory(stats: SystemStats) -> Samples:
    """The machine's memory in use, and what it has swapped out."""
    values = stats.memory()
    yield Sample("memory", "used", values["virtual"].used, "bytes")
    yield Sample("swap", "used", values["swap"].used, "bytes")


def disk(stats: SystemStats) -> Samples:
    """What each disk reads and writes, and its share of time with anything to do."""
    for name, values in stats.disks().items():
        yield Sample(f"disk/{name}", "read", values.read_bytes, "bytes/s", is_sum=True)
        yield Sample(f"disk/{name}", "written", values.write_bytes, "bytes/s", is_sum=True)
        if values.busy_time is not None:
            yield Sample(f"disk/{name} busy", "busy", values.busy_time / 1000, "fraction", is_sum=True)


def network(stats: SystemStats) -> Samples:
    """What each network interface receives and sends."""
    for name, values in stats.network_interfaces().items():
        yield Sample(f"network/{name}", "received", values.received, "bytes/s", is_sum=True)
        yield Sample(f"network/{name}", "sent", values.sent, "bytes/s", is_sum=True)


def process(stats: SystemStats) -> Samples:
    """What this process uses: processors and memory."""
    seconds, resident = stats.process()
    yield Sample("process cpu", "cores", seconds, "cores", is_sum=True)
    yield Sample("process memory", "resident", resident, "bytes")


def allocator() -> tuple[int, Mapping[str, int]] | None:
    """Return (the current CUDA device, its allocator's statistics); None if the program uses none.

    Asks nothing of the device.
    """
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return cuda.current_device(), cuda.memory_stats()


def torch_memory() -> Samples:
    """What torch's allocator holds of the current CUDA device, if the program uses one."""
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
        except nvml.NVMLError:  # not on this kind of GPU, or not for this user
            continue
        yield Sample(f"{name} {series}", series, value, unit)
