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
    of_trace = trace.allocating_calls
    if of_trace is None or of_trace.calls.is_empty():
        return lives.with_columns(**dict.fromkeys(ALLOCATING_CALLS, pl.lit(None, pl.String)))
    calls = of_trace.calls.filter(trace.snapshot_events["device"] == snapshot.device).cast(pl.String)
    return pl.concat([lives, calls[lives["begin"].replace(NONE, None)]], how="horizontal")


def call_names(by: str) -> pl.Expr:
    """The operator, module or category of lives `with_calls`, or why it isn't known."""
    no_call = pl.col("evidence").replace_strict(UNKNOWN_CALL, default=WITHOUT[by], return_dtype=pl.String)
    if by == "category":
        no_call = pl.when(pl.col("evidence").is_in(["outside", "no time"])).then(no_call).otherwise(pl.lit(WITHOUT[by]))
    no_text = pl.when(pl.col("begin") < 0).then(pl.lit(BEFORE)).when(pl.col("evidence").is_null())
    return pl.coalesce(by, no_text.then(pl.lit(NO_TRACE)).otherwise(no_call))
