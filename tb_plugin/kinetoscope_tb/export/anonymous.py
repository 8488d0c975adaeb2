"""A trace without what it says of its owner, for reports to strangers: kinetoscope report --anonymous.

Whatever is computed from the trace afterwards has pseudonyms alone (pseudonyms.py). Numbers, times, shapes, and names
of operators, kernels, devices and process groups stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from ..discovery import Note, TraceFile
from ..trace import Trace
from ..trace.model import AllocatingCalls, CaptureFiles, Diagnostic, ReplayedCalls
from .pseudonyms import Pseudonyms

Rename = Callable[[str], str]

_KEPT_TEXTS = {"activities", "displayTimeUnit", "launcher", "method", "per", "reason", "unit"}
_PLAIN_WORKER = re.compile(r"(?:rank|worker|process|[dtpec]p|pid)?[-_.~\d]*(?:(?:rank|[dtpec]p)[-_.~\d]*)*")
_HOST_AND_NUMBER = re.compile(r"(.+?)((?:[-_.]\d+)?)", re.DOTALL)
_PLAIN_SPAN = re.compile(r"[-_.:~\dT]*")


def anonymous_trace(trace: Trace, names: Pseudonyms) -> Trace:
    """The trace with pseudonyms; joined with the same captures."""
    recording = _recording(trace.recording, names)
    if trace.recording is trace:
        return recording
    if trace.allocating_calls is not None:
        return recording.with_allocating_calls(_allocating_calls(trace.allocating_calls, names))
    calls = trace.replayed and _replayed_calls(trace.replayed, names)
    return recording.with_captures(_captures(trace.captures, names), trace.device_events["op"], calls)


def anonymous_file(file: TraceFile, names: Pseudonyms) -> TraceFile:
    """What the page knows of a file, with pseudonyms."""
    run = names.of("run", file.run)
    worker = _worker(file.worker, names)
    span = file.span if _PLAIN_SPAN.fullmatch(file.span) else names.of("span", file.span)
    notes = tuple(_note(note, names, file.span, span) for note in file.notes)
    path = f"{run}/{worker}.{span}"
    return replace(file, run=run, worker=worker, span=span, path=path, shown=path, notes=notes)


def _worker(name: str, names: Pseudonyms) -> str:
    """A worker keeps its number, which may be its rank; torch's names begin with the host."""
    if _PLAIN_WORKER.fullmatch(name):
        return name
    host, number = _HOST_AND_NUMBER.fullmatch(name).groups()  # type: ignore[union-attr]  # it fits any text
    return f"{names.of('host', host)}{number}"


def _note(note: Note, names: Pseudonyms, span: str, pseudonym: str) -> Note:
    return replace(note, text=names.in_sentence(note.text), span=pseudonym if note.span == span else note.span)


def _recording(trace: Trace, names: Pseudonyms) -> Trace:
    """The trace as it was read."""
    process = trace.meta.process and replace(trace.meta.process, worker=_worker(trace.meta.process.worker, names))
    top = {key: _value(key, value, names) for key, value in trace.meta.top.items()}
    frames: dict[str, Any] = {
        "threads": _texts(trace.threads, dict.fromkeys(("pid", "tid", "process", "name"), names.thread)),
        "host_events": _host_events(trace.host_events, names),
        "device_events": _texts(trace.device_events, {"mark": names.annotation}),
        "python_calls": _texts(trace.python_calls, {"name": names.frame}),
        "others": _texts(trace.others, {"name": names.other}),
        "counters": _counters(trace.counters, names),
        "snapshot_events": _texts(trace.snapshot_events, {"user_metadata": names.annotation}),
        "snapshot_frames": _snapshot_frames(trace.snapshot_frames, names),
        "snapshot_annotations": _texts(trace.snapshot_annotations, {"name": names.annotation}),
    }
    meta = replace(trace.meta, top=top, processes=(), process=process)
    diagnostics = tuple(_diagnostic(diagnostic, names) for diagnostic in trace.diagnostics)
    return replace(trace, path="", meta=meta, diagnostics=diagnostics, **frames)


def _texts(frame: pl.DataFrame, renames: Mapping[str, Rename]) -> pl.DataFrame:
    """The frame with other texts in some columns, each renamed once."""
    return frame.with_columns(_column(frame[name], rename) for name, rename in renames.items())


