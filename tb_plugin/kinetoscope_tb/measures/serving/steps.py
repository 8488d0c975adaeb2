"""The iterations of a server as the steps of its recording, so that every view of steps is a view of iterations."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl

from ...arrays.gather import NONE
from ...errors import KinetoscopeError
from ...names.iterations import iteration_name
from ...trace.model import STEPS, Trace
from ...trace.steps import with_step_numbers
from ..recording.contents import has_iterations
from .iterations import host_cycles, server_iterations
from .steadiness import STEADY


def with_iterations_as_steps(trace: Trace) -> Trace:
    """The trace with the iterations as its steps; unchanged if it marks others, or has no iterations but captures.

    Averages cover the steady part. A capture of graphs isn't how a server runs, so it is no step. vLLM marks a step
    around each iteration if it records with a schedule (vllm/profiler/wrapper.py); then the iteration says more.
    """
    has_steps = trace.steps["name"].to_list() != ["all"]
    if not (_has_marked_iterations(trace) if has_steps else has_iterations(trace)):
        return trace
    of_trace = server_iterations(trace)
    frame = of_trace.frame
    if frame.is_empty() or (frame["phase"] == "capture").all():
        return trace
    if has_steps and not _is_one_per_step(trace, frame):
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
    with_steps = dataclasses.replace(trace, steps=steps, host_events=host, launches=launches, device_events=device)
    with_steps.results.put(server_iterations, of_trace)  # they don't depend on steps
    return with_steps


def _has_marked_iterations(trace: Trace) -> bool:
    rows = trace.host_events.select("name", "kind").filter(pl.col("kind") == "annotation")
    names = rows["name"].unique().cast(pl.String)
    try:
        return any(map(iteration_name, names.drop_nulls().to_list()))
    except ValueError as error:  # of the user's own pattern
        raise KinetoscopeError(str(error)) from error


def _is_one_per_step(trace: Trace, frame: pl.DataFrame) -> bool:
    """Whether each marked step has at most one iteration, and each iteration is in one."""
    begins, ends = (trace.steps[name].to_numpy() for name in ("host_start_ns", "host_end_ns"))
    start, end = (frame[name].to_numpy() for name in ("host_start_ns", "host_end_ns"))
    step = np.searchsorted(begins, start, side="right") - 1
    return bool((step >= 0).all() and (end <= ends[step]).all() and np.unique(step).size == step.size)
