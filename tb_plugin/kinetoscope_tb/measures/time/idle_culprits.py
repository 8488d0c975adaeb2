"""What the host was doing while a device was idle: the parts of gaps, each cut where the host did something else.

The parts and their causes are those of idle_causes.py. Each is cut again where the host's activity changes, and where
the innermost Python function, operator or runtime call changes on the thread that launched the work which ended the
gap. While that thread has nothing recorded, or if it isn't known, the main thread counts.

With more than MOST_DEVICES devices, only those that were idle longest are looked at: the pieces of each are as many as
what the host did.

Where something was queued, what the host did delayed nothing: such parts have no culprit on the host, except for
copies, graph launches and calls that take SLOW_LAUNCH_NS to launch. Nor has what isn't shown: there the device may have
been busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import polars as pl

from ...arrays.gather import NONE, category_codes, gather, number_alike
from ...arrays.intervals import Intervals, cut, merge, union, without
from ...arrays.native import Function
from ...trace.model import Trace
from ...trace.results import once_per_recording
from .host_activity import HOST_ACTIVITIES, host_activities
from .host_stack import FRAMES, HostStack, Rows
from .idle import Windows, gaps
from .idle_causes import CAUSES, SLOW_LAUNCH_NS, gap_parts
from .step_subset import counted_steps
from .threads import main_thread

_sum_by_gap = Function("sum_by_gap")
_sum_of_gaps = Function("sum_of_gaps")
_sum_in_steps = Function("sum_in_steps")

MOST_DEVICES = 64
WITH_HOST = ("host late", "blocked copy", "graph launch")
"""The causes that what the host did can explain; it can a launch latency, if that lasts SLOW_LAUNCH_NS."""

PIECES: dict[str, type[pl.DataType] | pl.DataType] = {
    "device": pl.Int32,
    "gap": pl.Int32,
    "after": pl.Int32,  # the row of device_events that ended the gap, or NONE
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "cause": pl.Enum(CAUSES),
    "activity": pl.Enum(HOST_ACTIVITIES),  # of the host, where it was late; else null
    "step": pl.Int32,  # index into `steps`, or NONE
    "stack_row": pl.Int32,  # what the host did: a row of the HostStack, or NONE
}
"""One row is one piece of a gap with one cause, one activity and one culprit. Order: gap, start."""


WHO = ["cause", "activity", "host", "kind", "op", "source"]
"""The columns that name a culprit."""

HOST_WITH_OP = pl.when(pl.col("op").is_null()).then("host").otherwise(pl.format("{} in {}", "host", "op"))
"""What the host did, a runtime call with the operator that made it: `cudaMemcpyAsync in aten::copy_`."""


class Culprits(NamedTuple):
    """Pieces of gaps (PIECES) with what the host did."""

    pieces: pl.DataFrame
    stack: HostStack


def culprits(trace: Trace, *, device: int | None) -> Culprits:
    """The pieces of the gaps of all devices or of one; they add up to the gaps exactly."""
    windows = Windows.of(trace, per_step=False)
    parts = gap_parts(trace, "device", windows)
    parts = _of_devices(parts) if device is None else parts.filter(pl.col("device") == device)
    after = _after(gaps(trace, "device", windows), parts)
    causes = parts["cause"].to_physical().to_numpy()
    steps = trace.steps["start_ns"].to_numpy(), trace.steps["end_ns"].to_numpy()
    part, start, end, step = cut(parts["start_ns"].to_numpy(), parts["end_ns"].to_numpy(), steps)
    active, activities = _activities(trace)
    piece, start, end, span = cut(start, end, active)
    part, step = part[piece], step[piece]
    activity = gather(activities, span, missing=len(HOST_ACTIVITIES) - 1)
    is_slow = (parts["end_ns"] - parts["start_ns"]).to_numpy() >= SLOW_LAUNCH_NS
    by_host = np.isin(causes, [CAUSES.index(cause) for cause in WITH_HOST])
    by_host |= is_slow & (causes == CAUSES.index("launch latency"))
    thread = _launching_thread(trace, by_host, after)[part]
    main = main_thread(trace)
    stack = HostStack.of(trace, np.append(np.unique(thread), np.int32(main)), union(start, end))
    pieces = stack.pieces_or_of_main(thread, main, start, end)
    part, step, activity = part[pieces.interval], step[pieces.interval], activity[pieces.interval]
    is_late = causes[part] == CAUSES.index("host late")
    names = pl.Series(HOST_ACTIVITIES, dtype=PIECES["activity"])
    columns = (
        parts["device"].to_numpy()[part],
        parts["gap"].to_numpy()[part],
        after[part],
        pieces.start,
        pieces.end,
        parts["cause"].gather(part),
        names.gather(pl.Series(np.where(is_late, activity, NONE)).replace(NONE, None)),
        step,
        pieces.row,
    )
    return Culprits(pl.DataFrame(dict(zip(PIECES, columns, strict=True)), schema_overrides=PIECES), stack)


@dataclass(frozen=True)
class CulpritPieces:
    """Pieces of gaps, each with its culprit.

    Attributes:
        pieces: The columns of PIECES but for cause and activity, in the same order, and `culprit`: a row of `who`.
        who: The culprits: WHO, and the hash of these as `culprit`.
        frame: For each row of the stack its frame, an index of FRAMES.
        row: Its row there.
    """

    pieces: pl.DataFrame
    who: pl.DataFrame
    frame: np.ndarray
    row: Rows

    @classmethod
    def within(
        cls, trace: Trace, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
    ) -> CulpritPieces:
        """Return the pieces of all devices or of one, clipped to a span of time."""
        whole = culprit_pieces(trace)
        if device is not None and whole.pieces["device"].n_unique() >= MOST_DEVICES:
            whole = _of_device(trace, device)
        pieces = whole.pieces.lazy()
        if device is not None:
            pieces = pieces.filter(pl.col("device") == device)
        if from_ns is not None or to_ns is not None:
            pieces = pieces.with_columns(
                start_ns=pl.max_horizontal("start_ns", pl.lit(from_ns, pl.Int64)),
                end_ns=pl.min_horizontal("end_ns", pl.lit(to_ns, pl.Int64)),
            ).filter(pl.col("end_ns") > pl.col("start_ns"))
        return cls(pieces.collect(), whole.who, whole.frame, whole.row)

    def of_culprit(self, culprit: str | None) -> CulpritPieces:
        """The pieces of one culprit, by its hash."""
        number = pl.arg_where(pl.col("culprit").eq_missing(pl.lit(culprit, pl.String)))
        rows = self.who.select(number).to_series()
        pieces = self.pieces.filter(pl.col("culprit").is_in(rows.implode()))
        return CulpritPieces(pieces, self.who, self.frame, self.row)

    def of_gaps(self, gaps: pl.Series) -> CulpritPieces:
        """The pieces of some gaps, by their numbers."""
        pieces = self.pieces.filter(pl.col("gap").is_in(gaps.implode()))
        return CulpritPieces(pieces, self.who, self.frame, self.row)

    def events(self) -> dict[str, np.ndarray]:
        """What the host was doing, as rows of frames; where it delayed nothing, the work that ended the gap."""
        row = np.unique(self.pieces["stack_row"].to_numpy())
        row = row[row != NONE]
        events = {name: np.unique(self.row[row[self.frame[row] == frame]]) for frame, name in enumerate(FRAMES)}
        after = self.pieces.filter(pl.col("stack_row") == NONE)["after"]
        return {**events, "device_events": after.unique().sort().to_numpy()}

    def by_gap(self) -> pl.DataFrame:
        """The sums of the pieces of each gap and culprit.

        Columns: `device`, `gap`, `after` and `culprit`; `step`: that of the first piece, or NONE; `dur_ns`.
        """
        return _by_gap(self.pieces, self.who.height)

    def by_function(self, activity: str) -> pl.DataFrame:
        """The idle time during an activity by what the host did: `host`, `source`, `dur_ns`; the longest last."""
        length = pl.col("end_ns") - pl.col("start_ns")
        total = self.pieces.group_by("culprit").agg(dur_ns=length.sum()).rename({"culprit": "number"})
        who = self.who.with_row_index("number").with_columns(pl.col("number").cast(pl.Int32))
        who = who.filter(pl.col("activity") == activity).join(total, "number")
        return who.group_by("host", "source").agg(pl.col("dur_ns").sum()).sort("dur_ns", "host", "source")

    def sums(self, trace: Trace) -> pl.DataFrame:
        """The sums of the pieces of each device and culprit.

        Columns: `device`, `culprit`, `total_ns`; `gaps`: in how many; `longest_ns`: in one gap; `after`: the row of
        device_events that ends that gap, or NONE; `follows`: whether the same name follows all; `in_steps_ns` and
        `steps`: in how many of the steps that averages cover, or null if in none.
        """
        numbers = len(self.who) * self.pieces["device"].cast(pl.Int64) + self.pieces["culprit"]
        first, number = number_alike(numbers.to_numpy())
        pieces = self.pieces.with_columns(culprit=pl.Series(number))
        rows = _by_gap(pieces, first.size)
        after = rows["after"].to_numpy()
        codes = category_codes(trace.device_events["name"]).astype(np.int64)
        total, count, longest = (np.zeros(first.size, np.int64) for _ in range(3))
        largest, is_alike = np.full(first.size, NONE, np.int64), np.ones(first.size, np.bool_)
        sums = total, count, longest, largest, is_alike
        _sum_of_gaps(rows["culprit"].to_numpy(), rows["dur_ns"].to_numpy(), gather(codes, after), sums)
        in_steps, steps = np.zeros(first.size, np.int64), np.zeros(first.size, np.int64)
        culprit, step, start, end = (pieces[name].to_numpy() for name in ("culprit", "step", "start_ns", "end_ns"))
        step = np.where(np.isin(step, counted_steps(trace)), step, np.int32(NONE))
        _sum_in_steps(culprit, step, start, end, np.full(first.size, NONE, np.int32), in_steps, steps)
        return self.pieces.select("device", "culprit")[first].with_columns(
            total_ns=pl.Series(total),
            gaps=pl.Series(count),
            longest_ns=pl.Series(longest),
            after=pl.Series(after[largest]),
            follows=pl.Series(is_alike),
            in_steps_ns=pl.Series(in_steps),
            steps=pl.Series(steps).replace(0, None),
        )


def _by_gap(pieces: pl.DataFrame, culprits: int) -> pl.DataFrame:
    """See CulpritPieces.by_gap."""
    gap, culprit, start, end = (pieces[name].to_numpy() for name in ("gap", "culprit", "start_ns", "end_ns"))
    first, total = np.empty(gap.size, np.int32), np.empty(gap.size, np.int64)
    size = _sum_by_gap(gap, culprit, start, end, np.full(culprits, NONE, np.int32), first, total)
    rows = pieces.select("device", "gap", "after", "culprit", "step")[first[:size]]
    return rows.with_columns(dur_ns=pl.Series(total[:size]))


@once_per_recording
def culprit_pieces(trace: Trace) -> CulpritPieces:
    """The pieces of all devices: computed at the first call and cached with the trace."""
    return _of_device(trace, None)


def _of_device(trace: Trace, device: int | None) -> CulpritPieces:
    """The pieces of one device, or of all."""
    pieces, stack = culprits(trace, device=device)
    number, descriptions = stack.descriptions(trace)
    cause, activity = (category_codes(pieces[name]).astype(np.int64) for name in ("cause", "activity"))
    kinds = cause * (len(HOST_ACTIVITIES) + 1) + activity + 1
    of_row = gather(number, pieces["stack_row"].to_numpy()).astype(np.int64)
    first, culprit = number_alike(kinds * (descriptions.height + 1) + of_row + 1)
    who = pieces.select(pl.col("cause", "activity").cast(pl.String))[first]
    row = pl.Series(of_row[first], dtype=pl.Int64).replace(NONE, None)
    who = who.hstack(descriptions.select(pl.all().gather(row)).get_columns())
    who = who.with_columns(culprit=pl.Series([_hash(row) for row in who.select(WHO).iter_rows()], dtype=pl.String))
    alike, same = number_alike(who["culprit"].rank("dense").cast(pl.Int64).to_numpy())
    columns = pieces.select("device", "gap", "after", "start_ns", "end_ns", "step", "stack_row")
    with_culprits = columns.with_columns(culprit=pl.Series(same[culprit]))
    return CulpritPieces(with_culprits, who[alike], stack.frame, stack.row)


def _hash(who: tuple[str | None, ...]) -> str:
    return blake2b("\0".join(text or "" for text in who).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _of_devices(parts: pl.DataFrame) -> pl.DataFrame:
    """The parts of the MOST_DEVICES devices that were idle longest."""
    idle = parts.group_by("device").agg(idle_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    if idle.height <= MOST_DEVICES:
        return parts
    most = idle.sort("idle_ns", "device", descending=[True, False])["device"].head(MOST_DEVICES)
    return parts.filter(pl.col("device").is_in(most.implode()))


def _after(whole: pl.DataFrame, parts: pl.DataFrame) -> Rows:
    """The row of device_events that ended the gap of each part, or NONE."""
    gap = whole["gap"].to_numpy()
    after: Rows = np.full(int(gap.max(initial=0)) + 1, NONE, np.int32)
    after[gap] = whole["after"].to_numpy()
    return gather(after, parts["gap"].to_numpy())


def _activities(trace: Trace) -> tuple[Intervals, Rows]:
    """When the host did any of HOST_ACTIVITIES but the last, and which: without overlaps, the first that applies."""
    active, so_far = host_activities(trace), merge([])
    spans: list[Intervals] = []
    for name in HOST_ACTIVITIES[:-1]:
        spans.append(without(active[name], so_far))
        so_far = merge([so_far, active[name]])
    start, end = (np.concatenate(side) for side in zip(*spans, strict=True))
    number = np.repeat(np.arange(len(spans), dtype=np.int32), [side.size for side, _ in spans])
    order = np.argsort(start, kind="stable")
    return (start[order], end[order]), number[order]


def _launching_thread(trace: Trace, by_host: np.ndarray, after: Rows) -> Rows:
    """The thread that launched the work which ended each part's gap, else the main thread; NONE: not by the host."""
    launch = gather(trace.device_events["launch"].to_numpy(), after)
    thread = gather(trace.launches["thread"].to_numpy(), launch)
    return np.where(by_host, np.where(thread == NONE, main_thread(trace), thread), NONE).astype(np.int32)
