"""Launches: the host time of runtime and driver calls, and the delay until the device began the launched work.

It lists calls, not operators: an operator may launch many kernels, and one call may launch a whole graph. A long call
delays the host; a long delay with an empty queue delays the device. A delay with other work queued is no loss: then the
host is ahead.
"""

from __future__ import annotations

import polars as pl

from ...measures.calls.launch_outcomes import LATE_START_NS, SLOW_CALL_NS
from ...measures.calls.launch_totals import launch_totals
from ...measures.recording.contents import has_launches
from ...pictures import Bars
from ...table import COUNT, DURATION, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key, rows_where
from ...view import Slices, View

UNATTRIBUTED = "[unattributed]"


class Launches(Table):
    """What launching costs, by runtime or driver call; `[unattributed]` is device work without a recorded call."""

    key, weight = ("call",), "total_ns"
    picture = Bars(("total_ns", "device_total_ns"))

    call = Column(TEXT, "Name of the function.")
    calls = Column(COUNT, "Number of calls.")
    total_ns = Column(DURATION, "Host time in its calls; a nested call counts in both.")
    mean_ns = Column(DURATION, "Total / calls, rounded to the nanosecond.")
    max_ns = Column(DURATION, "Longest call.")
    launching_calls = Column(COUNT, "Calls that launched recorded device work.")
    device_events = Column(COUNT, "Kernels, copies and fills that they launched.")
    device_total_ns = Column(DURATION, "Sum of the durations of these kernels, copies and fills.")
    short_work_calls = Column(COUNT, "Launching calls that took longer than the work that they launched.")
    slow_calls = Column(COUNT, f"Launching calls longer than {SLOW_CALL_NS // 1000} µs.")
    mean_delay_ns = Column(
        DURATION,
        "Mean launch delay: the time from the end of a launching call to the start of its work, including waiting in "
        "the queue; 0 if the work starts before the call returns.",
    )
    empty_queue_calls = Column(COUNT, "Launching calls after which the stream had no work except the call's own.")
    mean_empty_queue_delay_ns = Column(DURATION, "Mean launch delay of these: the cost of launching itself.")
    late_calls = Column(COUNT, f"Calls among these whose work began more than {LATE_START_NS // 1000} µs later.")


def launches(trace: Trace) -> pl.DataFrame:
    """Runtime and driver calls by their total time, the longest first."""
    table = launch_totals(trace)
    rest = trace.device_events.select("launch", "dur_ns").filter(pl.col("launch") < 0)["dur_ns"]
    if rest.len():
        unattributed_row = {"call": UNATTRIBUTED, "device_events": rest.len(), "device_total_ns": rest.sum()}
        table = pl.concat([table, pl.DataFrame([unattributed_row])], how="diagonal")
    return Launches.of(table.sort("total_ns", "call", descending=[True, False], nulls_last=True))


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls with this name; without one, the device work that no recorded call launched."""
    if key["call"] == UNATTRIBUTED:
        return {"device_events": rows_where(trace.device_events, launch=None)}
    return {"launches": rows_where(trace.launches, name=key["call"])}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The name of a call; of device work whether no recorded call launched it."""
    if frame == "device_events" and trace.device_events["launch"][row] < 0:
        return {"call": UNATTRIBUTED}
    return {"call": trace.launches["name"][row]} if frame == "launches" else None


VIEW = View(
    launches,
    table=Launches,
    title="Launches",
    entry="Idle",
    needs=has_launches,
    hint="No recorded call launched GPU work. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    slices=Slices(events_of_row, row_of, category="Runtime"),
)
