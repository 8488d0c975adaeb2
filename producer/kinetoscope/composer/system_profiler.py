"""Composer's SystemProfiler: the machine's counters, under its names, as rates and in units that are what they say."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import torch

from .trace_handler import Callback

if TYPE_CHECKING:
    from .profiler import Profiler
    from .state import State

_LOG = logging.getLogger("kinetoscope")

Reading = tuple[str, dict[str, float], str]
"""A counter's name, its values by series, and their unit."""

_GB, _KB = 1e9, 1e3
_CUDA = {  # Composer's words: torch's statistic, and whether it is in bytes
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
    """Reads the machine's counters every now and then, and gives them to the state's `Profiler` while it doesn't skip.

    Whatever grows for ever, such as bytes sent, is given as its growth per second.

    Args:
        profile_cpu: `cpu`: percent of all processors' time.
        profile_memory: `memory/virtual` and `memory/swap` of the machine, and `memory/cuda/…` of this process's device.
        profile_disk: `disk/{disk}/{what}` of each disk.
        profile_net: `network/{card}/kb_sent` and `kb_recv` of each card that isn't idle.
        stats_thread_interval_seconds: How often.
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
        """Begin to read."""
        if state.profiler is None or self._thread is not None:
            return
        try:
            psutil = import_module("psutil")
        except ImportError:
            _LOG.warning("No counters of the machine: install psutil.")
            return
        self._thread = threading.Thread(
            target=self._read, args=(state.profiler, psutil), name="kinetoscope-system", daemon=True
        )
        self._thread.start()

    def close(self, state: State, logger: Any = None) -> None:
        """Read no more."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(5)

    def _read(self, profiler: Profiler, psutil: Any) -> None:
        """Read until the end: the work of the thread."""
        rates = Rates()
        while True:
            try:
                for name, values, unit in self.readings(psutil, rates, time.monotonic()):
                    profiler.marker(name, categories=("system",)).counter(values, unit=unit)
            except Exception as error:  # noqa: BLE001  a counter that can't be read must not end the training
                _LOG.warning("No more counters of the machine: %s: %s", type(error).__name__, error)
                return
            if self._ended.wait(self.stats_thread_interval_seconds):
                return

    def readings(self, psutil: Any, rates: Rates, now_s: float) -> Iterator[Reading]:
        """Return what the counters are now."""
        if self.profile_cpu:
            yield "cpu", {"cpu_percent": psutil.cpu_percent()}, "percent"
        if self.profile_memory:
            yield from _memory(psutil)
        if self.profile_disk:
            for disk, told in (psutil.disk_io_counters(perdisk=True) or {}).items():
                for field, per_s in rates.of(f"disk/{disk}", told._asdict(), now_s):
                    unit = "bytes/s" if "bytes" in field else "ms/s" if "time" in field else "1/s"
                    yield f"disk/{disk}/{field}", {f"{field}_per_s": per_s}, unit
        if self.profile_net:
            for card, told in psutil.net_io_counters(pernic=True).items():
                sent = {"kb_sent": told.bytes_sent / _KB, "kb_recv": told.bytes_recv / _KB}
                for field, per_s in rates.of(f"network/{card}", sent, now_s):
                    yield f"network/{card}/{field}", {f"{field}_per_s": per_s}, "kB/s"


class Rates:
    """Growth per second of what only grows."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, float]] = {}

    def of(self, name: str, values: Mapping[str, float], now_s: float) -> Iterator[tuple[str, float]]:
        """Return each value's growth per second since it was last asked for; nothing the first time.

        A value that has shrunk began anew.
        """
        for field, value in values.items():
            key = f"{name}/{field}"
            before = self._last.get(key)
            self._last[key] = (now_s, value)
            if before is not None and now_s > before[0] and value >= before[1]:
                yield field, (value - before[1]) / (now_s - before[0])


def _memory(psutil: Any) -> Iterator[Reading]:
    for name, told in (("virtual", psutil.virtual_memory()), ("swap", psutil.swap_memory())):
        fields = {field: value / _GB for field, value in told._asdict().items() if field in ("total", "used", "free")}
        yield f"memory/{name}", {f"{field}_gb": value for field, value in fields.items()}, "GB"
    if torch.cuda.is_available() and torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        told = torch.cuda.memory_stats()
        for word, (statistic, is_bytes) in _CUDA.items():
            value = told.get(statistic, 0)
            values = {f"{word}_gb": value / _GB} if is_bytes else {word: float(value)}
            yield f"memory/cuda/{word}", values, "GB" if is_bytes else "count"
