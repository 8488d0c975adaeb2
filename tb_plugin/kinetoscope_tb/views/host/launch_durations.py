"""How long launching takes: the call, the delay until the device begins, and the work itself, on one scale.

If the calls take longer than the work, the host can't keep the device busy. Delays include waiting in the queue: a
second peak far to the right means that the host is ahead.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...measures.calls.launch_outcomes import launch_outcomes
from ...measures.recording.contents import has_linked_work
from ...measures.time.duration_bins import bin_of, histogram, is_in_bin
from ...pictures import Histogram
from ...table import COUNT, DURATION, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import Part, Slices, View


class LaunchDurations(Table):
    """How many calls, launch delays and device times last how long."""

    key, weight = ("from_ns",), "launching_calls"
    picture = Histogram("from_ns", "to_ns", heights=("launching_calls", "launch_delays", "device_times"))

    from_ns = Column(DURATION, "Shortest duration in this bin.", adds_up=False)
    to_ns = Column(DURATION, "Durations in this bin are shorter than this.", adds_up=False)
    launching_calls = Column(COUNT, "Calls that launched recorded device work, by their own duration.")
    launch_delays = Column(COUNT, "The same calls by the time from their end to the start of their work, at least 0.")
    empty_queue_delays = Column(COUNT, "The same delays of those calls at which the stream had no other work.")
    device_times = Column(COUNT, "The same calls by the total duration of the work that they launched.")


def launch_durations(trace: Trace) -> pl.DataFrame:
    """Launching calls by durations, the shortest first."""
    calls = launch_outcomes(trace).with_columns(trace.launches["dur_ns"]).filter(pl.col("device_rows") > 0)
    return LaunchDurations.of(
        histogram(
            {
                "launching_calls": calls["dur_ns"].to_numpy(),
                "launch_delays": calls["delay_ns"].to_numpy(),
                "empty_queue_delays": calls.filter("hit_empty_queue")["delay_ns"].to_numpy(),
                "device_times": calls["device_ns"].to_numpy(),
            }
        )
    )


def events_of_row(trace: Trace, key: Key) -> Events:
    """The calls that launched work and whose durations are in the bin."""
    is_launching = (launch_outcomes(trace)["device_rows"] > 0).to_numpy()
    return {"launches": np.flatnonzero(is_launching & is_in_bin(trace.launches["dur_ns"], key["from_ns"]))}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The bin of a call that launched work."""
    is_launching = frame == "launches" and (trace.device_events["launch"] == row).any()
    return {"from_ns": bin_of(trace.launches["dur_ns"][row])} if is_launching else None


VIEW = View(
    launch_durations,
    table=LaunchDurations,
    title="How long launching takes",
    entry="Idle",
    place=Part("launches"),
    needs=has_linked_work,
    hint="No recorded call launched GPU work. Pass ProfilerActivity.CPU and the device's activity to the profiler.",
    slices=Slices(events_of_row, row_of),
)
