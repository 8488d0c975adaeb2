"""Gradient accumulation: an optimizer updates in each k-th step alone, which takes longer then, as it should."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import map_categories
from ..arrays.intervals import Intervals, Ints, length_within, merge
from ..measures.time.breakdown import intervals_of
from ..names import text
from .facts import Facts, is_optimizer, launched_within
from .model import ClearedTopic

_MOST = 0.5  # of some time


class Updates(NamedTuple):
    """The steps of optimizers that run once in several steps, at equal distances.

    Attributes:
        period: The number of steps from one to the next; 0 if there are none.
        spans: When the host is in them.
    """

    period: int
    spans: Intervals


def periodic_updates(facts: Facts) -> Updates:
    """The updates that take the host longest of those with one period; an optimizer that always runs has none."""
    host = facts.trace.host_events
    rows = host.select("name", "start_ns", "dur_ns", "step")
    rows = rows.filter(pl.Series(map_categories(host["name"], is_optimizer), dtype=pl.Boolean) & (pl.col("step") >= 0))
    by_name = rows.group_by("name").agg(pl.col("step").unique().sort(), pl.col("dur_ns").sum())
    by_name = by_name.sort("dur_ns", pl.col("name").cast(pl.String), descending=[True, False])
    count = facts.length.size
    periods = {name: _period(np.array(steps), count) for name, steps in by_name.select("name", "step").rows()}
    period = next(filter(None, periods.values()), 0)
    names = [name for name in periods if period and periods[name] == period]
    return Updates(period, intervals_of(rows.filter(pl.col("name").is_in(names))) if names else merge([]))


def _period(steps: NDArray[np.integer], count: int) -> int:
    """How far some of so many steps are from each other; 0 if that differs, if they are neighbors, or it is one step.

    Nor may any be missing before the first or behind the last one.
    """
    distances = np.unique(np.diff(steps))
    if distances.size != 1 or distances[0] < 2:
        return 0
    period = int(distances[0])
    return period if steps[0] < period and count - steps[-1] <= period else 0


def accumulation(facts: Facts, which: NDArray[np.bool_], extra_ns: float) -> ClearedTopic | None:
    """That devices compute longer in some steps since an optimizer updates there, once in so many steps; else None.

    Args:
        facts: Of the trace.
        which: The steps that take longer.
        extra_ns: How much longer each of the devices computes in these, in all.
    """
    updates = periodic_updates(facts)
    step = facts.trace.device_events["step"].gather(facts.kernel_rows).to_numpy()
    is_of_update = which[step] & launched_within(facts.trace, updates.spans)[facts.kernel_rows]
    update_ns = int(facts.kernels["dur_ns"].filter(pl.Series(is_of_update, dtype=pl.Boolean)).sum())
    return _verdict(facts, updates) if update_ns >= _MOST * extra_ns * len(facts.computation_of_devices) else None


def accumulation_on_host(facts: Facts, spans: Intervals) -> ClearedTopic | None:
    """The same of what the host does at some times, if that is mostly to update."""
    updates = periodic_updates(facts)
    update_ns, whole_ns = length_within(updates.spans, *spans).sum(), (spans[1] - spans[0]).sum()
    return _verdict(facts, updates) if updates.period and update_ns >= _MOST * whole_ns else None


def _verdict(facts: Facts, updates: Updates) -> ClearedTopic:
    """That the updates are as they should be, with their share of the average step."""
    share = facts.percent(facts.mean(update_lengths(facts, updates)))
    often = f"once in {text.times(updates.period, 'step')} (gradient accumulation)"
    return ClearedTopic("gradient accumulation", f"{share} in `Optimizer.step`, {often}")


def update_lengths(facts: Facts, updates: Updates) -> Ints:
    """How long each step lasts for periodic updates: devices compute what they launch, or without one the host."""
    spans = updates.spans
    if facts.has_device:
        spans = intervals_of(facts.trace.device_events, launched_within(facts.trace, spans))
    return length_within(spans, facts.windows.start, facts.windows.end)
