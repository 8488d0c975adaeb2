"""What the trace next to a memory snapshot says of its blocks."""

from __future__ import annotations

import polars as pl

from ...arrays.gather import NONE
from ...trace.model import ALLOCATING_CALLS, Trace
from .snapshots import BEFORE, DeviceSnapshot

NO_TRACE = "[no trace next to the snapshot]"
UNKNOWN_CALL = {
    "several": "[operators of several threads]",
    "between": "[as an operator began or ended]",
    "no call": "[no operator]",
    "outside": "[outside of the trace]",
    "no time": "[no time recorded]",
}
WITHOUT = {"operator": "[no operator]", "module": "[no module]", "category": "[not in the trace's memory]"}


def with_calls(trace: Trace, snapshot: DeviceSnapshot, lives: pl.DataFrame) -> pl.DataFrame:
    """Lives of a device with `operator`, `module`, `step`, `category` and `evidence`; null where they aren't known."""
    calls = _calls_of(trace, snapshot)
    if calls.is_empty():
        return lives.with_columns(**dict.fromkeys(ALLOCATING_CALLS, pl.lit(None, pl.String)))
    return pl.concat([lives, calls[lives["begin"].replace(NONE, None)]], how="horizontal")


def peak_of_step(trace: Trace, snapshot: DeviceSnapshot, step: str) -> int | None:
    """The event of a device after which the most was allocated in a step; None if the history doesn't cover the step.

    It is the last event before the step if the step begins with its peak.
    """
    steps = None if trace.allocating_calls is None else trace.allocating_calls.steps.filter(pl.col("step") == step)
    if steps is None or steps.is_empty() or not snapshot.has_times:
        return None
    begin, end = int(steps["start_ns"][0]), int(steps["end_ns"][0])
    if end < snapshot.times[0] or begin > snapshot.times[-1]:
        return None
    first, behind = snapshot.within(begin, end)
    peak = first + int(snapshot.allocated_bytes[first:behind].argmax()) if behind > first else first - 1
    return first - 1 if snapshot.levels(first - 1)[0] >= snapshot.levels(peak)[0] else peak


def _calls_of(trace: Trace, snapshot: DeviceSnapshot) -> pl.DataFrame:
    """What the trace says of the events of a device, as texts; no rows without a trace."""
    if trace.allocating_calls is None or trace.allocating_calls.calls.is_empty():
        return pl.DataFrame(schema=dict.fromkeys(ALLOCATING_CALLS, pl.String))
    is_of_device = trace.snapshot_events["device"] == snapshot.device
    return trace.allocating_calls.calls.filter(is_of_device).cast(pl.String)


def call_names(by: str) -> pl.Expr:
    """The operator, module or category of lives `with_calls`, or why it isn't known."""
    no_call = pl.col("evidence").replace_strict(UNKNOWN_CALL, default=WITHOUT[by], return_dtype=pl.String)
    if by == "category":
        no_call = pl.when(pl.col("evidence").is_in(["outside", "no time"])).then(no_call).otherwise(pl.lit(WITHOUT[by]))
    no_text = pl.when(pl.col("begin") < 0).then(pl.lit(BEFORE)).when(pl.col("evidence").is_null())
    return pl.coalesce(by, no_text.then(pl.lit(NO_TRACE)).otherwise(no_call))
