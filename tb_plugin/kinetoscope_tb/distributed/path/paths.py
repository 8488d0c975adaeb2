"""The critical path of a step across ranks, and how long the step would be if some of its work were faster.

A step here is the step of the rank that ends it last, on one clock. Its path leads back from there along what this rank
waited for. At a collective that another rank entered later, by more than the noise of its ends, the path continues on
that rank: from the start of the transfer back along what that rank did before. So the segments follow each other
without a gap and add up to the step to the nanosecond, and clocks only decide which rank ended last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...arrays.native import Array, Function
from ...critical_path.classes import CLASSES
from ..run import Ranks
from .merged_graph import MergedGraph

_walk = Function("walk_back_ranks")

Ints = NDArray[np.int64]

PARTS = (*CLASSES, "transfer", "collective", "before the step")
TRANSFER, UNSPLIT, BEFORE = range(len(CLASSES), len(PARTS))
"""Moving data; a collective with unknown waits; time before a rank began the step, if it began later."""

PATH = {
    "step": pl.Int64,  # an index of Paths.steps
    "number": pl.Int64,  # of the segment in its step, in order of time
    "member": pl.Int64,
    "start_ns": pl.Int64,  # on its member's clock
    "segment_ns": pl.Int64,
    "part": pl.Int64,  # an index of PARTS
    "dur_ns": pl.Int64,  # time of this part in the segment
    "since": pl.Int64,  # the call that ended when it began, or NONE
    "until": pl.Int64,  # the call that began, or whose transfer began, when it ended; NONE: the step's end
}
"""One row is one part of one segment of a path."""
_SEGMENT, _CALL, _BEFORE = range(3)


@dataclass(frozen=True)
class Paths:
    """The paths of all steps, and what-if estimates.

    Attributes:
        merged_graph: The graphs of all ranks.
        steps: One row per step: `step`, `row` and `member` of the rank that ended last, `total_ns`, `is_complete`.
        lead: How much earlier than the last rank each row of Ranks.steps ended, at least 0.
        place: For each row of Ranks.steps its index in `steps`.
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
        ends = rows.select("step", "end_ns").join(
            steps.select("step", "row", last_ns="end_ns").with_row_index("place"),
            "step",
            "left",
            maintain_order="left",
        )
        lead = (ends["last_ns"] - ends["end_ns"]).to_numpy()
        columns = steps.select("step", "row", "member", "total_ns", "is_complete")
        return cls(MergedGraph.of(ranks), columns, lead, ends["place"].to_numpy().astype(np.int64))

    @property
    def averaged_steps(self) -> list[int]:
        """The steps that averages cover: the complete ones, or all if none is complete."""
        complete = np.flatnonzero(self.steps["is_complete"].to_numpy())
        return [int(step) for step in (complete if complete.size else range(self.steps.height))]

    @cached_property
    def segments(self) -> pl.DataFrame:
        """The frame PATH."""
        merged_graph, ranks = self.merged_graph, self.merged_graph.ranks
        rows, total = (self.steps[name].to_numpy().astype(np.int64) for name in ("row", "total_ns"))
        end = ranks.steps["start_ns"].to_numpy()[rows] + total
        whose = (frame["member"].to_numpy().astype(np.int64) for frame in (self.steps, ranks.calls))
        segments = merged_graph.of_step, merged_graph.of_call, merged_graph.since, merged_graph.length
        calls = merged_graph.start, merged_graph.dur, merged_graph.wait, merged_graph.last
        step, kind, which, on, start, dur, since, until = _walk_back(*(rows, end, total, *whose, *segments, *calls))
        first = np.searchsorted(step, np.arange(rows.size + 1))
        number = first[step + 1] - np.arange(step.size)  # the last segment of a step comes first
        row, part, length = self._parts(kind, which, dur)
        columns = (step, number, on, start, dur)
        columns_by_name = {name: values[row] for name, values in zip(list(PATH)[:5], columns, strict=True)}
        frame = pl.DataFrame(
            {**columns_by_name, "part": part, "dur_ns": length, "since": since[row], "until": until[row]}, schema=PATH
        )
        return frame.sort("step", "number", "part")

    def _parts(self, kind: Ints, which: Ints, dur: Ints) -> tuple[Ints, Ints, Ints]:
        """(segment, part, length) of each part of each segment that isn't empty."""
        part_times = np.zeros((kind.size, len(PARTS)), np.int64)
        segments, calls = np.flatnonzero(kind == _SEGMENT), np.flatnonzero(kind == _CALL)
        part_times[segments, : len(CLASSES)] = self.merged_graph.spent[which[segments]]
        for row in segments[dur[segments] < self.merged_graph.length[which[segments]]]:
            part_times[row] = _scale(part_times[row].tolist(), int(dur[row]))
        part_times[calls, np.where(self.merged_graph.is_split[which[calls]], TRANSFER, UNSPLIT)] = dur[calls]
        before = np.flatnonzero(kind == _BEFORE)
        part_times[before, BEFORE] = dur[before]
        row, part = np.nonzero(part_times)
        return row, part, part_times[row, part]

    def _step_savings(self, segment_cut: Ints, transfer_cut: Ints, on_path: pl.Expr, percent: int) -> Ints:
        """How much shorter each step would be if segments, and transfers in calls, took this much less.

        That is no more than the same share of what is on the path: a segment of another rank may have begun before the
        step of the rank that ended last, and what happened before a step keeps its time.
        """
        of_path = np.zeros(self.steps.height, np.int64)
        rows = self.segments.filter(on_path)
        np.add.at(of_path, rows["step"].to_numpy(), rows["dur_ns"].to_numpy())
        most: Ints = np.minimum(self.shorter(segment_cut, transfer_cut), _percent(of_path, percent))
        return most

    def shorter(self, segment_cut: Ints, transfer_cut: Ints) -> Ints:
        """How much earlier each step's last rank would end if segments and transfers took this much less."""
        later = self.merged_graph.shift_of_steps(segment_cut, transfer_cut) - self.lead
        ends = np.full(self.steps.height, np.iinfo(np.int64).min)
        np.maximum.at(ends, self.place, later)
        return -ends

    def saved_in_segments(self, part: int | None, member: int | None, percent: int) -> Ints:
        """How much shorter each step would be if one part (or all) of one rank (or all) took `percent` less."""
        part_times = self.merged_graph.spent if part is None else self.merged_graph.spent[:, [part]]
        less = _percent(part_times, percent).sum(axis=1)
        if member is not None:
            less = np.where(self.merged_graph.member == member, less, 0)
        on_path = pl.col("part") < len(CLASSES) if part is None else pl.col("part") == part
        on_path &= pl.lit(value=True) if member is None else pl.col("member") == member
        return self._step_savings(less, np.zeros_like(self.merged_graph.dur), on_path, percent)

    def saved_in_calls(self, is_faster: NDArray[np.bool_], percent: int) -> Ints:
        """How much shorter each step would be if the transfers of some calls took `percent` less."""
        transfer_ns = np.where(
            is_faster & (self.merged_graph.dur > 0), self.merged_graph.dur - self.merged_graph.wait, 0
        )
        on_path = pl.col("part").is_in([TRANSFER, UNSPLIT]) & pl.col("since").is_in(np.flatnonzero(is_faster).tolist())
        return self._step_savings(
            np.zeros_like(self.merged_graph.slack), _percent(transfer_ns, percent), on_path, percent
        )


def _percent(values: Ints, percent: int) -> Ints:
    less: Ints = values // 100 * percent + values % 100 * percent // 100  # of any size without overflow
    return less


def _scale(parts: list[int], length: int) -> list[int]:
    """Scale the parts so that they add up to a length; the largest takes the rounding error."""
    whole = sum(parts)
    lengths = [part * length // whole for part in parts]
    lengths[lengths.index(max(lengths))] += length - sum(lengths)
    return lengths


def _walk_back(
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
    last: Array,
) -> Array:
    """(step, kind, segment or call, member, start, duration, since, until) of each path segment, the last first."""
    of_graph = rows, end, total, on_step, on_call, of_step, of_call, since, length, start, dur, wait, last
    room, count = 0, 1024
    while count > room:
        room = count
        columns = np.empty((8, room), np.int64)
        count = _walk(of_graph, columns)
    return columns[:, :count]
