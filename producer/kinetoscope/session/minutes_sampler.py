"""Adds the state of machine, process and device to the ring of a process's last minutes, on the background thread."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from ..output.ring import ALLOCATOR, CLOCK, DISK, MEMORY, NETWORK, POWER, PROCESSOR
from ..sampling import samplers
from ..sampling.procfs import ProcFs, has_proc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..events import EventLog
    from ..output.ring import Ring

_MILLION = 1_000_000
_MOST_MARKERS = 4


class MinutesSampler:
    """Samples memory, processors, disks, network, open markers, and the device.

    Args:
        ring: Takes the samples.
        log: The program's events.
        is_stepping: Returns whether the current step lasts no longer than usual. Else the device isn't asked: of one
            that hangs, the allocator's lock may be held, and this thread writes the reports of hangs.
    """

    def __init__(self, ring: Ring, log: EventLog, is_stepping: Callable[[], bool]) -> None:
        self._ring, self._log, self._is_stepping = ring, log, is_stepping
        self._stats, self._has_machine = ProcFs(), has_proc()
        self._ticks = (0.0, 0.0)
        self._has_driver = True

    def sample(self) -> None:
        """Add a sample; of the machine nothing if this system has no /proc.

        Raises:
            OSError: It can't be read.
        """
        if self._has_machine:
            self._sample_machine(time.time_ns())
        for event in self._log.open_ranges()[:_MOST_MARKERS]:
            self._ring.add_marker(event.start_ns, event.name)
        if self._is_stepping():
            self._sample_device(time.time_ns())

    def _sample_machine(self, now_ns: int) -> None:
        ticks = self._stats.processors()
        (used_s, resident_bytes), machine = self._stats.process(), self._stats.memory()["virtual"]
        busy, total = ticks[0] - self._ticks[0], ticks[1] - self._ticks[1]
        self._ring.add(MEMORY, now_ns, resident_bytes, machine.total - machine.used)
        millionths = round(_MILLION * busy / total) if total > 0 else 0
        self._ring.add(PROCESSOR, now_ns, round(used_s * 1e9), millionths)
        self._ticks = ticks
        with suppress(OSError, ValueError, IndexError):  # containers may lack them
            disks = self._stats.disks().values()
            self._ring.add(DISK, now_ns, sum(d.read_bytes for d in disks), sum(d.write_bytes for d in disks))
            interfaces = self._stats.network_interfaces().values()
            self._ring.add(NETWORK, now_ns, sum(i.received for i in interfaces), sum(i.sent for i in interfaces))

    def _sample_device(self, now_ns: int) -> None:
        if (values := samplers.allocator()) is not None:
            keys = ("allocated_bytes.all.current", "reserved_bytes.all.current")
            self._ring.add(ALLOCATOR, now_ns, *(int(values[1].get(key, 0)) for key in keys))
        if self._has_driver:
            try:
                readings = _by_series(samplers.gpu())
            except Exception:  # noqa: BLE001  NVML isn't there, or has errors of its own; not asked again
                self._has_driver = False
                return
            if "power" in readings:
                milli = (round(1000 * readings.get(series, 0)) for series in ("power", "temperature"))
                self._ring.add(POWER, now_ns, *milli)
            if "clock" in readings:
                self._ring.add(CLOCK, now_ns, round(readings["clock"]), int(readings.get("throttled", 0)))


def _by_series(samples: Iterable[samplers.Sample]) -> dict[str, float]:
    return {sample.series: sample.value for sample in samples}
