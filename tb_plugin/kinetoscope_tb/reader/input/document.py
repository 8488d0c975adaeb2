"""The JSON document around the event array: where the array begins, and the other top-level values.

The events may be broken, and so may the rest: users add raw text with add_metadata_json, and a writer may leave
values out (kineto b10f04a4). So each value is parsed by itself, and one that can't be repaired is left out alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import NotATrace
from ...filesystem import begins_database
from ..scan.scanner import members

FARTHEST_BASE_NS = 2**62
"""The year 2116, in Unix time."""

BOM = b"\xef\xbb\xbf"
MOST_VALUES = 10_000  # outside the event array; kineto writes about twenty
_MEMBERS_AT_ONCE = 1 << 12
_SPACE = re.compile(rb"\s*")
_EVENTS_ANYWHERE = re.compile(rb'"traceEvents"\s*:\s*\[')
_BASE_ANYWHERE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(-?[0-9]{1,30})')
_MEMORY_TIMELINE = re.compile(rb"\[\s*\[\s*-?\d+\s*[,\]]")  # of times, or of [time, action, bytes, category]
_NODE_STACKS = re.compile(rb'\{\s*"\d{1,20}"\s*:\s*"')
_NO_VALUE = re.compile(r":\s*(?=[,}\]])")
_STRAY_COMMA = re.compile(r",\s*(?=[,}\]])")


def array_start(text: bytes) -> int | None:
    """Offset of the first byte inside the event array; None if more text is needed to find it.

    Raises:
        ValueError: The text begins neither an object nor an array.
    """
    i = _SPACE.match(text, len(BOM) if text.startswith(BOM) else 0).end()  # type: ignore[union-attr]  # matches nothing too
    if i >= len(text):
        return None
    if text[i : i + 1] == b"[":
        return i + 1
    if text[i : i + 1] != b"{":
        raise ValueError(text[i : i + 1])
    if b'"traceEvents"' not in text:
        return None
    for places in _members(text, i + 1):
        start, end = places[-1][2:].tolist()
        if end < 0 and text[start : start + 1] == b"[":
            return int(start) + 1
    match = _EVENTS_ANYWHERE.search(text)  # something before it is broken or nested oddly
    return match.end() if match else None


def values(text: bytes, i: int) -> Iterator[tuple[bytes, int, int]]:
    """Each key of an object from offset i on: its token, and start and end of its value; end -1 for traceEvents.

    It stops at the first thing that isn't a key with a value, and at traceEvents.
    """
    for places in _members(text, i):
        for key_start, key_end, start, end in places.tolist():
            yield text[key_start:key_end], start, end


def _members(text: bytes, i: int) -> Iterator[NDArray[np.int64]]:
    """The same as positions in the text, in batches, none of them empty."""
    data = np.frombuffer(text, np.uint8)
    count = _MEMBERS_AT_ONCE
    while count == _MEMBERS_AT_ONCE:
        places = np.empty((_MEMBERS_AT_ONCE, 4), np.int64)
        count, i = members(data, i, len(text), places)
        if count:
            yield places[:count]
        if count and places[count - 1, 3] < 0:
            return


def top_values(head: bytes, tail: bytes) -> tuple[dict[str, Any], int]:
    """The top-level values before and after the events, and how many couldn't be read, or are too many."""
    top: dict[str, Any] = {}
    lost = 0
    start = head.find(b"{")
    for text, at in ((head, start + 1 if start >= 0 else len(head)), (tail, 0)):
        read = 0
        for places in _members(text, at):
            chosen = places[places[:, 3] >= 0]
            for key_start, key_end, begin, end in chosen[: MOST_VALUES - read].tolist():
                try:
                    top[str(_parsed(text[key_start:key_end]))] = _parsed(text[begin:end])
                except (ValueError, RecursionError):
                    lost += 1
            lost += max(0, len(chosen) - (MOST_VALUES - read))
            read = min(MOST_VALUES, read + len(chosen))
    return top, lost


def _parsed(token: bytes) -> Any:
    text = token.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False)
    except ValueError:
        return json.loads(_STRAY_COMMA.sub("", _NO_VALUE.sub(": null", text)), strict=False)


def marker_labels(top: Mapping[str, Any]) -> dict[str, str]:
    """The program's names of the ranges that our recorder renamed to ones that kineto can write."""
    ours = top.get("kinetoscope")
    markers = ours.get("markers") if isinstance(ours, Mapping) else None
    if not isinstance(markers, Mapping):
        return {}
    labels = {name: marker.get("label") for name, marker in markers.items() if isinstance(marker, Mapping)}
    return {name: label for name, label in labels.items() if isinstance(label, str) and label != name}


def base_ns(top: Mapping[str, Any], head: bytes, tail: bytes) -> int:
    """Unix time of the trace's zero, in ns; 0 where times are absolute (up to torch 2.3; kineto 84d95b82).

    The value in a file may be beyond FARTHEST_BASE_NS, where no clock is.
    """
    value = top.get("baseTimeNanoseconds")
    if value is None:
        match = _BASE_ANYWHERE.search(head) or _BASE_ANYWHERE.search(tail)
        value = match[1].decode() if match else 0
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,30}", value):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def is_memory_timeline(start: bytes) -> bool:
    """Whether a text that begins like this is what export_memory_timeline writes."""
    return _MEMORY_TIMELINE.match(start) is not None


def not_a_trace(path: str, start: bytes) -> NotATrace:
    """The error for a file without events; its first bytes show what it is instead."""
    text = start.removeprefix(BOM).lstrip()
    if not text.startswith((b"{", b"[")):
        return NotATrace(path, _not_json(path, start, text))
    if b'"schema"' in text and (b'"nodes"' in text or b"chakra" in text.lower()):
        return NotATrace(
            path,
            "this is an execution trace (ExecutionTraceObserver, Chakra), which has no times. "
            "Open the profiler's trace of the same run; et_replay and Chakra's tools read this file.",
        )
    if is_memory_timeline(text):
        return NotATrace(
            path,
            "this is a memory timeline (export_memory_timeline), which has no events. Memory shows it, unless its "
            "numbers are damaged; it can't be merged, repaired or published.",
        )
    if _NODE_STACKS.match(text):
        return NotATrace(
            path,
            "these are the Python stacks of the nodes of CUDA graphs (dump_kernel_py_stacks). Open the profiler's "
            "trace of the same run.",
        )
    if b'"traceEvents"' in text:
        return NotATrace(path, "its traceEvents have no usable event. Record the trace again.")
    return NotATrace(path, "it has no traceEvents, so it isn't a profiler's trace, or it was truncated before them.")


def _not_json(path: str, start: bytes, text: bytes) -> str:
    """What a file is that isn't JSON, and what to do."""
    if not text:
        return "the file has only whitespace. Record the trace again."
    if text.startswith(b"<"):
        return "this is an HTML or XML page, perhaps a login or error page saved in place of the trace."
    if start.startswith(b"\n"):
        return (
            "this looks like a Perfetto trace (protobuf). Views and the timeline read these; merging, repairing and "
            "publishing need JSON. Record JSON, or use `kinetoscope export` to write the timeline as JSON."
        )
    if begins_database(start):
        return (
            "this is an SQLite database. Views and the timeline read those of Nsight Systems; merging, repairing and "
            "publishing need JSON. Use `kinetoscope export` to write the timeline as JSON."
        )
    if path.endswith(".nsys-rep"):
        return "this is a report of Nsight Systems. Export it with `nsys export --type sqlite`, and open that file."
    return "this isn't JSON. A trace begins with { or [."
