"""The answers as JSON values: one form for the page and for the command line."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import polars as pl

from ..discovery import newest_span, run_labels, span_labels
from ..engine.answers import LoadingProgress, Missing, Partial
from ..measures.calls.kernel_names import labels_of_kernels
from ..measures.recording.contents import MAY_BE_IN_CAPTURES, has_communication, has_graphs, is_trace
from ..measures.recording.vendor import vendor_terms
from ..names.natural_sort import natural_key
from ..trace.model import NO_CAPTURES
from ..trace.steps import step_noun
from ..view import column_descriptions
from ..views.overview.environment import job_facts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..discovery import Listing, TraceFile
    from ..reader.event import Event
    from ..table import Column
    from ..timeline.core.model import Track
    from ..trace import Trace
    from ..view import View


_ONE_RANK = "One rank was recorded, without communication. Record several ranks of a run at the same time."
_ONLY_RANK = "The job ran as one rank, so there are no others to compare it with."
_NO_WORKERS: Mapping[str, Mapping[str, TraceFile]] = {}
_NO_SLICES = "A memory snapshot has no slices. Memory shows its blocks over time."


def runs(listing: Listing | None) -> dict[str, Any]:
    """All runs under the logdirs, also jobs without a trace; None is a listing that isn't done yet."""
    if listing is None:
        return {"runs": [], "newest": None, "problems": [], "scanning": True}
    workers_of_runs = {**listing.runs, **dict.fromkeys(listing.jobs, _NO_WORKERS)}
    names = sorted(workers_of_runs, key=natural_key)
    labels = run_labels(names)
    entries = [
        {
            "name": run,
            "label": labels[run],
            "workers": [
                {"name": worker, "spans": _spans(spans), "newest": newest_span(spans)}
                for worker, spans in workers_of_runs[run].items()
            ],
            "notes": [asdict(note) for note in listing.notes.get(run, ())],
        }
        for run in names
    ]
    problems = [asdict(problem) for problem in listing.problems]
    return {"runs": entries, "newest": listing.newest_run, "problems": problems, "scanning": False}


def _spans(spans: Mapping[str, TraceFile]) -> list[dict[str, Any]]:
    labels = span_labels(spans)
    return [
        {
            "name": span,
            "label": labels[span],
            "file": file.shown,
            "bytes": file.bytes,
            "stamp": short_stamp(file.version),
        }
        for span, file in spans.items()
    ]


def short_stamp(stamp: object) -> str:
    """A text that changes with the stamp."""
    return f"{crc32(repr(stamp).encode()):08x}"


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
    # of a run of many ranks
    from ..distributed.contents import OF_COMMUNICATION, has_several_times, has_several_workers

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


def loading_state(progress: LoadingProgress, view: str | None = None) -> dict[str, Any]:
    """How far the answer is; `view` is the one that was requested."""
    return {**({} if view is None else {"view": view}), "state": "loading", "progress": asdict(progress)}


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


def view_answer(view: View, result: pl.DataFrame | Missing, note: str = "") -> dict[str, Any]:
    """The answer of a view; the note says what its rows lack, or which of their numbers are doubtful."""
    if isinstance(result, Missing):
        return {"state": "missing", "view": view.id, "hint": result.hint}
    return answer(view, view.table.columns, result, note)


def answer(view: View, columns: Sequence[Column], frame: pl.DataFrame, note: str) -> dict[str, Any]:
    """Some columns of a view; the note is left out if it is empty."""
    return {"view": view.id, **table(columns, frame), **({"note": note} if note else {})}


def table(columns: Sequence[Column], frame: pl.DataFrame) -> dict[str, Any]:
    """Columns with their definitions and values."""
    return {"state": "ready", "columns": column_descriptions(columns), "data": column_values(frame)}


def event(source: Event) -> dict[str, Any]:
    """One event as the file has it."""
    return {"state": "ready", **asdict(source)}


def track(source: Track) -> dict[str, Any]:
    """A track of the timeline, without its row among the trace's threads, which is internal."""
    fields = asdict(source)
    del fields["thread"]
    return fields


def column_values(frame: pl.DataFrame) -> dict[str, list[Any]]:
    """The columns as lists."""
    return without_nan(frame).to_dict(as_series=False)


def without_nan(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with null for what is not a finite number."""
    floats = pl.col(pl.Float64, pl.Float32)
    return frame.with_columns(pl.when(floats.is_finite()).then(floats))


def csv(frame: pl.DataFrame) -> str:
    """The frame as CSV for spreadsheets, as the page's button gives it.

    Text that a spreadsheet might run as a formula gets an apostrophe in front, because traces aren't trusted. JSON has
    the text unchanged. `formulas.json` defines what looks like a formula; the page is built with the same file.
    """
    rule = json.loads(Path(__file__).with_name("formulas.json").read_text(encoding="utf-8"))
    names = [name for name, kind in frame.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)]
    texts = [pl.col(name).cast(pl.String) for name in names]
    inert = [
        pl.when(text.str.contains(rule["formula"]) & ~text.str.contains(rule["number"]))
        .then(pl.lit("'") + text)
        .otherwise(text)
        .alias(name)
        for name, text in zip(names, texts, strict=True)
    ]
    return without_nan(frame).with_columns(inert).write_csv()
