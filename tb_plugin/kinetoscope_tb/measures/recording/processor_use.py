"""How much the process and the machine used the processors, from the system counters that our recorder writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.intervals import Ints, length_before, merge
from ...trace.model import Trace

_LEAST_NS = 200_000_000
"""The kernel counts processor time in ticks of 10 ms (proc(5)): over less than 20 of them it says too little."""
_LEAST_KNOWN = 0.8  # of the time that is asked for
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
