"""The graphs of all ranks as one: segments of each rank between its calls, and calls that are one collective on all.

A collective begins to move data when the last of its ranks has come, and ends on all of them together. So what decides
on a rank's call is the start of the call of the rank that came last; who that is and how long the others waited is
told without clocks (`waits`). A receive waits until its send has begun: that takes clocks, and is told where it is more
than they may be wrong. A call of which it isn't known decides for itself: its time is its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.jit import Array, compiled
from ..run import Ranks

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
NOISE = 3  # × the median distance of ends from the common ones
_NEVER = np.iinfo(np.int64).min // 2


@dataclass(frozen=True)
class MergedGraph:
    """Calls, steps and segments of all ranks side by side: rows of `calls`, `steps` and `segments` of Ranks.

    Attributes:
        ranks: Whose.
        start: When each call began, on its rank's clock.
        dur: How long each call lasted.
        wait: How much of it was waiting for the last rank; 0 where that isn't told.
        noise: A shorter wait is none.
        is_split: Whether the wait is told, and all ranks of the group are there.
        last: For each call that of the rank that came last, or itself.
        unit: Calls of one collective have the same number; the numbers are in such an order that what decides comes
            before what it decides on.
        since: The call that each segment begins with, or NONE; likewise `early`, `spent` [segment, class] and `member`.
        of_call: For each call its first segment; one more entry says where the last one's end.
        of_step: Likewise for each step.
    """

    ranks: Ranks
    start: Ints
    dur: Ints
    wait: Ints
    noise: Ints
    is_split: Bools
    last: Ints
    unit: Ints
    since: Ints
    early: Ints
    spent: Ints
    member: Ints
    of_call: Ints
    of_step: Ints

    @classmethod
    def of(cls, ranks: Ranks) -> MergedGraph:
        """Return the graphs of a run, of the recordings that are side by side."""
        segments = ranks.segments.with_columns(nth=pl.int_range(pl.len()))
        segments = segments.sort(pl.col("sync_point") >= 0, pl.col("sync_point"), "step", "nth")
        since, sync_point, step = (
            segments[name].to_numpy().astype(np.int64) for name in ("since", "sync_point", "step")
        )
        steps = int((sync_point < 0).sum())
        of_step = np.searchsorted(step[:steps], np.arange(ranks.steps.height + 1))
        of_call = steps + np.searchsorted(sync_point[steps:], np.arange(ranks.calls.height + 1))
        calls = _split(ranks)
        unit, is_one = _units(calls["match"].to_numpy(), since, of_call)
        wait = np.where(is_one, calls["wait_ns"].to_numpy(), 0)
        return cls(
            ranks,
            start=calls["start_ns"].to_numpy(),
            dur=calls["dur_ns"].to_numpy(),
            wait=wait,
            noise=calls["noise"].to_numpy(),
            is_split=is_one & calls["is_whole"].to_numpy(),
            last=np.where(is_one, calls["last"].to_numpy(), np.arange(wait.size)),
            unit=unit,
            since=since,
            early=segments["slack_ns"].to_numpy(),
            spent=segments["spent_ns"].to_numpy(),
            member=segments["member"].to_numpy().astype(np.int64),
            of_call=of_call,
            of_step=of_step,
        )

    @cached_property
    def target(self) -> Ints:
        """The call at whose start each segment ends, or NONE."""
        return np.repeat(np.arange(NONE, self.dur.size), [self.of_call[0], *np.diff(self.of_call)])

    @cached_property
    def length(self) -> Ints:
        """How long each segment is."""
        length: Ints = self.spent.sum(axis=1)
        return length

    def shift_of_steps(self, saved: Ints, cut: Ints) -> Ints:
        """By how much each rank's steps would end later, if segments took less by `saved` and data in calls by `cut`.

        Each step is laid out anew alone: whatever was over when it began stays where it was. A collective begins to
        move data when the last of its ranks has come then, be it the one that came last or another one.
        """
        step = np.repeat(np.arange(self.of_step.size - 1), np.diff(self.of_step))
        window = np.concatenate([step, self._step_of_calls()[self.target[self.of_call[0] :]]])
        own = (self.since >= 0) & (self._step_of_calls()[self.since] == window)
        since = np.where(own, self.since, NONE)
        order = np.argsort(self.unit, kind="stable")
        ends: Ints = _shifted(order, self.unit, self.of_call, since, self.early + saved, self.wait, cut)
        found: Ints = _latest(self.of_step, since, self.early + saved, ends)
        return found

    def _step_of_calls(self) -> Ints:
        """The step in whose window each call starts, as its segments say; NONE where it has none."""
        found = np.full(self.dur.size + 1, NONE, np.int64)
        segments = self.ranks.segments.filter(pl.col("sync_point") >= 0)
        found[segments["sync_point"].to_numpy()] = segments["step"].to_numpy()
        return found


def _split(ranks: Ranks) -> pl.DataFrame:
    """The calls with `match` (NONE: decides for itself), `wait_ns`, `last`, `noise` and `is_whole`; in order."""
    clocks = ranks.clocks.select("member", "error_ns", residual=pl.col("residual_ns").fill_null(0.0))
    sizes = ranks.matches.select("match", is_whole=(pl.col("size") < 0) | (pl.col("members") >= pl.col("size")))
    calls = ranks.calls.with_row_index("row").join(clocks, "member", "left", maintain_order="left")
    calls = calls.with_columns(noise=(NOISE * pl.col("residual").max().over("match")).round())
    calls = _received(calls.with_columns(at=ranks.on_one_clock(calls, "start_ns")))
    calls = calls.with_columns(match=pl.when(pl.col("wait_ns").is_not_null()).then("match"))
    calls = calls.join(sizes, "match", "left", maintain_order="left")
    is_one = pl.col("match").is_not_null()
    return calls.with_columns(
        last=pl.when(is_one).then(pl.col("row").sort_by("wait_ns", "row").first().over("match")).otherwise("row"),
    ).select(
        "start_ns",
        "dur_ns",
        pl.col("match").fill_null(NONE).cast(pl.Int64),
        pl.col("wait_ns").fill_null(0),
        pl.col("last").cast(pl.Int64),
        pl.col("noise").cast(pl.Int64),
        pl.col("is_whole").fill_null(value=False),
    )


def _received(calls: pl.DataFrame) -> pl.DataFrame:
    """The calls with the wait of receives whose send began later, beyond the clocks' errors; that of the send is 0."""
    is_send, is_recv = pl.col("kind") == "send", pl.col("kind") == "recv"
    is_pair = pl.col("match").is_not_null() & (is_send | is_recv) & (pl.col("dur_ns") >= 0)
    sure = pl.col("error_ns").filter(is_pair).sum() + pl.col("noise").max()
    has_both = (pl.col("error_ns").filter(is_send & is_pair).count() == 1) & (
        pl.col("error_ns").filter(is_recv & is_pair).count() == 1
    )
    late = pl.col("at").filter(is_send).first() - pl.col("at").filter(is_recv).first()
    told = pl.when((has_both & (late > sure)).over("match") & is_pair).then(late.over("match"))
    wait = pl.when(told.is_not_null()).then(pl.when(is_recv).then(pl.min_horizontal(told, "dur_ns")).otherwise(0))
    return calls.with_columns(wait_ns=pl.coalesce("wait_ns", wait))


