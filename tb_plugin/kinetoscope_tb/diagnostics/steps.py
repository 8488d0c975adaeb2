"""Steps that were cut off, missing or idle."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl

from ..measures.recording.server import how_to_mark_steps, how_to_record, inference_server
from ..measures.serving.iterations import CONFIDENCE, server_iterations
from ..trace import Diagnostic, Trace


def diagnose(trace: Trace) -> Iterator[Diagnostic]:
    """Problems of the steps."""
    steps = trace.steps
    if steps["name"][0] == "all":
        how = how_to_mark_steps(inference_server(trace))
        yield Diagnostic(
            "no_steps",
            1,
            f"No steps were marked, so the whole recording counts as one. {how}",
            level="note",
        )
        return
    if steps["phase"].is_not_null().any():
        yield from _iterations(trace)
        return
    cut = steps.height - int(steps["is_complete"].sum())
    are_doubtful = any(problem.undermines_steps for problem in trace.diagnostics)  # that says why none is complete
    if cut == steps.height and not are_doubtful:
        yield Diagnostic(
            "no_complete_step",
            cut,
            "The recording cut off every step, so averages cover incomplete steps. Record more than one step: increase "
            "`active` of torch.profiler.schedule.",
        )
    elif cut and not are_doubtful:
        yield Diagnostic(
            "incomplete_steps", cut, "The recording cut off these steps; times per step leave them out.", level="note"
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


def _iterations(trace: Trace) -> Iterator[Diagnostic]:
    """The iterations that averages leave out, by part, and how the iterations are known if nothing marks them."""
    left_out = trace.steps.filter(~pl.col("is_complete")).group_by("part", maintain_order=True).len()
    if left_out["len"].sum() == trace.steps.height:
        yield Diagnostic(
            "no_steady_iteration",
            trace.steps.height,
            "No iteration is of a steady part, so averages cover warm-up and iterations that were cut off. "
            + how_to_record(inference_server(trace)),
        )
    elif left_out.height:
        parts = ", ".join(f"{count} {part}" for part, count in left_out.rows())
        yield Diagnostic(
            "unsteady_iterations",
            int(left_out["len"].sum()),
            f"Averages leave these iterations out: {parts}. The view Iterations names each.",
            level="note",
        )
    sources = server_iterations(trace).frame["source"].head(1)  # none if a cache entry was forged
    if any(CONFIDENCE[source] == "medium" for source in sources):
        yield Diagnostic(
            "inferred_iterations",
            trace.steps.height,
            "Nothing marks the iterations of this server: they are inferred from sampling, graphs and the order of "
            "kernels. A border may be off by the work between two iterations.",
            level="note",
        )


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