def _column(column: pl.Series, rename: Rename) -> pl.Series:
    before = column.drop_nulls().unique().cast(pl.String).to_list()
    after = {text: rename(text) for text in before}
    texts = column.cast(pl.String).replace_strict(after, return_dtype=pl.String)
    return texts if column.dtype == pl.String else texts.cast(pl.Enum(list(dict.fromkeys(after.values()))))


def _host_events(frame: pl.DataFrame, names: Pseudonyms) -> pl.DataFrame:
    """Operators and annotations, which have names of their own kinds."""
    is_operator = {*frame.filter(pl.col("kind") == "operator")["name"].unique().cast(pl.String)}

    def name(text: str) -> str:
        return names.operator(text) if text in is_operator else names.annotation(text)

    return _texts(frame, {"name": name, "call_stack": names.stack})


def _snapshot_frames(frame: pl.DataFrame, names: Pseudonyms) -> pl.DataFrame:
    """Frames of a snapshot's stacks: a file and a function each."""
    return _texts(frame.with_columns(_second(frame, "file", "function", names.function)), {"file": names.file})


def _counters(frame: pl.DataFrame, names: Pseudonyms) -> pl.DataFrame:
    """Counters of the machine keep their series."""
    series = _second(frame, "name", "series", names.series)
    return _texts(frame.with_columns(series), {"name": names.counter, "process": names.thread})


def _second(frame: pl.DataFrame, first: str, second: str, rename: Callable[[str, str], str]) -> pl.Series:
    """A column whose texts are renamed by those of another one."""
    pairs = frame.select(first, second).cast(pl.String)
    others = {pair: rename(pair[0] or "", pair[1]) for pair in pairs.unique().rows() if pair[1] is not None}
    categories = pl.Enum(list(dict.fromkeys(others.values())))
    return pl.Series(second, [others.get(pair) for pair in pairs.rows()], categories)


def _replayed_calls(calls: ReplayedCalls, names: Pseudonyms) -> ReplayedCalls:
    return replace(
        calls,
        host_events=_host_events(calls.host_events, names),
        python_calls=_texts(calls.python_calls, {"name": names.frame}),
    )


def _captures(captures: CaptureFiles, names: Pseudonyms) -> CaptureFiles:
    notes = captures.node_notes
    return CaptureFiles(
        tuple(anonymous_trace(trace, names) for trace in captures.traces),
        notes if notes is None else _texts(notes, {"mark": names.annotation, "stack": names.stack}),
        tuple((names.of("trace", path), names.in_sentence(reason)) for path, reason in captures.unused),
        tuple((names.of("trace", path), names.in_sentence(problem)) for path, problem in captures.damaged),
    )


def _allocating_calls(calls: AllocatingCalls, names: Pseudonyms) -> AllocatingCalls:
    columns = _texts(calls.calls, {"operator": names.operator, "module": names.frame})
    path = names.of("trace", calls.path) if calls.path else ""
    return replace(calls, path=path, calls=columns, problem=names.in_sentence(calls.problem))


def _diagnostic(diagnostic: Diagnostic, names: Pseudonyms) -> Diagnostic:
    fault = diagnostic.fault
    if fault is not None:
        fault = replace(fault, clause=names.in_sentence(fault.clause), remedy=names.in_sentence(fault.remedy))
    return replace(diagnostic, consequence=names.in_sentence(diagnostic.consequence), fault=fault)


def _value(key: str, value: Any, names: Pseudonyms) -> Any:
    """A value of the file's metadata: numbers stay, and texts under keys that say nothing of the owner."""
    if key in ("deviceProperties", "distributedInfo"):
        return value
    if isinstance(value, Mapping):
        rename: Rename = {"markers": names.annotation, "counters": names.counter}.get(key, str)
        return {rename(name): _value(name, inner, names) for name, inner in value.items()}
    if isinstance(value, list):
        return [_value(key, inner, names) for inner in value]
    if not isinstance(value, str) or key in _KEPT_TEXTS or key.endswith("version"):
        return value
    return names.of("host" if key in ("host", "host_name") else "text", value)