def _units(match: Ints, since: Ints, of_call: Ints) -> tuple[Ints, Bools]:
    """(the unit of each call, whether it is one with others).

    Calls that were matched across each other, so that each would decide on the other, decide for themselves.
    """
    match = match.copy()
    while True:
        alone = np.flatnonzero(match < 0)
        numbers = np.where(match >= 0, match, 0)
        numbers[alone] = numbers.max(initial=-1) + 1 + np.arange(alone.size)
        _, unit = np.unique(numbers, return_inverse=True)
        place = _order(unit.astype(np.int64), since, of_call)
        crossed = (place[unit] < 0) & (match >= 0)
        if not crossed.any():
            return place[unit], match >= 0
        match[crossed] = NONE


@compiled
def _order(unit: Array, since: Array, of_call: Array) -> Array:
    """For each unit its place in an order in which all that decides on it comes before it, or -1 if there is none."""
    units = unit.max() + 1 if unit.size else 0
    waits = np.zeros(units, np.int64)
    first = np.zeros(units + 1, np.int64)  # of the units that each one decides on
    for c in range(unit.size):
        for segment in range(of_call[c], of_call[c + 1]):
            if since[segment] >= 0:
                waits[unit[c]] += 1
                first[unit[since[segment]] + 1] += 1
    first = np.cumsum(first)
    fill = first[:-1].copy()
    after = np.empty(first[-1], np.int64)
    for c in range(unit.size):
        for segment in range(of_call[c], of_call[c + 1]):
            if since[segment] >= 0:
                after[fill[unit[since[segment]]]] = unit[c]
                fill[unit[since[segment]]] += 1
    place = np.full(units, -1, np.int64)
    ready = np.flatnonzero(waits == 0)
    queue = np.empty(units, np.int64)
    queue[: ready.size] = ready
    count = ready.size
    k = 0
    while k < count:
        u = queue[k]
        place[u] = k
        k += 1
        for i in range(first[u], first[u + 1]):
            waits[after[i]] -= 1
            if waits[after[i]] == 0:
                queue[count] = after[i]
                count += 1
    return place


@compiled
def _shifted(order: Array, unit: Array, of_call: Array, since: Array, early: Array, wait: Array, cut: Array) -> Array:
    """By how much each call would end later; `order` are the calls in the order of their units."""
    ends = np.zeros(order.size, np.int64)
    i = 0
    while i < order.size:
        stop = i
        begins = _NEVER
        while stop < order.size and unit[order[stop]] == unit[order[i]]:
            c = order[stop]
            start = 0 if of_call[c] == of_call[c + 1] else _NEVER
            for segment in range(of_call[c], of_call[c + 1]):
                before = ends[since[segment]] if since[segment] >= 0 else 0
                start = max(start, before - early[segment])
            begins = max(begins, start - wait[c])
            stop += 1
        for k in range(i, stop):
            ends[order[k]] = begins - cut[order[k]]
        i = stop
    return ends


@compiled
def _latest(of_step: Array, since: Array, early: Array, ends: Array) -> Array:
    """By how much each step would end later; a step without a segment stays where it is."""
    found = np.zeros(of_step.size - 1, np.int64)
    for s in range(found.size):
        for segment in range(of_step[s], of_step[s + 1]):
            before = ends[since[segment]] if since[segment] >= 0 else 0
            at = before - early[segment]
            found[s] = at if segment == of_step[s] else max(found[s], at)
    return found
