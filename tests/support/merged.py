"""Files of several processes, as the field's tools merge them.

SGLang's srt/utils/profile_merger.py, TraceLens' TraceFusion/trace_fuse.py, and `--combine` of torch's
_inductor/analysis/profile_analysis.py, which appends events as they are.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from .build import TraceBuilder

Document = dict[str, Any]


def load(path: Path) -> Document:
    """A trace as JSON values, with its times exactly as they are written."""
    data = path.read_bytes()
    text = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return dict(json.loads(text, parse_float=Number))


@dataclass(frozen=True)
class Number:
    """A number that is written as it was read."""

    text: str

    def __str__(self) -> str:
        return self.text


_QUOTED = re.compile(r'"\\u0000([^"]+)"')


def dump(document: Document, path: Path) -> Path:
    text = json.dumps(document, default=lambda number: f"\0{number}")
    path.write_text(_QUOTED.sub(r"\1", text))
    return path


def part(pid: int, kernel: str, length: int) -> Document:
    """What a process with rank 0 of two recorded: two steps, in each a kernel of this name and length in ns."""
    trace = TraceBuilder(distributedInfo={"rank": 0, "world_size": 2, "backend": "nccl"})
    for nth in (1, 2):
        trace.step(nth, 1_000_000 * nth, 900_000).op("aten::mm", 1_000_000 * nth, 500_000)
        trace.launch(1_000_000 * nth + 100, 50, nth).kernel(kernel, 1_000_000 * nth + 300, length, nth)
    document: Document = json.loads(trace.text())
    for event in document["traceEvents"]:
        event["pid"] = 0 if event["cat"] == "kernel" else pid
    return document


def _copies(parts: Iterable[Document]) -> list[Document]:
    """The documents with events and arguments of their own, for a tool to change."""
    return [{**part, "traceEvents": [_copy(event) for event in part["traceEvents"]]} for part in parts]


def _copy(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "args": {**event["args"]}} if isinstance(event.get("args"), dict) else {**event}


def by_sglang(parts: Sequence[Document]) -> Document:
    """Events with the rank in front of their pids; all devices; the other metadata of the first."""
    merged: Document = {"traceEvents": []}
    devices: list[Any] = []
    for rank, part in enumerate(_copies(parts)):
        for event in part["traceEvents"]:
            event["pid"] = f"[TP{rank:02d}] {event.get('pid')}"
        merged["traceEvents"] += part.pop("traceEvents")
        devices += part.pop("deviceProperties", [])
        merged = {**part, **merged}
    return {**merged, "deviceProperties": devices} if devices else merged


def by_trace_fuse(parts: Sequence[Document]) -> Document:
    """Events with `rank`; ids, correlations and pids of a rank moved by its power of ten; no metadata and windows."""
    parts = _copies(parts)
    moves = {name: _power_above(parts[0], name) for name in ("id", "pid", "correlation")}
    events = []
    for rank, part in enumerate(parts):
        for event in part["traceEvents"]:
            if event.get("cat") in ("Trace", "python_function"):
                continue
            args = event.setdefault("args", {})
            args["rank"] = rank
            for name in ("id", "pid"):
                if name in event:
                    args[f"{name}_raw"] = event[name]
                    event[name] += rank * moves[name] if isinstance(event[name], int) else ""
            if "correlation" in args:
                args["correlation_raw"] = args["correlation"]
                args["correlation"] += rank * moves["correlation"]
            events.append(event)
    return {"traceEvents": events}


def _power_above(part: Document, name: str) -> int:
    values = [event.get(name, event.get("args", {}).get(name)) for event in part["traceEvents"]]
    largest = max((value for value in values if isinstance(value, int)), default=0)
    return 10 ** (math.ceil(math.log10(largest)) + 1) if largest else 0


def by_combining(parts: Sequence[Document]) -> Document:
    """All events as they are; the metadata of the first."""
    events = [event for part in _copies(parts) for event in part["traceEvents"]]
    first = {key: value for key, value in parts[0].items() if key != "traceEvents"}
    return {"traceEvents": events, **first}


def by_time(parts: Sequence[Document]) -> Document:
    """The same, sorted by time."""
    merged = by_combining(parts)
    merged["traceEvents"].sort(key=lambda event: Decimal(str(event.get("ts", 0))))
    return merged
