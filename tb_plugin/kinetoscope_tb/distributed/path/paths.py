"""The critical path of a step across ranks, and how long the step would be if some of its work were faster.

A step here is that of the rank that ends it last, on one clock. Its path leads back from there along what this rank
waited for. Where that is a collective to which another rank came later, by more than the noise of its ends, the path
goes on over there: from the begin of the transfer back along what that rank did before. So the stretches follow each
other without a gap and add up to the step to the nanosecond, and no clock is needed but to tell who ended last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...arrays.jit import Array, compiled
from ...critical_path import CLASSES
from ..run import Ranks
from .merged_graph import MergedGraph

Ints = NDArray[np.int64]

PARTS = (*CLASSES, "transfer", "collective", "before the step")
TRANSFER, UNTOLD, BEFORE = range(len(CLASSES), len(PARTS))
"""Moving data; a collective of which the waits aren't known; what a rank that began the step later did before."""

PATH = {
    "step": pl.Int64,  # a place in Paths.steps
    "number": pl.Int64,  # of the stretch in its step, in order of time
    "member": pl.Int64,
    "start_ns": pl.Int64,  # on its clock
    "stretch_ns": pl.Int64,
    "part": pl.Int64,  # a place in PARTS
    "dur_ns": pl.Int64,  # how much of the stretch is this part
    "since": pl.Int64,  # the call that ended when it began, or NONE
    "until": pl.Int64,  # the call that began, or moved its data, when it ended, or NONE: the step's end
}
"""One row is one part of one stretch of a path."""
_SEGMENT, _CALL, _BEFORE = range(3)


@dataclass(frozen=True)
class Paths:
    """The paths of all steps, and what would make them shorter.

    Attributes:
        merged_graph: The graphs of all ranks.
        steps: One row per step: `step`, `row` and `member` of the rank that ended last, `total_ns`, `is_complete`.
        lead: Of each row of Ranks.steps how much earlier than the last rank it ended, at least 0.
        place: Of each row of Ranks.steps its place in `steps`.
    """

    merged_graph: MergedGraph
    steps: pl.DataFrame
    lead: Ints
    place: Ints

    @classmethod
    def of(cls, ranks: Ranks) -> Paths:
        """Return the paths of a span."""
        rows = ranks.steps.with_columns(end_ns=pl.col("start_ns") + pl.col("total_ns")).with_row_index("row")
        rows = rows.with_columns(end_ns=ranks.on_one_clock(rows, "end_ns"))
        last = rows.sort("end_ns", "row", descending=[True, False]).group_by("step", maintain_order=True).first()
        steps = last.sort("end_ns", maintain_order=True)
        told = rows.select("step", "end_ns").join(
            steps.select("step", "row", last_ns="end_ns").with_row_index("place"),
            "step",
            "left",
            maintain_order="left",
        )
        lead = (told["last_ns"] - told["end_ns"]).to_numpy()
        kept = steps.select("step", "row", "member", "total_ns", "is_complete")
        return cls(MergedGraph.of(ranks), kept, lead, told["place"].to_numpy().astype(np.int64))

    @property
    def counted(self) -> list[int]:
        """The steps that averages are made of: the complete ones, or all if none is complete."""
        complete = np.flatnonzero(self.steps["is_complete"].to_numpy())
        return [int(step) for step in (complete if complete.size else range(self.steps.height))]

    @cached_property
    def stretches(self) -> pl.DataFrame:
        """The frame PATH."""
        merged_graph, ranks = self.merged_graph, self.merged_graph.ranks
        rows, total = (self.steps[name].to_numpy().astype(np.int64) for name in ("row", "total_ns"))
        end = ranks.steps["start_ns"].to_numpy()[rows] + total
        whose = (frame["member"].to_numpy().astype(np.int64) for frame in (self.steps, ranks.calls))
        segments = merged_graph.of_step, merged_graph.of_call, merged_graph.since, merged_graph.length
        calls = merged_graph.start, merged_graph.dur, merged_graph.wait, merged_graph.noise, merged_graph.last
        step, kind, which, on, start, dur, since, until = _walked(*(rows, end, total, *whose, *segments, *calls))
        first = np.searchsorted(step, np.arange(rows.size + 1))
        number = first[step + 1] - np.arange(step.size)  # of a step the last stretch comes first
        row, part, length = self._parts(kind, which, dur)
        columns = (step, number, on, start, dur)
        found = {name: values[row] for name, values in zip(list(PATH)[:5], columns, strict=True)}
        frame = pl.DataFrame(
            {**found, "part": part, "dur_ns": length, "since": since[row], "until": until[row]}, schema=PATH
        )
        return frame.sort("step", "number", "part")

    def _parts(self, kind: Ints, which: Ints, dur: Ints) -> tuple[Ints, Ints, Ints]:
        """(stretch, part, length) of each part of each stretch that isn't empty."""
        spent = np.zeros((kind.size, len(PARTS)), np.int64)
        segments, calls = np.flatnonzero(kind == _SEGMENT), np.flatnonzero(kind == _CALL)
        spent[segments, : len(CLASSES)] = self.merged_graph.spent[which[segments]]
        for row in segments[dur[segments] < self.merged_graph.length[which[segments]]]:
            spent[row] = _scaled(spent[row].tolist(), int(dur[row]))
        spent[calls, np.where(self.merged_graph.is_split[which[calls]], TRANSFER, UNTOLD)] = dur[calls]
        before = np.flatnonzero(kind == _BEFORE)
        spent[before, BEFORE] = dur[before]
        row, part = np.nonzero(spent)
        return row, part, spent[row, part]

    def saved(self, saved: Ints, cut: Ints) -> Ints:
        """How much shorter each step would be, if segments took less by `saved` and data in calls by `cut`."""
        later = self.merged_graph.shift_of_steps(saved, cut) - self.lead
        ends = np.full(self.steps.height, np.iinfo(np.int64).min)
        np.maximum.at(ends, self.place, later)
        return -ends

    def saved_in_legs(self, part: int | None, member: int | None, percent: int) -> Ints:
        """How much shorter each step would be if a part, or all, of the work of a rank, or of all, took that less."""
        chosen = self.merged_graph.spent if part is None else self.merged_graph.spent[:, [part]]
        less = _percent(chosen, percent).sum(axis=1)
        if member is not None:
            less = np.where(self.merged_graph.member == member, less, 0)
        return self.saved(less, np.zeros_like(self.merged_graph.dur))

    def saved_in_calls(self, chosen: NDArray[np.bool_], percent: int) -> Ints:
        """How much shorter each step would be if the data of some calls took that less to move."""
        moving = np.where(chosen & (self.merged_graph.dur > 0), self.merged_graph.dur - self.merged_graph.wait, 0)
        return self.saved(np.zeros_like(self.merged_graph.early), _percent(moving, percent))


