"""The state of a trace as JSON values: what it has and lacks, or how far it was read."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..distributed.contents import OF_COMMUNICATION, has_several_times, has_several_workers
from ..engine.answers import LoadingProgress, Missing, Partial
from ..measures.calls.kernel_names import labels_of_kernels
from ..measures.recording.contents import MAY_BE_IN_CAPTURES, has_communication, has_graphs, is_trace
from ..measures.recording.vendor import vendor_terms
from ..trace.model import NO_CAPTURES
from ..trace.steps import step_noun
from ..views.overview.environment import job_facts
from .encode import loading_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ..trace import Trace
    from ..view import View

_ONE_RANK = "One rank was recorded, without communication. Record several ranks of a run at the same time."
_ONLY_RANK = "The job ran as one rank, so there are no others to compare it with."
_NO_SLICES = "A memory snapshot has no slices. Memory shows its blocks over time."


def state(
    trace: Trace,
    path: str,
    views: Mapping[str, View],
    health: pl.DataFrame | Missing,
    *,
    is_alone: bool = True,
    has_other_workers: bool = False,
    captures: Sequence[str] = (),
) -> dict[str, Any]:
    """The state of a loaded trace, with the labels of its kernels by their full names.

    Args:
        trace: The trace.
        path: Its path as the page shows it.
        views: The catalogue.
        health: That view of it.
        is_alone: Whether its run has no other ranks. In runs of several, the views of whole runs report what is
            missing.
        has_other_workers: Whether its run has other workers, of its job or not: then something may be wrong with it.
        captures: Files that may be chosen to say what its graphs launch.
    """
    missing = {
        view.id: _hint_for(view, trace, is_alone=is_alone and not (view.level and has_other_workers))
        for view in views.values()
    }
    missing["timeline"] = None if is_trace(trace) else _NO_SLICES
    return {
        "state": "ready",
        "path": path,
        "events": trace.meta.events,
        "rank": trace.meta.rank,
        "steps": trace.steps["name"].to_list(),
        "foreign_writer": trace.meta.foreign_writer,
        "step_noun": step_noun(trace.steps),
        "matrix_units": vendor_terms(trace).matrix_units,
        "labels": dict(labels_of_kernels(trace)),
        "missing": {view: hint for view, hint in missing.items() if hint is not None},
        "captures": list(captures),
        "findings": {} if isinstance(health, Missing) else dict(health["level"].value_counts().rows()),
    }


def _hint_for(view: View, trace: Trace, *, is_alone: bool) -> str | None:
    """The message for a view that has nothing to show; None if it has something."""
    if view.scope == "recording":
        return view.hint_for(trace) if _is_missing(view, trace) else None
    if not is_alone:
        return view.hint if view.needs in OF_COMMUNICATION and not has_communication(trace) else None
    if trace.meta.world_size == 1:
        return _ONLY_RANK
    if view.needs in (has_several_workers, has_several_times):
        return view.hint
    are_ranks_absent = view.level and trace.meta.world_size  # the badge counts what is wrong with the run
    return None if are_ranks_absent or has_communication(trace) else _ONE_RANK


def _is_missing(view: View, trace: Trace) -> bool:
    """Whether the trace lacks what the view needs; not while a capture that may have it is searched."""
    may_come = view.needs in MAY_BE_IN_CAPTURES and trace.captures is NO_CAPTURES and has_graphs(trace)
    return not may_come and view.is_missing(trace)


def reading(progress: LoadingProgress, preview: Partial | None) -> dict[str, Any]:
    """The progress of reading a trace, and a preview of it if that takes long."""
    return loading_state(progress) if preview is None else {**loading_state(progress), "partial": partial(preview)}


def partial(progress: Partial) -> dict[str, Any]:
    """A preview: counts and sums that the rest of the file will raise, and the metadata before the events."""
    preview = progress.preview
    devices = sorted({str(device.get("name") or "") for device in preview.meta.devices} - {""})
    facts = [
        ("Devices of the machine", ", ".join(devices)),
        ("torch", preview.meta.producer.get("torch_version")),
        *job_facts(preview.meta),
    ]
    return {
        "fraction": progress.fraction,
        "events": preview.events,
        "kinds": [{"kind": kind, "events": events} for kind, events in preview.kinds.items()],
        "span_ns": preview.span_ns,
        "steps": preview.steps,
        "step_ns": preview.step_ns,
        "operators": [asdict(total) for total in preview.operators],
        "kernels": [asdict(total) for total in preview.kernels],
        "facts": [{"fact": name, "value": str(value)} for name, value in facts if value not in (None, "")],
    }
