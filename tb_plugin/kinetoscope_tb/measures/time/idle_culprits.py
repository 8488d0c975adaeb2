"""What the host was doing while a device was idle: the parts of gaps, each cut where the host did something else.

The parts and their causes are those of idle_causes.py. Each is cut again where the host's activity changes, and where
the innermost Python function, operator or runtime call changes on the thread that launched the work which ended the
gap. While that thread has nothing recorded, or if it isn't known, the main thread counts.

With more than MOST_DEVICES devices, only those that were idle longest are looked at: the pieces of each are as many as
what the host did.

Where something was queued, what the host did delayed nothing: such parts have no culprit on the host, except for copies
and graph launches.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import polars as pl

from ...arrays.gather import NONE, gather
from ...arrays.intervals import Intervals, Ints, cut, merge, union, without
from ...trace.model import Trace
from .host_activity import HOST_ACTIVITIES, host_activities
from .host_stack import Doing, HostStack, Rows
from .idle import Windows, gaps
from .idle_causes import gap_parts
from .threads import main_thread

MOST_DEVICES = 64
WITH_HOST = ("host late", "blocked copy", "graph launch", "not shown")
"""The causes that what the host did can explain."""

PIECES: dict[str, type[pl.DataType] | pl.DataType] = {
    "device": pl.Int32,
    "gap": pl.Int32,
    "after": pl.Int32,  # the row of device_events that ended the gap, or NONE
    "start_ns": pl.Int64,
    "end_ns": pl.Int64,
    "cause": pl.String,
    "activity": pl.Enum(HOST_ACTIVITIES),  # of the host, where it was late; else null
    "step": pl.Int32,  # index into `steps`, or NONE
    "stack_row": pl.Int32,  # what the host did: a row of the HostStack, or NONE
}
"""One row is one piece of a gap with one cause, one activity and one culprit. Order: gap, start."""


WHO = ["cause", "activity", "host", "kind", "op", "source"]
"""The columns that name a culprit."""


class Culprits(NamedTuple):
    """Pieces of gaps (PIECES) with what the host did."""

    pieces: pl.DataFrame
    stack: HostStack


def culprits(trace: Trace, *, device: int | None, span: tuple[int | None, int | None] = (None, None)) -> Culprits:
    """The pieces of the gaps of all devices or of one, within a span of time; they add up to the gaps exactly."""
    windows = Windows.of(trace, each=False)
    parts = gap_parts(trace, "device", windows).with_columns(pl.col("cause").cast(pl.String))
    parts = parts.join(gaps(trace, "device", windows).select("gap", "after"), "gap", how="left", maintain_order="left")
    parts = _within(_of_devices(parts) if device is None else parts.filter(pl.col("device") == device), span)
    parts = _cut(parts, "step", (trace.steps["start_ns"].to_numpy(), trace.steps["end_ns"].to_numpy()))
    parts = _with_activity(trace, parts)
    thread = _launching_thread(trace, parts)
    start, end = (parts[side].to_numpy() for side in ("start_ns", "end_ns"))
    main = main_thread(trace)
    stack = HostStack.of(trace, np.append(np.unique(thread), np.int32(main)), union(start, end))
    doing = _doing(stack, thread, main, start, end)
    pieces = parts[doing.interval].with_columns(
        start_ns=pl.Series(doing.start), end_ns=pl.Series(doing.end), stack_row=pl.Series(doing.row, dtype=pl.Int32)
    )
    return Culprits(pieces.select(pl.col(name).cast(dtype) for name, dtype in PIECES.items()), stack)


def pieces_by_culprit(
    trace: Trace, device: int | None = None, from_ns: int | None = None, to_ns: int | None = None
) -> pl.DataFrame:
    """The pieces of gaps (PIECES) with the columns that say who was to blame, `dur_ns` and the name of `after`."""
    found = culprits(trace, device=device, span=(from_ns, to_ns))
    row = found.pieces["stack_row"].replace(NONE, None)
    who = found.stack.descriptions(trace)
    pieces = found.pieces.with_columns(
        pl.col("activity").cast(pl.String),
        *(who[name].gather(row).cast(pl.String) for name in who.columns),
        dur_ns=pl.col("end_ns") - pl.col("start_ns"),
        name=trace.device_events["name"].gather(found.pieces["after"].replace(NONE, None)),
        frame=pl.Series(gather(found.stack.frame.astype(np.int8), found.pieces["stack_row"].to_numpy())),
        frame_row=pl.Series(gather(found.stack.row, found.pieces["stack_row"].to_numpy())),
    )
    named = pieces.select(WHO).unique()
    hashes = pl.Series([_hash(row) for row in named.iter_rows()], dtype=pl.String)
    return pieces.join(named.with_columns(culprit=hashes), WHO, how="left", nulls_equal=True, maintain_order="left")


def _hash(who: tuple[str | None, ...]) -> str:
    return blake2b("\0".join(text or "" for text in who).encode("utf-8", "replace"), digest_size=8).hexdigest()


def _of_devices(parts: pl.DataFrame) -> pl.DataFrame:
    """The parts of the MOST_DEVICES devices that were idle longest."""
    idle = parts.group_by("device").agg(idle_ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    if idle.height <= MOST_DEVICES:
        return parts
    most = idle.sort("idle_ns", "device", descending=[True, False])["device"].head(MOST_DEVICES)
    return parts.filter(pl.col("device").is_in(most.implode()))


def _within(parts: pl.DataFrame, span: tuple[int | None, int | None]) -> pl.DataFrame:
    """The parts, clipped to a span of time."""
    begin, end = span
    clipped = parts.with_columns(
        start_ns=pl.max_horizontal("start_ns", pl.lit(begin, pl.Int64)),
        end_ns=pl.min_horizontal("end_ns", pl.lit(end, pl.Int64)),
    )
    return clipped.filter(pl.col("end_ns") > pl.col("start_ns"))


def _cut(parts: pl.DataFrame, name: str, spans: Intervals) -> pl.DataFrame:
    """The parts, cut where the spans begin and end, with the number of the span that each lies in."""
    piece, start, end, span = cut(parts["start_ns"].to_numpy(), parts["end_ns"].to_numpy(), spans)
    return parts[piece].with_columns(
        pl.Series("start_ns", start), pl.Series("end_ns", end), pl.Series(name, span, dtype=pl.Int32)
    )


def _with_activity(trace: Trace, parts: pl.DataFrame) -> pl.DataFrame:
    """The parts, with the host's activity where the host was late; each instant has the first that applies."""
    active = host_activities(trace)
    covered = merge([])
    number = pl.lit(len(HOST_ACTIVITIES) - 1, pl.Int32)
    for place, name in enumerate(HOST_ACTIVITIES[:-1]):
        parts = _cut(parts, f"in_{place}", without(active[name], covered))
        covered = merge([covered, active[name]])
        number = pl.when(pl.col(f"in_{place}") != NONE).then(pl.lit(place, pl.Int32)).otherwise(number)
    which = parts.select(number).to_series()
    names = pl.Series(HOST_ACTIVITIES, dtype=pl.Enum(HOST_ACTIVITIES)).gather(which)
    return parts.with_columns(activity=pl.when(pl.col("cause") == "host late").then(names))


