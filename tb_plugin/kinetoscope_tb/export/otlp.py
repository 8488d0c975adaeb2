"""Steps in OpenTelemetry's protocol (OTLP), for dashboards and the systems behind them.

The form is OTLP/JSON (opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): field names in lowerCamelCase, 64-bit
integers as text, ids in hexadecimal. What is written is one request, as a collector takes it at /v1/metrics or
/v1/traces, or as a line of a file that its receiver `otlpjsonfile` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import polars as pl

from kinetoscope._version import __version__

from ..table import Column

_SCOPE = {"name": "kinetoscope", "version": __version__}
_INTERNAL = 1  # SpanKind in opentelemetry/proto/trace/v1/trace.proto
_TOTAL = "total_ns"


@dataclass(frozen=True)
class StepsOfRecording:
    """The complete steps of a recording.

    Args:
        about: What the recording is of, by OpenTelemetry's names of resource attributes.
        origin_ns: Unix time of the recording's origin.
        rows: Of the view `steps`.
    """

    about: Mapping[str, str | int]
    origin_ns: int
    rows: pl.DataFrame


def metrics_request(recordings: Iterable[StepsOfRecording], columns: Sequence[Column]) -> dict[str, Any]:
    """Gauges: how long each step took, and what of it each part.

    Args:
        recordings: The recordings.
        columns: Of the view `steps`.
    """
    durations = [column for column in columns if column.kind.name == "duration"]
    return {
        "resourceMetrics": [
            {
                "resource": {"attributes": _attributes(recording.about)},
                "scopeMetrics": [{"scope": _SCOPE, "metrics": list(_metrics(recording, durations))}],
            }
            for recording in recordings
        ]
    }


def _metrics(recording: StepsOfRecording, durations: Sequence[Column]) -> Iterator[dict[str, Any]]:
    total = next(column for column in durations if column.name == _TOTAL)
    yield _gauge("kinetoscope.step.duration", total.doc, _points(recording, [total]))
    parts = [column for column in durations if column.name != _TOTAL]
    yield _gauge("kinetoscope.step.category", "Time of a step by what it went to.", _points(recording, parts))


def _gauge(name: str, description: str, points: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"name": name, "description": description, "unit": "ns", "gauge": {"dataPoints": list(points)}}


def _points(recording: StepsOfRecording, columns: Sequence[Column]) -> Iterator[dict[str, Any]]:
    """A point for each step and column, at the end of the step."""
    for row in recording.rows.iter_rows(named=True):
        begin = recording.origin_ns + row["start_ns"]
        for column in columns:
            if row[column.name] is not None:
                category = {} if column.name == _TOTAL else {"category": column.name.removesuffix("_ns")}
                yield {
                    "attributes": _attributes({"step": row["step"], **_phase(row), **category}),
                    "startTimeUnixNano": str(begin),
                    "timeUnixNano": str(begin + row[_TOTAL]),
                    "asInt": str(row[column.name]),
                }


def traces_request(recordings: Iterable[StepsOfRecording], columns: Sequence[Column]) -> dict[str, Any]:
    """A span for each step, with its parts as attributes; arguments as of `metrics_request`."""
    parts = [column.name for column in columns if column.kind.name == "duration" and column.name != _TOTAL]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(recording.about)},
                "scopeSpans": [{"scope": _SCOPE, "spans": list(_spans(recording, parts))}],
            }
            for recording in recordings
        ]
    }


def _spans(recording: StepsOfRecording, parts: Sequence[str]) -> Iterator[dict[str, Any]]:
    identity = repr(sorted(recording.about.items()))
    for row in recording.rows.iter_rows(named=True):
        begin = recording.origin_ns + row["start_ns"]
        times = {f"kinetoscope.step.{part}": row[part] for part in parts if row[part] is not None}
        yield {
            "traceId": _id(identity, 16),
            "spanId": _id(f"{identity} {row['step']} {begin}", 8),
            "name": f"step {row['step']}",
            "kind": _INTERNAL,
            "startTimeUnixNano": str(begin),
            "endTimeUnixNano": str(begin + row[_TOTAL]),
            "attributes": _attributes({"step": row["step"], **_phase(row), **times}),
        }


def _phase(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: row[name] for name in ("phase", "part") if row.get(name) is not None}


def _attributes(values: Mapping[str, str | int]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"intValue": str(value)}}
        for key, value in values.items()
    ]


def _id(text: str, size: int) -> str:
    """An id that a recording has whenever it is exported; never 0, which is none."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()
