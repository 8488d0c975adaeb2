"""The graphs of all ranks as one: segments of each rank between its calls, and calls that are one collective.

A collective begins to move data when the last rank has entered it, and ends on all ranks together. So a rank's call
depends on the start of the last rank's call; which rank that is, and how long the others waited, is known without
clocks (`waits`). A call with an unknown wait depends only on its own rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.native import Array, Function
from ..run import Ranks

_count_successors = Function("count_successors")
_order_units = Function("order_units")
_shift_calls = Function("shift_calls")
_shift_steps = Function("shift_steps")

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_NEVER = np.iinfo(np.int64).min // 2


@dataclass(frozen=True)
class MergedGraph:
    """Calls, steps and segments of all ranks side by side: rows of `calls`, `steps` and `segments` of Ranks.

    Attributes:
        ranks: The traces.
        start: When each call began, on its rank's clock.
        dur: Duration of each call.
        wait: The part of it that was waiting for the last rank; 0 if unknown, or no longer than the noise of its ends.
        is_split: Whether the wait is known, and all ranks of the group were recorded.
        last: For each call the call of the rank that came last, or itself.
        unit: Calls of one collective have the same number; the numbers are in topological order.
        since: The call that each segment begins with, or NONE; likewise `slack`, `spent` [segment, class], `member` and
            `step`.
        of_call: For each call its first segment, and the number of segments at the end.
        of_step: Likewise for each step.
    """

    ranks: Ranks
    start: Ints
    dur: Ints
    wait: Ints
    is_split: Bools
    last: Ints
    unit: Ints
    since: Ints
    slack: Ints
    spent: Ints
    member: Ints
    step: Ints
    of_call: Ints
    of_step: Ints

    @classmethod
    def of(cls, ranks: Ranks) -> MergedGraph:
        """Return the merged graph of a run."""
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
        wait = calls["wait_ns"].to_numpy()
        wait = np.where(is_one & (wait > calls["noise"].to_numpy()), wait, 0)
        return cls(
            ranks,
            start=calls["start_ns"].to_numpy(),
            dur=calls["dur_ns"].to_numpy(),
            wait=wait,
            is_split=is_one & calls["is_whole"].to_numpy(),
            last=np.where(is_one, calls["last"].to_numpy(), np.arange(wait.size)),
            unit=unit,
            since=since,
            slack=segments["slack_ns"].to_numpy(),
            spent=segments["spent_ns"].to_numpy(),
            member=segments["member"].to_numpy().astype(np.int64),
            step=step,
            of_call=of_call,
            of_step=of_step,
        )

    @cached_property
    def target(self) -> Ints:
        """The call at whose start each segment ends, or NONE."""
        return np.repeat(np.arange(NONE, self.dur.size), [self.of_call[0], *np.diff(self.of_call)])

    @cached_property
    def length(self) -> Ints:
        """Length of each segment."""
        length: Ints = self.spent.sum(axis=1)
        return length

    @cached_property
    def _own_since(self) -> Ints:
        """The call that each segment begins after; NONE if it is of another step than the segment's end."""
        step = np.repeat(np.arange(self.of_step.size - 1), np.diff(self.of_step))
        window = np.concatenate([step, self._step_of_calls()[self.target[self.of_call[0] :]]])
        own = (self.since >= 0) & (self._step_of_calls()[self.since] == window)
        return np.where(own, self.since, NONE)

    @cached_property
    def between(self) -> Ints:
        """A number for each segment: the same for those that follow and precede the same units, or the step's ends."""
        units = np.append(self.unit, NONE)
        numbers: Ints = (units[self._own_since] + 1) * (units.max() + 2) + units[self.target] + 1
        return numbers

    @cached_property
    def _in_steps(self) -> tuple[Ints, Ints]:
        """(the segments in the order of their steps, where each step begins among them)."""
        order = np.argsort(self.step, kind="stable")
        return order, np.searchsorted(self.step[order], np.arange(self.of_step.size))

    def of_one_step(self, step: int) -> Ints:
        """The segments of a step of one rank."""
        order, first = self._in_steps
        segments: Ints = order[first[step] : first[step + 1]]
        return segments

    def shift_of_steps(self, segment_cut: Ints, transfer_cut: Ints) -> Ints:
        """How much later each rank's steps would end if segments, and transfers in calls, took this much less.

        Steps are simulated separately: everything before a step's start keeps its time. A collective begins to move
        data when the last rank enters it in the simulation, which may be another one than recorded.
        """
        since = self._own_since
        order = np.argsort(self.unit, kind="stable")
        slack = self.slack + segment_cut
        ends: Ints = _call_shifts(order, self.unit, self.of_call, since, slack, self.wait, transfer_cut)
        shifts: Ints = _latest(self.of_step, since, slack, ends)
        return shifts

    def _step_of_calls(self) -> Ints:
        """The step in whose window each call starts, from its segments; NONE if it has none."""
        steps = np.full(self.dur.size + 1, NONE, np.int64)
        segments = self.ranks.segments.filter(pl.col("sync_point") >= 0)
        steps[segments["sync_point"].to_numpy()] = segments["step"].to_numpy()
        return steps


def _split(ranks: Ranks) -> pl.DataFrame:
    """The calls with `match` (NONE: independent), `wait_ns`, `last`, `noise` and `is_whole`; in order."""
    sizes = ranks.matches.select("match", is_whole=(pl.col("size") < 0) | (pl.col("members") >= pl.col("size")))
    calls = ranks.calls.with_row_index("row")
    calls = calls.with_columns(noise=ranks.end_noise(calls))
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


def _units(match: Ints, since: Ints, of_call: Ints) -> tuple[Ints, Bools]:
    """(the unit of each call, whether it has several calls).

    Calls that were matched in contradictory order, which would make a cycle, become independent.
    """
    match = match.copy()
    while True:
        alone = np.flatnonzero(match < 0)
        numbers = np.where(match >= 0, match, 0)
        numbers[alone] = numbers.max(initial=-1) + 1 + np.arange(alone.size)
        _, unit = np.unique(numbers, return_inverse=True)
        position = _order(unit.astype(np.int64), since, of_call)
        is_on_cycle = (position[unit] < 0) & (match >= 0)
        if not is_on_cycle.any():
            return position[unit], match >= 0
        match[is_on_cycle] = NONE


def _order(unit: Array, since: Array, of_call: Array) -> Array:
    """For each unit its position in topological order (Kahn's algorithm), or -1 if it is on or behind a cycle."""
    units = unit.max() + 1 if unit.size else 0
    waits, first = np.zeros(units, np.int64), np.zeros(units + 1, np.int64)
    after = np.empty(_count_successors(unit, since, of_call, waits, first), np.int64)
    queue, position = np.empty(units, np.int64), np.full(units, NONE, np.int64)
    _order_units(unit, since, of_call, first, waits, first.copy(), after, queue, position)
    return position


def _call_shifts(
    order: Array, unit: Array, of_call: Array, since: Array, slack: Array, wait: Array, cut: Array
) -> Array:
    """How much later each call would end; `order` are the calls in the order of their units."""
    ends = np.zeros(order.size, np.int64)
    _shift_calls(order, unit, of_call, since, slack, wait, cut, ends)
    return ends


def _latest(of_step: Array, since: Array, slack: Array, ends: Array) -> Array:
    """How much later each step would end; a step without a segment keeps its time."""
    shifts = np.empty(of_step.size - 1, np.int64)
    _shift_steps(of_step, since, slack, ends, shifts)
    return shifts
