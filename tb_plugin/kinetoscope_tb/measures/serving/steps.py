"""The iterations of a server as the steps of its recording, so that every view of steps is a view of iterations."""

from __future__ import annotations

import dataclasses

import polars as pl

from ...arrays.gather import NONE
from ...trace.model import STEPS, Trace
from ...trace.steps import with_step_numbers
from .iterations import host_cycles, iterations
from .steadiness import STEADY


def with_iterations_as_steps(trace: Trace) -> Trace:
    """The trace with the iterations as its steps; unchanged if it marks steps, or has no iterations but captures.

    Averages cover the steady part. A capture of graphs isn't how a server runs, so it is no step.
    """
    if trace.steps["name"].to_list() != ["all"] or not trace.holds("iterations"):
        return trace
    frame = iterations(trace).frame
    if frame.is_empty() or (frame["phase"] == "capture").all():
        return trace
    cycles = host_cycles(frame)
    host, launches, device = with_step_numbers(cycles, trace.host_events, trace.launches, trace.device_events)
    steps = frame.select(
        "start_ns",
        "device_rows",
        "phase",
        "part",
        name=pl.Series(cycles.names),
        host_start_ns=pl.Series(cycles.start),
        host_end_ns=pl.Series(cycles.end),
        end_ns="next_ns",
        batch=pl.col("batch").fill_null(NONE),
        is_complete=pl.col("part").is_in(STEADY),
    ).select(list(STEPS))
    stepped = dataclasses.replace(trace, steps=steps, host_events=host, launches=launches, device_events=device)
    iterations.carry_over(trace, stepped)  # they don't depend on steps
    return stepped
