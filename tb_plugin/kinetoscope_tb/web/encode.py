"""The answers as JSON values: one form for the page and for the command line."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import polars as pl

from ..discovery import newest_span, run_labels, span_labels
from ..engine.answers import LoadingProgress, Missing
from ..names.natural_sort import natural_key
from ..view import column_descriptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..discovery import Listing, TraceFile
    from ..reader.event import Event
    from ..table import Column
    from ..timeline.core.model import Track
    from ..view import View


_NO_WORKERS: Mapping[str, Mapping[str, TraceFile]] = {}


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


def loading_state(progress: LoadingProgress, view: str | None = None) -> dict[str, Any]:
    """How far the answer is; `view` is the one that was requested."""
    return {**({} if view is None else {"view": view}), "state": "loading", "progress": asdict(progress)}


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
