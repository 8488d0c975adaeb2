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

from ..arrays.gather import NONE, category_codes, number_rows_alike, scatter_add
from ..arrays.native import Function
from ..measures.calls.kernel_work import KernelWork
from ..measures.time.idle import axes
from .facts import Facts
from .spread import growth

_find_occurrences = Function("occurrences")
_find_overlaps_of_neighbors = Function("overlaps_of_neighbors")

_FEWEST = 5  # equal calls
_FASTEST = 0.1  # quantile
_SLOWER = 1.25  # times the fastest: equal calls differ by less
_LEAST_NS = 10_000  # of a call: shorter ones differ by what a clock's tick and a cache miss cost
_ALONE = 0.1  # of a call: neighbors of a stream may overlap by less
_BINS = 12  # of the recording, without steps
_FEWEST_PARTS = 4
_FEWEST_IN_PART = 3  # calls that are compared: the time of fewer may be chance
_MOST = 0.8  # of the slow calls are in the slow parts: then time explains them
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
        index = np.where(is_compared, part, NONE)
        parts = int(index.max(initial=NONE)) + 1
        time, least = (scatter_add(index, values.astype(np.int64), parts) for values in (dur, fastest))
        slow_down = time / np.maximum(least, 1)
        is_slower = dur > _SLOWER * fastest
        in_slow_part = np.append(slow_down, 0)[index] > _SLOWER
        is_explained = (is_slower & in_slow_part).sum() >= _MOST * max(is_slower.sum(), 1)
        is_explained = bool(is_explained and _are_most_kinds(calls, is_slower))
        has_calls = np.bincount(part[is_compared], minlength=parts) > 0
        is_enough = is_compared.sum() >= _FEWEST_IN_PART * max(has_calls.sum(), _FEWEST_PARTS)
        is_enough &= has_calls.sum() >= _FEWEST_PARTS
        return cls(fastest, is_slower & bool(is_explained and is_enough), slow_down[has_calls])

    @property
    def rise(self) -> tuple[float, float]:
        """(slow-down at first, at the end) if it rises all the time; (0, 0) if it doesn't."""
        return growth(self.slow_down)


def _equal_calls(facts: Facts, work: KernelWork) -> pl.DataFrame:
    """For each kernel: dur_ns, fastest (that of its fastest equal calls), is_compared (it has enough), and `alike`.

    Equal calls have the same number `alike`.
    """
    dur, device = (facts.kernels[name].to_numpy() for name in ("dur_ns", "device"))
    _, kernel = number_rows_alike((device, *(category_codes(facts.kernels[name]) for name in ("name", "grid"))))
    is_known = np.array([group.shapes is not None for group in work.groups], bool)[work.group]
    occurrence = np.full(dur.size, NONE, np.int32)
    if not is_known.all():
        step = facts.trace.device_events["step"].to_numpy()[facts.kernel_rows]
        occurrence = np.where(is_known, occurrence, _occurrences(number_rows_alike((step, kernel))[1]))
    first, alike = number_rows_alike((kernel, work.group, occurrence))
    is_alone = _alone(facts)
    fastest_of, alone_of = _fastest(alike, dur, is_alone, first.size)
    is_compared = is_alone & (alone_of[alike] >= _FEWEST) & (dur >= _LEAST_NS)
    fastest = np.where(is_compared, fastest_of[alike], dur).astype(np.float64)
    return pl.DataFrame({"dur_ns": dur, "is_compared": is_compared, "alike": alike, "fastest": fastest})


def _occurrences(number: NDArray[np.int32]) -> NDArray[np.int32]:
    """How often each number came before."""
    occurrence = np.empty(number.size, np.int32)
    _find_occurrences(number, np.zeros(int(number.max(initial=NONE)) + 1, np.int32), occurrence)
    return occurrence


def _fastest(
    alike: NDArray[np.int32], dur: NDArray[np.int64], is_alone: NDArray[np.bool_], kinds: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(The time of the fastest calls of each kind, 0 if none ran alone; how many of it did)."""
    calls = pl.DataFrame({"alike": alike, "dur_ns": dur}).filter(pl.Series(is_alone))
    sums = calls.group_by("alike").agg(pl.col("dur_ns").quantile(_FASTEST, "lower").cast(pl.Int64), pl.len())
    fastest, alone = np.zeros((2, kinds), np.int64)
    fastest[sums["alike"].to_numpy()], alone[sums["alike"].to_numpy()] = (
        sums["dur_ns"].to_numpy(),
        sums["len"].to_numpy(),
    )
    return fastest, alone


def _are_most_kinds(calls: pl.DataFrame, is_slower: NDArray[np.bool_]) -> bool:
    """Whether most kinds of equal calls have slow ones; else it is a matter of what some of them work on."""
    kinds = calls.with_columns(is_slower=pl.Series(is_slower)).filter("is_compared").group_by("alike")
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
    overlap = np.empty(events.height, np.int64)
    for _, _, rows in axes(facts.trace, "device"):
        _find_overlaps_of_neighbors(start, dur, rows, overlap)
    return np.asarray((overlap <= _ALONE * dur)[facts.kernel_rows])