def _launching_thread(trace: Trace, parts: pl.DataFrame) -> Rows:
    """The thread that launched the work which ended each part's gap, else the main thread; NONE for device causes."""
    launch = gather(trace.device_events["launch"].to_numpy(), parts["after"].to_numpy())
    thread = gather(trace.launches["thread"].to_numpy(), launch)
    by_host = parts["cause"].is_in(WITH_HOST).to_numpy()
    return np.where(by_host, np.where(thread == NONE, main_thread(trace), thread), NONE).astype(np.int32)


def _doing(stack: HostStack, thread: Rows, main: int, start: Ints, end: Ints) -> Doing:
    """What each thread did in each interval; what the main thread did while a thread has nothing recorded."""
    own = stack.pieces(thread, start, end)
    launcher = thread[own.interval]
    is_blank = (own.row == NONE) & (launcher != NONE) & (launcher != main)
    blank = np.flatnonzero(is_blank)
    filled = stack.pieces(np.full(blank.size, main, np.int32), own.start[blank], own.end[blank])
    filled = filled._replace(interval=own.interval[blank][filled.interval])
    both = [
        np.concatenate([first[~is_blank], second])
        for first, second in ((own.interval, filled.interval), (own.start, filled.start), (own.end, filled.end))
    ]
    row = np.concatenate([own.row[~is_blank], filled.row])
    order = np.lexsort((both[1], both[0]))
    return Doing(both[0][order], both[1][order], both[2][order], row[order])
