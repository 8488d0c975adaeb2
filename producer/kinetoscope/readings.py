"""What the machine and the process use now: numbers of the kernel, of torch's allocator and of the GPU's driver.

A reading is a level (bytes in use) or a sum that only grows (bytes sent so far), whose rate is what matters. Linux
tells all of it in /proc; elsewhere psutil does, where it is installed. Nothing waits for a GPU.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Readings = Iterable["Reading"]

_SECTOR_BYTES = 512  # of /proc/diskstats, whatever the disk's own sectors are
_PARTS_OF_DISKS = re.compile(r"(loop|ram|zram|sr|fd|dm-|md)\d*|(sd|vd|xvd|hd)[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+)p\d+")
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


def has_proc() -> bool:
    """Whether this is a Linux that tells."""
    return Path("/proc/stat").exists() and Path("/proc/self/statm").exists()


def cpu(proc: Path = Path("/proc")) -> Readings:
    """The share of all cores' time that is used, on Linux."""
    fields = [int(text) for text in (proc / "stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    idle = fields[3] + fields[4]  # idle, waiting for disks
    yield Reading("cpu", "used", sum(fields) - idle, "fraction", is_sum=True, whole=sum(fields))


def memory(proc: Path = Path("/proc")) -> Readings:
    """The machine's memory in use, on Linux: all but what the kernel could give to a process."""
    text = (proc / "meminfo").read_text(encoding="ascii")
    kib = {name: int(number) for name, number in re.findall(r"^(\w+):\s+(\d+) kB", text, re.MULTILINE)}
    yield Reading("memory", "used", (kib["MemTotal"] - kib["MemAvailable"]) * 1024, "bytes")
    yield Reading("swap", "used", (kib["SwapTotal"] - kib["SwapFree"]) * 1024, "bytes")


def disk(proc: Path = Path("/proc")) -> Readings:
    """What each disk reads and writes, and its share of time with anything to do, on Linux."""
    for line in (proc / "diskstats").read_text(encoding="ascii").splitlines():
        fields = line.split()
        if len(fields) < 13 or _PARTS_OF_DISKS.fullmatch(fields[2]):
            continue
        name = f"disk/{fields[2]}"
        yield Reading(name, "read", int(fields[5]) * _SECTOR_BYTES, "bytes/s", is_sum=True)
        yield Reading(name, "written", int(fields[9]) * _SECTOR_BYTES, "bytes/s", is_sum=True)
        yield Reading(f"{name} busy", "busy", int(fields[12]) / 1000, "fraction", is_sum=True)


def network(proc: Path = Path("/proc")) -> Readings:
    """What each network interface but the loopback receives and sends, on Linux."""
    for line in (proc / "net" / "dev").read_text(encoding="ascii").splitlines()[2:]:
        name, _, rest = line.partition(":")
        fields = rest.split()
        if name.strip() != "lo":
            yield Reading(f"network/{name.strip()}", "received", int(fields[0]), "bytes/s", is_sum=True)
            yield Reading(f"network/{name.strip()}", "sent", int(fields[8]), "bytes/s", is_sum=True)


def process(proc: Path = Path("/proc")) -> Readings:
    """What this process uses, on Linux: cores and memory."""
    times = os.times()
    yield Reading("process cpu", "cores", times.user + times.system, "cores", is_sum=True)
    pages = int((proc / "self" / "statm").read_text(encoding="ascii").split()[1])
    yield Reading("process memory", "resident", pages * os.sysconf("SC_PAGE_SIZE"), "bytes")


def by_psutil(what: str) -> Readings:
    """The same of any system, by psutil: `what` is the name of one of the functions above.

    Raises:
        ImportError: psutil isn't installed.
    """
    import psutil  # type: ignore[import-untyped, import-not-found, unused-ignore]

    if what == "cpu":
        times = psutil.cpu_times()
        idle = times.idle + getattr(times, "iowait", 0.0)
        yield Reading("cpu", "used", sum(times) - idle, "fraction", is_sum=True, whole=sum(times))
    elif what == "memory":
        all_of_it = psutil.virtual_memory()
        yield Reading("memory", "used", all_of_it.total - all_of_it.available, "bytes")
        yield Reading("swap", "used", psutil.swap_memory().used, "bytes")
    elif what == "disk":
        for name, io in (psutil.disk_io_counters(perdisk=True) or {}).items():
            yield Reading(f"disk/{name}", "read", io.read_bytes, "bytes/s", is_sum=True)
            yield Reading(f"disk/{name}", "written", io.write_bytes, "bytes/s", is_sum=True)
    elif what == "network":
        for name, io in psutil.net_io_counters(pernic=True).items():
            yield Reading(f"network/{name}", "received", io.bytes_recv, "bytes/s", is_sum=True)
            yield Reading(f"network/{name}", "sent", io.bytes_sent, "bytes/s", is_sum=True)
    else:
        own = psutil.Process()
        yield Reading("process cpu", "cores", sum(own.cpu_times()[:2]), "cores", is_sum=True)
        yield Reading("process memory", "resident", own.memory_info().rss, "bytes")


def torch_memory() -> Readings:
    """What torch's allocator holds of the current CUDA device, if the program uses one; asks nothing of the device."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return
    device, stats = cuda.current_device(), cuda.memory_stats()
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
