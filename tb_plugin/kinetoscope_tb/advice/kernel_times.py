"""Equal kernels that take different times: falling clocks, or a neighbor. That is about time, not about the kernel.

Calls are equal if the same kernel runs with the same grid on one device, for the same operator with the same inputs;
without recorded inputs, if it is the same one of its name in each step. Calls that run while others run on their device
don't count: these take a part of the device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..measures.calls.kernel_work import KernelWork
from ..measures.time.idle import axes
from .facts import Facts
from .spread import growth

_FEWEST = 5  # equal calls
_FASTEST = 0.1  # quantile
_SLOWER = 1.25  # times the fastest: equal calls differ by less
_LEAST_NS = 10_000  # of a call: shorter ones differ by what a clock's tick and a cache miss cost
_ALONE = 0.1  # of a call: neighbors of a stream may overlap by less
_BINS = 12  # of the recording, without steps
_FEWEST_PARTS = 4
_FEWEST_IN_PART = 3  # calls that are compared: the time of fewer may be chance
_MOST = 0.8  # of the slow calls are in the slow parts: then time explains them
_LIKE = ("device", "name", "grid", "group", "occurrence")  # what equal calls have in common
_KINDS = 0.5  # of the kinds of equal calls have slow ones: else it isn't the device, but what these work on


@dataclass(frozen=True)
class KernelTimes:
    """How kernels compare with their fastest equal calls.

    Attributes:
        fastest_ns: Of each kernel, the time of its fastest equal calls; its own where there are too few.
        is_slower: Which take much longer, if time explains it: most of them are in parts of the recording in which all
            take longer on average.
        slow_down: Of each step, or of each part of a recording without steps, the time of the kernels that have equal
            calls as a multiple of their fastest time; in order, those without kernels left out.
    """

    fastest_ns: NDArray[np.float64]
    is_slower: NDArray[np.bool_]
    slow_down: NDArray[np.float64]

    @classmethod
    def of(cls, facts: Facts, work: KernelWork) -> KernelTimes:
        """Compare the kernels of the steps that count."""
        calls = _equal_calls(facts, work)
        dur, is_compared, fastest = (calls[name].to_numpy() for name in ("dur_ns", "is_compared", "fastest"))
        step = facts.trace.device_events["step"].to_numpy()[facts.kernel_rows]
        part = _parts(facts, step, is_compared)
        time, least = (np.bincount(part[is_compared], values[is_compared]) for values in (dur, fastest))
        slow_down = time / np.maximum(least, 1)
        is_slower = dur > _SLOWER * fastest
        in_slow_part = np.append(slow_down, 0)[np.where(is_compared, part, -1)] > _SLOWER
        is_explained = (is_slower & in_slow_part).sum() >= _MOST * max(is_slower.sum(), 1)
        is_explained = bool(is_explained and _are_most_kinds(calls, is_slower))
        has_calls = np.bincount(part[is_compared]) > 0
        is_enough = is_compared.sum() >= _FEWEST_IN_PART * max(has_calls.sum(), _FEWEST_PARTS)
        is_enough &= has_calls.sum() >= _FEWEST_PARTS
        return cls(fastest, is_slower & bool(is_explained and is_enough), slow_down[has_calls])

    @property
    def rise(self) -> tuple[float, float]:
        """(slow-down at first, at the end) if it rises all the time; (0, 0) if it doesn't."""
        return growth(self.slow_down)


def _equal_calls(facts: Facts, work: KernelWork) -> pl.DataFrame:
    """For each kernel: dur_ns, fastest (that of its fastest equal calls), is_compared (it has enough), and _LIKE."""
    kernel = ("device", "name", "grid")
    rows = facts.kernels.select("dur_ns", *kernel).with_columns(
        group=pl.Series(work.group),
        is_known=np.array([group.shapes is not None for group in work.groups], bool)[work.group],
        step=facts.trace.device_events["step"].gather(facts.kernel_rows),
        alone=pl.Series(_alone(facts)),
    )
    occurrence = pl.int_range(pl.len()).over("step", *kernel)
    rows = rows.with_columns(occurrence=pl.when("is_known").then(pl.lit(-1)).otherwise(occurrence))
    fastest = pl.col("dur_ns").filter(pl.col("alone")).quantile(_FASTEST, "lower").over(_LIKE).fill_null(0)
    is_compared = pl.col("alone") & (pl.col("alone").sum().over(_LIKE) >= _FEWEST) & (pl.col("dur_ns") >= _LEAST_NS)
    rows = rows.with_columns(fastest=fastest, is_compared=is_compared)
    return rows.select(
        "dur_ns",
        "is_compared",
        *_LIKE,
        fastest=pl.when("is_compared").then("fastest").otherwise("dur_ns").cast(pl.Float64),
    )


def _are_most_kinds(calls: pl.DataFrame, is_slower: NDArray[np.bool_]) -> bool:
    """Whether most kinds of equal calls have slow ones; else it is a matter of what some of them work on."""
    kinds = calls.with_columns(is_slower=pl.Series(is_slower)).filter("is_compared").group_by(_LIKE)
    return float(kinds.agg(pl.col("is_slower").any())["is_slower"].mean() or 0) >= _KINDS  # type: ignore[arg-type]


def _parts(facts: Facts, step: NDArray[np.integer], is_compared: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The step of each kernel; in a recording without several steps, which part of its compared kernels it is in."""
    if facts.count > 1:
        return step.astype(np.int64)
    count = int(is_compared.sum())
    bins = max(1, min(_BINS, count // _FEWEST))
    return np.asarray((np.cumsum(is_compared) - is_compared) * bins // max(count, 1))


def _alone(facts: Facts) -> NDArray[np.bool_]:
    """Which kernels run while no other row of device_events runs on their device, but for a moment."""
    events = facts.trace.device_events
    start, dur = events["start_ns"].to_numpy(), events["dur_ns"].to_numpy()
    is_alone = np.empty(events.height, bool)
    for _, _, rows in axes(facts.trace, "device"):
        begin, end, overlap = start[rows], start[rows] + dur[rows], np.zeros(rows.size, np.int64)
        overlap[1:] += np.maximum(np.maximum.accumulate(end)[:-1] - begin[1:], 0)
        overlap[:-1] += np.maximum(end[:-1] - begin[1:], 0)
        is_alone[rows] = overlap <= _ALONE * dur[rows]
    return np.asarray(is_alone[facts.kernel_rows])
