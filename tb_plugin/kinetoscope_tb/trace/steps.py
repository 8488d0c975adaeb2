"""Steps: when each begins and ends, and which of them the recording cut off.

The host marks when a step begins and ends (ProfilerStep#N), and its device work may run later. So a step's window ends
with the work that was launched inside it, and begins no earlier than the previous window ended.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ..arrays.gather import NONE, gather, map_categories
from ..names.kernels import step_number
from .model import STEPS

Ints = NDArray[np.int64]
_ROWS_AT_ONCE = 1 << 18
_LEFT_OUT = 0.1  # of the steps' device time: the first step begins where less lies before it
FEWEST_DEVICE_ROWS = 0.8  # × those of the previous step: with fewer, the last step's device work was cut off


@dataclass(frozen=True)
class HostSteps:
    """The steps that the host marked, in order of time; `names` is ("all",) if none were marked."""

    names: tuple[str, ...]
    start: Ints
    end: Ints
    is_cut: NDArray[np.bool_]

    def find_steps(self, start: Ints, end: Ints) -> NDArray[np.int32]:
        """Return for each range the step whose host interval contains it, or NONE."""
        steps = np.empty(start.size, np.int32)
        for first in range(0, start.size, _ROWS_AT_ONCE):  # bounds the memory of temporary arrays
            chunk = slice(first, first + _ROWS_AT_ONCE)
            step = (np.searchsorted(self.start, start[chunk], "right") - 1).astype(np.int32)
            inside = (step >= 0) & (end[chunk] <= gather(self.end, step, NONE))
            steps[chunk] = np.where(inside, step, NONE)
        return steps


def host_steps(
    host: pl.DataFrame, extent: tuple[int, int], window_end: int | None, *, are_whole: bool = True
) -> HostSteps:
    """Read the ProfilerStep annotations; without any there is one step that covers everything.

    Args:
        host: Host events with name, kind, thread, start_ns, dur_ns, is_finished.
        extent: Start of the earliest and end of the latest operator, annotation, runtime call or device row.
        window_end: End of the recording, if the file has it.
        are_whole: Whether the file has all rows of steps that had ended by then.
    """
    is_step = map_categories(host["name"], lambda name: step_number(name) is not None)
    rows = host.filter(pl.Series(is_step) & (pl.col("kind") == "annotation"))
    if rows.is_empty():
        first, last = extent
        return HostSteps(("all",), np.array([first]), np.array([last]), np.array([False]))
    threads, count = np.unique(rows["thread"].to_numpy(), return_counts=True)
    rows = rows.filter(pl.col("thread") == threads[count.argmax()]).sort("start_ns")
    start = rows["start_ns"].to_numpy()
    end = start + rows["dur_ns"].to_numpy()
    is_cut = ~rows["is_finished"].to_numpy() | (not are_whole)
    if window_end is not None:
        is_cut = is_cut | (end >= window_end)
    names = tuple(step_number(name) or name for name in rows["name"].cast(pl.String))
    return HostSteps(names, start, end, is_cut)


def step_windows(steps: HostSteps, device: pl.DataFrame, launched_ns: Ints) -> pl.DataFrame:
    """Return the steps frame (model.STEPS).

    Args:
        steps: The marked steps.
        device: Device events with device, stream, start_ns, dur_ns, and the step that launched each, or NONE.
        launched_ns: When the call that launched each of them began, or NONE.
    """
    n = len(steps.names)
    end_ns = (device["start_ns"] + device["dur_ns"]).to_numpy()
    step = device["step"].to_numpy()
    inside = step >= 0
    rows = np.bincount(step[inside], minlength=n)
    last = np.full(n, np.iinfo(np.int64).min)
    np.maximum.at(last, step[inside], end_ns[inside])
    begin = max(steps.start[0], _tail_end(device, launched_ns, steps.start[0]))
    end = np.maximum(np.maximum.accumulate(np.maximum.reduce([steps.start, steps.end, last])), begin)
    start = np.maximum(steps.start, np.append(begin, end[:-1]))
    columns = (steps.names, steps.start, steps.end, start, end, ~steps.is_cut & ~lacks_device_work(rows), rows)
    of_servers = ([None] * n, [None] * n, np.full(n, NONE))
    return pl.DataFrame(dict(zip(STEPS, [*columns, *of_servers], strict=True)), schema=STEPS)


def step_noun(steps: pl.DataFrame) -> str:
    """What a step is called: the step of a loop, or the iteration of a server, which has a phase."""
    return "iteration" if steps["phase"].is_not_null().any() else "step"


def step_in_words(steps: pl.DataFrame) -> str:
    """Any of the steps in a sentence: a step, an iteration, or the recording where no steps are marked."""
    if steps["name"].to_list() == ["all"]:
        return "the recording"
    return "an iteration" if step_noun(steps) == "iteration" else "a step"


def with_step_numbers(
    steps: HostSteps, host: pl.DataFrame, launches: pl.DataFrame, device: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Add the step of each row: for host rows by their time, for device rows by their launch.

    The launch is the call, or the operator if no call is known.
    """
    range_step, call_step = (
        steps.find_steps(start, start + frame["dur_ns"].to_numpy())
        for frame, start in ((frame, frame["start_ns"].to_numpy()) for frame in (host, launches))
    )
    launch, op = (device[name].to_numpy() for name in ("launch", "op"))
    device_step = np.where(launch >= 0, gather(call_step, launch), gather(range_step, op))
    return (
        host.with_columns(step=range_step),
        launches.with_columns(step=call_step),
        device.with_columns(step=device_step.astype(np.int32)),
    )


