"""Steps that were cut off, missing or idle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..measures.recording.server import how_to_record, inference_server
from ..trace import Diagnostic, Trace


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Problems of the steps."""
    steps = trace.steps
    if steps["name"][0] == "all":
        server = inference_server(trace)
        how = how_to_record(server) if server else "Call profiler.step() after each batch."
        yield Diagnostic(
            "no_steps",
            1,
            f"No steps were marked, so the whole recording counts as one. {how}",
            level="note",
        )
        return
    cut = steps.height - int(steps["is_complete"].sum())
    if cut == steps.height:
        yield Diagnostic(
            "no_complete_step",
            cut,
            "The recording cut off every step, so averages cover incomplete steps. Record more than one step: increase "
            "`active` of torch.profiler.schedule.",
        )
    elif cut:
        yield Diagnostic(
            "incomplete_steps", cut, "The recording cut off these steps; averages leave them out.", level="note"
        )
    idle = int((steps["device_rows"] == 0).sum()) if trace.device_events.height else 0
    if idle:
        yield Diagnostic(
            "steps_without_device_work",
            idle,
            "Some steps launched no device work, though other steps did, or the device was busy otherwise.",
            level="note",
        )
    yield from _numbers(trace)


def _numbers(trace: Trace) -> Iterator[Diagnostic]:
    """Consecutive steps whose numbers aren't consecutive."""
    numbers = np.array([int(name) for name in trace.steps["name"] if name.isdecimal()], np.int64)
    jumps = int((np.diff(numbers) != 1).sum())
    if jumps:
        yield Diagnostic(
            "steps_not_consecutive",
            jumps,
            "Step numbers jump or repeat: steps in between weren't recorded, or the profiler was restarted.",
            level="note",
        )
