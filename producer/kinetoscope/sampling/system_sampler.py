"""The system counters: a thread that samples them while a window is recorded or about to be.

A rate is placed at the start of the interval that it was measured over, since a counter's value applies from its time
on. If the thread couldn't read for a while, for example because torch holds the GIL while it saves a trace, the value
in between is recorded as unknown: a mean over seconds would look like a calm that may not have been there.
"""

from __future__ import annotations

import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..events import COUNTER, Event
from . import samplers
from .procfs import system_stats

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from ..events import EventLog
    from .samplers import Sample

_LOG = logging.getLogger("kinetoscope")

KINDS = ("cpu", "memory", "disk", "network", "process", "gpu")
_OF_THE_MACHINE = frozenset(("cpu", "memory", "disk", "network"))
_GAP = 3.0
_ENDS_WITHIN_S = 2.0


class Rates:
    """Converts readings to counter values: levels unchanged, sums as rates.

    Args:
        interval_s: The planned time between readings; three times that is a gap.
    """

    def __init__(self, interval_s: float) -> None:
        self._gap_ns = round(interval_s * _GAP * 1e9)
        self._before: dict[tuple[str, str], tuple[int, Sample]] = {}

    def forget(self) -> None:
        """Reset: there are no readings for a while."""
        self._before.clear()

    def values(self, at_ns: int, samples: Iterable[Sample]) -> list[tuple[str, int, str, float | None]]:
        """Return (counter, time, series, value) of the readings at a time; None is an unknown value.

        The first sample of a sum gives no rate.
        """
        values: list[tuple[str, int, str, float | None]] = []
        for sample in samples:
            key = (sample.counter, sample.series)
            then_ns, before = self._before.get(key, (at_ns, sample))
            self._before[key] = (at_ns, sample)
            is_gap = at_ns - then_ns > self._gap_ns
            if not sample.is_sum:
                if is_gap:
                    values.append((sample.counter, then_ns + self._gap_ns, sample.series, None))
                values.append((sample.counter, at_ns, sample.series, sample.value))
            elif at_ns > then_ns:
                rate = None if is_gap else _rate(before, sample, (at_ns - then_ns) / 1e9)
                values.append((sample.counter, then_ns, sample.series, rate))
        return values


def _rate(before: Sample, now: Sample, seconds: float) -> float | None:
    """Return a sum's rate; None if it shrank because it was reset, or `whole` didn't grow."""
    growth = now.value - before.value
    whole = seconds if now.whole is None or before.whole is None else now.whole - before.whole
    return None if growth < 0 or whole <= 0 else growth / whole


class SystemSampler:
    """Samples the system counters into the program's events. Nothing in it raises.

    Args:
        log: Receives the events.
        units: Receives the unit of each counter.
        kinds: A selection of `KINDS`.
        interval_s: Seconds between two samples.

    Raises:
        UsageError: An unknown kind, or an invalid interval.
    """

    def __init__(self, log: EventLog, units: dict[str, str], kinds: Collection[str], interval_s: float) -> None:
        unknown_kinds = [kind for kind in kinds if kind not in KINDS]
        if unknown_kinds or isinstance(kinds, str):
            raise UsageError(f"system={kinds!r}: choose from {', '.join(KINDS)}.")
        if not interval_s > 0:
            raise UsageError(f"system_interval_s={interval_s!r}: it must be a positive number of seconds.")
        self._log, self._units, self._kinds = log, units, tuple(kinds)
        self._interval_s = interval_s
        self._rates = Rates(interval_s)
        self._sources: dict[str, Callable[[], Iterable[Sample]]] = {}
        self._reads, self._wake, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self._is_over = False
        self._thread: threading.Thread | None = None

    def enter(self, *, reads: bool, is_first: bool) -> None:
        """Start or stop sampling.

        Args:
            reads: Whether to sample.
            is_first: Whether this process samples its machine's counters.
        """
        if not self._kinds or self._is_over:
            return
        if reads and self._thread is None:
            self._sources = _sources(self._kinds, is_first=is_first)
            self._thread = threading.Thread(target=self._run, name="kinetoscope-system", daemon=True)
            self._thread.start()
        if reads:
            self._reads.set()
        else:
            self._reads.clear()
        self._wake.set()

    def read(self) -> None:
        """Sample now, unless the thread is about to."""
        if self._reads.is_set() and self._lock.acquire(blocking=False):
            try:
                self._read()
            finally:
                self._lock.release()

    def close(self) -> None:
        """Stop sampling."""
        self._is_over = True
        self._reads.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_ENDS_WITHIN_S)

    def _run(self) -> None:
        while not self._is_over:
            if not self._reads.is_set():
                with self._lock:
                    self._rates.forget()
                self._reads.wait()
                continue
            with self._lock:
                self._read()
            self._wake.wait(self._interval_s)
            self._wake.clear()

    def _read(self) -> None:
        for kind, source in list(self._sources.items()):
            at_ns = time.time_ns()
            try:
                samples = list(source())
            except Exception as error:  # noqa: BLE001  drop this counter, whatever the reason, and don't retry
                _LOG.debug("The counters of %s aren't sampled: %s", kind, error)
                del self._sources[kind]
                continue
            self._units.update({sample.counter: sample.unit for sample in samples if sample.unit})
            moments: dict[tuple[str, int], dict[str, float | None]] = {}
            for counter, moment_ns, series, value in self._rates.values(at_ns, samples):
                moments.setdefault((counter, moment_ns), {})[series] = value
            tid = threading.get_native_id()
            for (counter, moment_ns), values in moments.items():
                self._log.add(Event(COUNTER, counter, (), tid, moment_ns, None, dict(values)))


def _sources(kinds: Collection[str], *, is_first: bool) -> dict[str, Callable[[], Iterable[Sample]]]:
    """Return the samplers of each kind. One process per machine samples the machine's counters."""
    sources: dict[str, Callable[[], Iterable[Sample]]] = {}
    if "gpu" in kinds:
        sources |= {"torch's memory": samplers.torch_memory, "the GPU": samplers.gpu}
    try:
        stats = system_stats()
    except ImportError as error:
        _LOG.debug("The machine's counters aren't sampled: %s", error)
        return sources
    of_kernel = [kind for kind in kinds if kind != "gpu" and (is_first or kind not in _OF_THE_MACHINE)]
    return {**sources, **{kind: partial(getattr(samplers, kind), stats) for kind in of_kernel}}
