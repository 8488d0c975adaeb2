"""How much the process and the machine used the processors, as our recorder writes it: counters, and sums of a window.

The values of the counters are means over tenths of a second. The sums (`kinetoscope.cpu`) are of the whole window,
however short it is, and say how long each thread waited for a core.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.intervals import Ints, length_before, merge
from ...trace.meta import Meta, positive_int
from ...trace.model import Trace

_LEAST_NS = 200_000_000
"""The kernel counts processor time in ticks of 10 ms (proc(5)): over less than 20 of them it says too little."""
_LEAST_KNOWN = 0.8  # of the time that is asked for
_MOST_CORES = 1 << 16
_MOST_VALUES = 0.9  # the share of samples that `peak_cores` is the least upper bound of


class ProcessorUse(NamedTuple):
    """Means over some time.

    Attributes:
        cores: Cores that the process used.
        peak_cores: What it used at most in nine of ten samples.
        machine: The share of all cores that was in use, by any process; None if another process recorded it.
    """

    cores: float
    peak_cores: float
    machine: float | None

    @classmethod
    def of(cls, trace: Trace, start: Ints, end: Ints) -> ProcessorUse | None:
        """The use within some windows; None if the counters don't cover them."""
        values = {name: _within(trace, *of, start, end) for name, of in _COUNTERS.items()}
        cores, machine = values["process"], values["machine"]
        if cores is None:
            return None
        sizes, weights = cores
        order = np.argsort(sizes)
        index = int(np.searchsorted(np.cumsum(weights[order]), _MOST_VALUES * weights.sum()))
        peak = float(sizes[order][min(index, order.size - 1)])
        mean = None if machine is None else float(np.average(machine[0], weights=machine[1]))
        return cls(float(np.average(sizes, weights=weights)), peak, mean)


_COUNTERS = {"process": ("process cpu", "cores"), "machine": ("cpu", "used")}


def _within(
    trace: Trace, counter: str, series: str, start: Ints, end: Ints
) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """(each value of a counter, how long it holds within the windows); None if that is too short."""
    rows = trace.counters.filter(
        (pl.col("name").cast(pl.String) == counter) & (pl.col("series").cast(pl.String) == series)
    )
    if rows.is_empty() or rows["process"].n_unique() > 1:
        return None
    since, value = rows["start_ns"].to_numpy(), rows["value"].to_numpy()
    until = np.append(since[1:], max(int(end.max(initial=0)), int(since[-1])))
    windows = merge([(start, end)])
    inside = [length_before(windows, at) for at in (since, until)]
    known_ns = np.where(np.isnan(value), 0, inside[1] - inside[0])
    real = known_ns > 0
    whole = int((end - start).sum())
    if known_ns.sum() < max(_LEAST_NS, _LEAST_KNOWN * whole):
        return None
    return value[real], known_ns[real]


class ThreadTime(NamedTuple):
    """What a thread used in the window.

    Attributes:
        tid: Its id in the system, as in the file's events.
        used_ns: It ran on a core.
        name: Of a Python thread; empty for others.
        waited_ns: It could have run, but had no core; 0 if that wasn't recorded.
    """

    tid: int
    used_ns: int
    name: str
    waited_ns: int


class ProcessorTime(NamedTuple):
    """What the process used in the window.

    Attributes:
        window_ns: How long the window was; 0 if that wasn't recorded.
        process_ns: What all threads of the process used.
        alive_ns: What those threads used that were alive at the end.
        cores: How many cores the process could use; 0 if that wasn't recorded.
        shared_cores: How many all processes in its container could use, or on its machine; 0 if that wasn't recorded.
        processes: How many processes of the job ran on the machine, at least.
        threads: Those that used a millisecond or more.
    """

    window_ns: int
    process_ns: int
    alive_ns: int
    cores: float
    shared_cores: float
    processes: int
    threads: tuple[ThreadTime, ...]

    @classmethod
    def of(cls, meta: Meta) -> ProcessorTime | None:
        """What the recorder wrote; None if it wrote nothing."""
        cpu = meta.producer.get("cpu")
        if not isinstance(cpu, Mapping):
            return None
        return cls(
            window_ns=positive_int(cpu.get("window_ns")),
            process_ns=positive_int(cpu.get("process_ns")),
            alive_ns=positive_int(cpu.get("threads_ns")),
            cores=_cores(cpu.get("cores")),
            shared_cores=_cores(cpu.get("shared_cores")),
            processes=max(1, positive_int(cpu.get("processes"))),
            threads=tuple(_threads(cpu.get("threads"))),
        )

    @property
    def used_cores(self) -> float | None:
        """How many cores the process used in the mean; None if the window's length wasn't recorded."""
        return self.process_ns / self.window_ns if self.window_ns and self.process_ns else None

    @property
    def is_shared(self) -> bool:
        """Whether the cores that all processes of the job share are used more than those that this one may use.

        All of them are taken to use as much as this one; each may be bound to cores of its own.
        """
        cores = self.used_cores or 0.0
        return self.processes > 1 and self.shared_cores > 0 and self._share_of_all(cores) >= self._share_of_own(cores)

    @property
    def busy_share(self) -> float | None:
        """Which share of its cores the job uses: of those that this process may use, or of those that all share.

        What its processes compute can't take less of the step than that, in whichever order it runs. None if it isn't
        known.
        """
        cores = self.used_cores
        if not cores or not self.cores:
            return None
        return min(1.0, self._share_of_all(cores) if self.is_shared else self._share_of_own(cores))

    def _share_of_own(self, used_cores: float) -> float:
        return used_cores / self.cores if self.cores else 0.0

    def _share_of_all(self, used_cores: float) -> float:
        return used_cores * self.processes / self.shared_cores


def _cores(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and 0 < value <= _MOST_CORES else 0.0


def _threads(rows: Any) -> Iterator[ThreadTime]:
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, list) and len(row) >= 3 and isinstance(row[0], int) and isinstance(row[2], str | None):
            yield ThreadTime(row[0], positive_int(row[1]), row[2] or "", positive_int(row[3]) if row[3:] else 0)