def _percent(values: Ints, percent: int) -> Ints:
    less: Ints = values // 100 * percent + values % 100 * percent // 100  # of any size without overflow
    return less


def _scaled(parts: list[int], length: int) -> list[int]:
    """The parts made smaller alike, so that they add up to a length; what rounding leaves goes to the largest."""
    whole = sum(parts)
    scaled = [part * length // whole for part in parts]
    scaled[scaled.index(max(scaled))] += length - sum(scaled)
    return scaled


@compiled
def _walked(
    rows: Array,
    end: Array,
    total: Array,
    on_step: Array,
    on_call: Array,
    of_step: Array,
    of_call: Array,
    since: Array,
    length: Array,
    start: Array,
    dur: Array,
    wait: Array,
    noise: Array,
    last: Array,
) -> Array:
    """(step, kind, segment or call, member, start, duration, since, until) of each stretch; a step's last one first."""
    none = np.int64(NONE)
    found: list[Any] = [(none, none, none, none, none, none, none, none) for _ in range(0)]
    for s in range(rows.size):
        left, at, until, on = total[s], end[s], none, on_step[s]
        first, stop = of_step[rows[s]], of_step[rows[s] + 1]
        hops = 0
        while left > 0:
            hops += 1
            if first == stop or hops > dur.size + 1:  # more than there are calls: the segments were made up
                found.append((s, _BEFORE, none, on, at - left, left, none, until))
                break
            c = since[first]
            took = min(length[first], left)
            if took > 0:
                found.append((s, _SEGMENT, first, on, at - took, took, c, until))
            left -= took
            at -= took
            if left == 0:
                break
            if c < 0:
                found.append((s, _BEFORE, none, on, at - left, left, none, until))
                break
            waited = wait[c] > noise[c]
            took = min(dur[c] - wait[c] if waited else dur[c], left)
            if took > 0:
                found.append((s, _CALL, c, on, at - took, took, c, c))
            left -= took
            until = last[c] if waited else c
            at, on = start[until], on_call[until]
            first, stop = of_call[until], of_call[until + 1]
    columns = np.empty((8, len(found)), np.int64)
    for k in range(len(found)):
        for j, value in enumerate(found[k]):
            columns[j, k] = value
    return columns