def _tail_end(device: pl.DataFrame, launched_ns: Ints, begin: int) -> int:
    """When the work that was launched before the first step ends.

    On each stream that is what precedes the first row that was launched later: rows that were launched before, or whose
    launch isn't recorded. A copy on a stream of its own says nothing of what other streams still do, so the latest of
    these ends counts. But where a stream held up another one, most work of the steps may be over by then: that would be
    in no step. Then it is the end that has least device time on the wrong side.
    """
    later = (launched_ns != NONE) & (launched_ns >= begin)
    if later.all():
        return begin
    rows = device.select("device", "stream", "start_ns", "step", end_ns=pl.col("start_ns") + pl.col("dur_ns"))
    rows = rows.with_columns(later=pl.Series(later))
    streams = ("device", "stream")
    first = pl.col("start_ns").filter("later").min().over(streams)
    tails = rows.filter(~pl.col("later") & (pl.col("start_ns") < first))
    ends = tails.group_by(streams).agg(pl.col("end_ns").max())["end_ns"].sort().unique(maintain_order=True).to_numpy()
    if ends.size < 2:
        return int(ends.max(initial=begin))
    of_steps = rows.filter("later", pl.col("step") >= 0)
    left_out = [_time_before(of_steps, end) for end in ends]
    if left_out[-1] <= _LEFT_OUT * _time_after(of_steps, begin):
        return max(begin, int(ends[-1]))
    on_wrong_side = [before + _time_after(tails, end) for before, end in zip(left_out, ends, strict=True)]
    return max(begin, int(ends[np.argmin(on_wrong_side)]))


def _time_before(rows: pl.DataFrame, at: int) -> int:
    return int((np.minimum(rows["end_ns"].to_numpy(), at) - rows["start_ns"].to_numpy()).clip(0).sum())


def _time_after(rows: pl.DataFrame, at: int) -> int:
    return int((rows["end_ns"].to_numpy() - np.maximum(rows["start_ns"].to_numpy(), at)).clip(0).sum())


def lacks_device_work(rows: Ints) -> NDArray[np.bool_]:
    """Which of the last steps have no device work, or too little, because the recording ended before it ran.

    Args:
        rows: How many device rows each step has.
    """
    is_missing = np.zeros(rows.size, bool)
    with_work = np.flatnonzero(rows)
    if with_work.size:
        last = with_work[-1]
        is_missing[last + 1 :] = True
        is_missing[last] = last > 0 and rows[last] < FEWEST_DEVICE_ROWS * rows[last - 1]
    return is_missing
