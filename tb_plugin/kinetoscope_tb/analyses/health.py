"""Health: what in this recording changes the meaning of its numbers.

Nothing is dropped silently: whatever the reader repaired or lost, and whatever a view has to leave out, is counted here
with what it means.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from ..tables import COUNT, ID, TEXT, Column, Table
from ..trace import Finding, Trace
from ..trace.breakdown import intervals_of
from ..views import View

LEVELS = ("loss", "warning", "note")
NOTICEABLE_OVERHEAD = 0.01  # of the recording


class Health(Table):
    """One row is one thing to know of the recording."""

    key, weight = ("rule",), "count"

    rule = Column(TEXT, "Id of the rule.")
    level = Column(TEXT, "loss: data is gone; warning: some numbers are off or missing; note: good to know.")
    count = Column(COUNT, "How many rows or places it concerns.")
    consequence = Column(TEXT, "What it means for the numbers, and what to do.")
    first_byte = Column(
        ID, "First byte of the decompressed file that it concerns; missing if it is no place in the file."
    )


def health(trace: Trace) -> pl.DataFrame:
    """Losses first, then warnings, then notes."""
    found = [*trace.findings, *_device_findings(trace), *_step_findings(trace), *_recording_findings(trace)]
    found.sort(key=lambda f: LEVELS.index(f.level))
    rows = [(f.rule, f.level, f.count, f.consequence, f.first_offset) for f in found]
    return Health.of(pl.DataFrame(rows, schema=Health.schema(), orient="row"))


def _device_findings(trace: Trace) -> Iterator[Finding]:
    device = trace.device_events
    launchless = device.filter((pl.col("launch") < 0) & (pl.col("op") < 0)).height
    if launchless:
        yield Finding(
            "device_rows_without_launch",
            launchless,
            "The call that launched them was not recorded. They count in every total, for no operator and no step.",
        )
    opless = device.filter((pl.col("launch") >= 0) & (pl.col("op") < 0)).height
    if opless:
        yield Finding(
            "launches_outside_operators",
            opless,
            "Device rows launched while no operator was open; operator tables show their time as unattributed.",
            level="note",
        )
    if not trace.launches.is_empty():
        begun = trace.launches["start_ns"].gather(device["launch"].replace(-1, None))
        early = int((device["start_ns"] < begun).sum())
        if early:
            yield Finding(
                "device_before_launch",
                early,
                "Device rows begin before the call that launched them: host and device clocks are apart by that much.",
            )


def _step_findings(trace: Trace) -> Iterator[Finding]:
    steps = trace.steps
    if steps["name"][0] == "all":
        yield Finding(
            "no_steps",
            1,
            "No steps were marked, so the whole recording counts as one. Call profiler.step() after each batch.",
            level="note",
        )
        return
    cut = steps.height - int(steps["is_complete"].sum())
    if cut == steps.height:
        yield Finding(
            "no_complete_step",
            cut,
            "Every step was cut off by the recording's end; averages are over them all the same.",
        )
    elif cut:
        yield Finding(
            "incomplete_steps", cut, "Steps that the recording cut off; averages leave them out.", level="note"
        )
    idle = int((steps["device_rows"] == 0).sum()) if trace.device_events.height else 0
    if idle:
        yield Finding(
            "steps_without_device_work",
            idle,
            "Steps that launched nothing on a device, while others did.",
            level="note",
        )


def _recording_findings(trace: Trace) -> Iterator[Finding]:
    overhead = trace.others.filter(pl.col("category").cast(pl.String).str.to_lowercase() == "overhead")
    start, end = intervals_of(overhead.filter(pl.col("dur_ns") > 0))
    length = trace.window[1] - trace.window[0]
    spent = int((end - start).sum())
    if length and spent > NOTICEABLE_OVERHEAD * length:
        yield Finding(
            "profiler_overhead",
            overhead.height,
            f"The profiler itself was busy for {spent / length:.1%} of the recording; host times include what it cost.",
        )
    if trace.ops.height and trace.ops["input_shapes"].null_count() == trace.ops.height:
        yield Finding("shapes_off", 1, "Input shapes were not recorded; record_shapes=True records them.", level="note")
    if trace.memory.is_empty():
        yield Finding("memory_off", 1, "Memory was not recorded; profile_memory=True records it.", level="note")
    if trace.python_calls.is_empty() and trace.ops["call_stack"].null_count() == trace.ops.height:
        yield Finding(
            "stacks_off", 1, "Python stacks were not recorded; with_stack=True records them, at a cost.", level="note"
        )


VIEW = View(
    health,
    table=Health,
    title="Trace health",
    group="Overview",
    hint="Nothing was lost or repaired: the numbers are as recorded.",
)
