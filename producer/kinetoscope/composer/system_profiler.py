"""Composer's SystemProfiler: the machine's counters under Composer's names, as rates, in the units they claim."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from ..sampling.procfs import system_stats
from ..sampling.samplers import Sample, allocator
from ..sampling.system_sampler import Rates
from .state import Callback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..sampling.procfs import SystemStats
    from .state import ProfilerOfState, State

_LOG = logging.getLogger("kinetoscope")

_GB, _KB = 1e9, 1e3
_CUDA = {  # Composer's name: torch's statistic, and whether it is in bytes
    "allocated": ("allocated_bytes.all.current", True),
    "active": ("active_bytes.all.current", True),
    "inactive": ("inactive_split_bytes.all.current", True),
    "reserved": ("reserved_bytes.all.current", True),
    "peak_allocated": ("allocated_bytes.all.peak", True),
    "peak_active": ("active_bytes.all.peak", True),
    "peak_inactive": ("inactive_split_bytes.all.peak", True),
    "peak_reserved": ("reserved_bytes.all.peak", True),
    "alloc_retries": ("num_alloc_retries", False),
}


class SystemProfiler(Callback):
    """Samples the machine's counters periodically, and passes them to the state's `Profiler` unless it skips.

    Cumulative counters, such as bytes sent, are reported as rates per second.

    Args:
        profile_cpu: `cpu`: percent of all processors' time since the previous sample.
        profile_memory: `memory/virtual` and `memory/swap` of the machine, and `memory/cuda/…` of this process's device.
        profile_disk: `disk/{disk}/{what}` of each disk, not of its partitions.
        profile_net: `network/{card}/kb_sent` and `kb_recv` of each interface but the loopback.
        stats_thread_interval_seconds: Seconds between two samples.
    """

    def __init__(
        self,
        profile_cpu: bool = True,
        profile_memory: bool = False,
        profile_disk: bool = False,
        profile_net: bool = False,
        stats_thread_interval_seconds: float = 0.5,
    ) -> None:
        self.profile_cpu, self.profile_memory = profile_cpu, profile_memory
        self.profile_disk, self.profile_net = profile_disk, profile_net
        self.stats_thread_interval_seconds = stats_thread_interval_seconds
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def init(self, state: State, logger: Any = None) -> None:
        """Start sampling."""
        if state.profiler is None or self._thread is not None:
            return
        try:
            stats = system_stats()
        except ImportError as error:
            _LOG.warning("System counters aren't sampled: %s", error)
            return
        self._thread = threading.Thread(
            target=self._read, args=(state.profiler, stats), name="kinetoscope-system", daemon=True
        )
        self._thread.start()

    def close(self, state: State, logger: Any = None) -> None:
        """Stop sampling."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(5)

    def _read(self, profiler: ProfilerOfState, stats: SystemStats) -> None:
        """Sample until the end; the target of the thread."""
        rates = Rates(self.stats_thread_interval_seconds)
        while True:
            try:
                for name, values, unit in self.counters(stats, rates, time.time_ns()):
                    profiler.marker(name, categories=("system",)).counter(values, unit=unit)
            except Exception as error:  # noqa: BLE001  a counter that can't be read must not end the training
                _LOG.warning("System counters are no longer sampled: %s: %s", type(error).__name__, error)
                return
            if self._ended.wait(self.stats_thread_interval_seconds):
                return

    def counters(self, stats: SystemStats, rates: Rates, now_ns: int) -> Iterator[tuple[str, dict[str, float], str]]:
        """Return the current name, values by series, and unit of each counter."""
        samples = list(self.samples(stats))
        units = {sample.counter: sample.unit for sample in samples}
        latest: dict[str, dict[str, float]] = {}
        for counter, _, series, value in rates.values(now_ns, samples):
            if value is not None:
                latest.setdefault(counter, {})[series] = value
        for counter, values in latest.items():
            yield counter, values, units[counter]

    def samples(self, stats: SystemStats) -> Iterator[Sample]:
        """Return the machine's current counters, under Composer's names."""
        if self.profile_cpu:
            busy, whole = stats.processors()
            yield Sample("cpu", "cpu_percent", 100 * busy, "percent", is_sum=True, whole=whole)
        if self.profile_memory:
            yield from _memory(stats)
        if self.profile_disk:
            for disk, values in stats.disks().items():
                for field, value in values._asdict().items():
                    unit = "bytes/s" if "bytes" in field else "ms/s" if "time" in field else "1/s"
                    if value is not None:
                        yield Sample(f"disk/{disk}/{field}", f"{field}_per_s", value, unit, is_sum=True)
        if self.profile_net:
            for name, traffic in stats.network_interfaces().items():
                for field, value in (("kb_sent", traffic.sent), ("kb_recv", traffic.received)):
                    yield Sample(f"network/{name}/{field}", f"{field}_per_s", value / _KB, "kB/s", is_sum=True)


def _memory(stats: SystemStats) -> Iterator[Sample]:
    for name, values in stats.memory().items():
        for field, value in values._asdict().items():
            yield Sample(f"memory/{name}", f"{field}_gb", value / _GB, "GB")
    for _, counts in filter(None, [allocator()]):
        for word, (statistic, is_bytes) in _CUDA.items():
            value, name = counts.get(statistic, 0), f"memory/cuda/{word}"
            yield Sample(name, f"{word}_gb", value / _GB, "GB") if is_bytes else Sample(name, word, value, "count")
