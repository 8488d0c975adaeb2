"""The kernel's raw counters of the machine and this process, in the kernel's units and without rates.

Linux has all of them in /proc; elsewhere psutil reads them, if it is installed. `samplers` and
`composer.system_profiler` make counters of them, each under its own names.
"""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from ..optional_packages import optional_package

_PROC = Path("/proc")
_SECTOR_BYTES = 512  # the unit of /proc/diskstats, whatever the disk's sector size is
_PARTS_OF_DISKS = re.compile(r"(loop|ram|zram|sr|fd|dm-|md)\d*|(sd|vd|xvd|hd)[a-z]+\d+|(nvme\d+n\d+|mmcblk\d+)p\d+")
_MEMORY = re.compile(r"^(MemTotal|MemFree|MemAvailable|SwapTotal|SwapFree):\s+(\d+) kB", re.MULTILINE)
_READ_BYTES = 1 << 16
_LOOPBACK = re.compile(r"lo\d*")


class Memory(NamedTuple):
    """Bytes of the machine's memory or swap space; used is everything that isn't available to programs."""

    total: int
    used: int
    free: int


class Disk(NamedTuple):
    """A disk's totals since boot: operations, bytes, and ms.

    Times are None if the system doesn't count them; `busy_time` is how long the disk had anything to do.
    """

    read_count: int
    write_count: int
    read_bytes: int
    write_bytes: int
    read_time: int | None = None
    write_time: int | None = None
    busy_time: int | None = None


class NetworkInterface(NamedTuple):
    """Bytes that a network interface has sent and received since boot."""

    received: int
    sent: int


class SystemStats(Protocol):
    """This machine, and this process on it."""

    def processors(self) -> tuple[float, float]:
        """Return (busy time, total time) of all processors, in any unit."""

    def memory(self) -> dict[str, Memory]:
        """Return `virtual` and `swap`."""

    def disks(self) -> dict[str, Disk]:
        """Return the disks by name, not their partitions."""

    def network_interfaces(self) -> dict[str, NetworkInterface]:
        """Return the network interfaces by name, without the loopback."""

    def process(self) -> tuple[float, int]:
        """Return (CPU seconds, resident bytes) of this process."""


def system_stats() -> SystemStats:
    """Return the machine.

    Raises:
        ImportError: There is no /proc, and psutil isn't installed.
    """
    return ProcFs() if has_proc() else PsutilStats()


def has_proc() -> bool:
    """Whether this system has a /proc with the counters."""
    return (_PROC / "stat").exists() and (_PROC / "self/statm").exists()


class ProcFs:
    """Reads /proc; see proc(5) and the kernel's iostats.rst.

    Args:
        proc: Where it is mounted.
    """

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc

    def _read(self, name: str) -> str:
        # Beside a training, a file object costs three times as much as the kernel's work.
        descriptor = os.open(f"{self._proc}/{name}", os.O_RDONLY)
        try:
            return b"".join(iter(partial(os.read, descriptor, _READ_BYTES), b"")).decode("ascii", "replace")
        finally:
            os.close(descriptor)

    def processors(self) -> tuple[float, float]:
        """See `SystemStats`: ticks."""
        fields = [int(text) for text in self._read("stat").split("\n", 1)[0].split()[1:9]]
        idle = fields[3] + fields[4]  # idle, waiting for disks
        return sum(fields) - idle, sum(fields)

    def memory(self) -> dict[str, Memory]:
        """See `SystemStats`."""
        values = {name: int(kib) * 1024 for name, kib in _MEMORY.findall(self._read("meminfo"))}
        total, swap, free = values["MemTotal"], values["SwapTotal"], values["SwapFree"]
        return {
            "virtual": Memory(total, total - values["MemAvailable"], values["MemFree"]),
            "swap": Memory(swap, swap - free, free),
        }

    def disks(self) -> dict[str, Disk]:
        """See `SystemStats`."""
        rows = (line.split() for line in self._read("diskstats").splitlines())
        return {row[2]: _disk(row) for row in rows if len(row) >= 13 and not _PARTS_OF_DISKS.fullmatch(row[2])}

    def network_interfaces(self) -> dict[str, NetworkInterface]:
        """See `SystemStats`."""
        rows = (line.partition(":") for line in self._read("net/dev").splitlines()[2:])
        fields = {name.strip(): rest.split() for name, _, rest in rows}
        return {
            name: NetworkInterface(int(f[0]), int(f[8])) for name, f in fields.items() if not _LOOPBACK.fullmatch(name)
        }

    def process(self) -> tuple[float, int]:
        """See `SystemStats`."""
        times, pages = os.times(), int(self._read("self/statm").split()[1])
        return times.user + times.system, pages * os.sysconf("SC_PAGE_SIZE")


def _disk(row: list[str]) -> Disk:
    reads, _, sectors_read, read_ms, writes, _, sectors_written, write_ms, _, busy_ms = map(int, row[3:13])
    return Disk(
        reads, writes, sectors_read * _SECTOR_BYTES, sectors_written * _SECTOR_BYTES, read_ms, write_ms, busy_ms
    )


class PsutilStats:
    """Reads the counters through psutil, on any system.

    Raises:
        ImportError: psutil isn't installed.
    """

    def __init__(self) -> None:
        self._psutil = optional_package("psutil", "psutil")

    def processors(self) -> tuple[float, float]:
        """See `SystemStats`: seconds."""
        times = self._psutil.cpu_times()
        whole = sum(times)
        return whole - times.idle - getattr(times, "iowait", 0.0), whole

    def memory(self) -> dict[str, Memory]:
        """See `SystemStats`."""
        values, swap = self._psutil.virtual_memory(), self._psutil.swap_memory()
        return {
            "virtual": Memory(values.total, values.total - values.available, values.free),
            "swap": Memory(swap.total, swap.used, swap.free),
        }

    def disks(self) -> dict[str, Disk]:
        """See `SystemStats`."""
        values = self._psutil.disk_io_counters(perdisk=True) or {}
        return {
            name: Disk(**{f: getattr(io, f) for f in Disk._fields if hasattr(io, f)}) for name, io in values.items()
        }

    def network_interfaces(self) -> dict[str, NetworkInterface]:
        """See `SystemStats`."""
        values = self._psutil.net_io_counters(pernic=True).items()
        return {
            name: NetworkInterface(io.bytes_recv, io.bytes_sent) for name, io in values if not _LOOPBACK.fullmatch(name)
        }

    def process(self) -> tuple[float, int]:
        """See `SystemStats`."""
        own = self._psutil.Process()
        return sum(own.cpu_times()[:2]), own.memory_info().rss
