"""Steps: how long each one took, by category.

Each instant of a step belongs to the first of the eight categories that is active then, over all threads and devices,
so the parts add up to the total. Overlapped work counts as the work that hides it: a copy hidden by a kernel costs
nothing here.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from ...arrays.gather import NONE, map_categories
from ...measures.recording.contents import is_trace
from ...measures.serving.iterations import iteration_of, marks, server_iterations
from ...measures.time.breakdown import CATEGORIES, breakdown
from ...names.kernels import step_number
from ...pictures import StepColumns
from ...table import BOOL, DURATION, INSTANT, TEXT, Column, Table
from ...trace import Trace
from ...trace.row_filters import Events, Key
from ...view import RowTime, Slices, View


class Steps(Table):
    """Where the time of each step went: a `ProfilerStep`, a server's iteration, or `all` if the trace has neither."""

    key, weight = ("step",), "total_ns"
    picture = StepColumns()
    whole = "all steps, without the time between them"

    step = Column(
        TEXT,
        "Number of the step as the profiler counted it, or of a server's iteration from 0; `all` if there are none.",
    )
    phase = Column(TEXT, "Phase of a server's iteration, such as `decode`; missing for other steps.")
    part = Column(
        TEXT,
        "Part of a server's recording: `steady`, `straggler`, `warm-up`, `ramp-up`, `drain` or `cut off`, as in the "
        "view Iterations; missing for other steps.",
    )
    start_ns = Column(
        INSTANT, "When its window begins: its own start, or the end of the previous window if that is later."
    )
    total_ns = Column(
        DURATION, "Length of its window, which ends with the device work that was launched inside the step."
    )
    kernel_ns = Column(DURATION, "A device runs a kernel that isn't communication.")
    memcpy_ns = Column(DURATION, "A device copies, and no device computes.")
    memset_ns = Column(DURATION, "A device fills memory, and nothing above runs.")
    communication_ns = Column(
        DURATION, "A collective or transfer between ranks runs on host or device, and nothing above does."
    )
    runtime_ns = Column(DURATION, "The host is in a CUDA, HIP or other runtime or driver call, and nothing above runs.")
    dataloader_ns = Column(
        DURATION, "The host waits for a batch of a DataLoader, and nothing above runs.", title="DataLoader"
    )
    cpu_exec_ns = Column(
        DURATION, "The host is in any other operator or annotation, and nothing above runs.", title="CPU Exec"
    )
    other_ns = Column(DURATION, "No recorded event runs: Python between operators, or waiting.")
    is_complete = Column(
        BOOL,
        "Whether averages cover it: the whole step was recorded, and a server's iteration is `steady` or `straggler`.",
    )


def steps(trace: Trace) -> pl.DataFrame:
    """The steps in order of time."""
    parts = breakdown(trace)
    start, end = trace.steps["start_ns"], trace.steps["end_ns"]
    columns = [f"{name.lower().replace(' ', '_')}_ns" for name in CATEGORIES]
    return Steps.of(
        pl.DataFrame(
            {
                "step": trace.steps["name"],
                "phase": trace.steps["phase"],
                "part": trace.steps["part"],
                "start_ns": start,
                "total_ns": end - start,
                **dict(zip(columns, parts.values(), strict=True)),
                "is_complete": trace.steps["is_complete"],
            }
        )
    )


def events_of_row(trace: Trace, key: Key) -> Events:
    """The annotations that mark the step."""
    if trace.steps["phase"].is_not_null().any():
        return marks(server_iterations(trace), trace.steps["name"] == key["step"])
    is_so = map_categories(trace.host_events["name"], lambda name: step_number(name) == key["step"] is not None)
    is_annotation = (trace.host_events["kind"] == "annotation").to_numpy()
    return {"host_events": np.flatnonzero(is_so & is_annotation)}


def row_of(trace: Trace, frame: str, row: int) -> Key | None:
    """The step that an annotation or a Python call marks."""
    if trace.steps["phase"].is_not_null().any():
        number = NONE if frame == "device_events" else iteration_of(trace, frame, row)
        return {"step": trace.steps["name"][number]} if number >= 0 else None
    is_annotation = frame == "host_events" and trace.host_events["kind"][row] == "annotation"
    step = step_number(trace.host_events["name"][row] or "") if is_annotation else None
    return None if step is None else {"step": step}


VIEW = View(
    steps,
    table=Steps,
    title="Steps",
    entry="Overview",
    needs=is_trace,
    hint="A memory snapshot has no steps; a trace of the same time has.",
    within="steps",
    slices=Slices(events_of_row, row_of, are_highlighted=False),
    time=RowTime("start_ns", length="total_ns"),
)
