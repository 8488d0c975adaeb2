"""A profiler's raw file → a trace with metadata, the program's own events, and strict JSON.

The raw file is streamed: it may be larger than the memory. Insertions go after the first brace and after the bracket of
`traceEvents`; the recorder's own Python calls are left out, and the rest is copied unchanged if it is valid JSON.
kineto (torch 2.13) writes names and metadata without escaping quotes, so one name can make a whole file unreadable:
such an event is repaired, or if that isn't possible left out, and counted.

Since torch 1.8, kineto writes each event on separate lines, closed by two blanks and a brace, and the header before the
events. Times are µs with three decimals after `baseTimeNanoseconds`, which torch 2.4 to 2.11 write after the events and
later ones before them; without it (before torch 2.4) they are absolute.
This module doesn't import torch.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from ..errors import SaveError
from ..events import chrome_events, display_name
from .chrome import base_after_events
from .external_events import external_events
from .own_frames import OwnFrames

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

KEY = "kinetoscope"
"""The top-level key of the metadata."""

_BLOCK = 1 << 20
_MAX_HEAD = _MAX_UNKNOWN = 256 << 20
_BLANK = b" \t\r\n"
_EVENTS = re.compile(rb'"traceEvents"\s*:\s*\[')
_BASE = re.compile(rb'"baseTimeNanoseconds"\s*:\s*(-?\d{1,19})\b')
_CLOSED, _OPENED = b"\n  },\n", b"  {\n"
_BETWEEN = _CLOSED + _OPENED
_CLOSINGS = re.compile(rb"\n  \},\n(?=  \{\n|\Z)")
_STRING_LINE = re.compile(r'(\s*"[^"\\]*":\s*)"(.*)"(,?\s*)')
_STRAY = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})|(?<!\\)"')
_NO_NUMBER = re.compile(r"(?<=[:\[,\s])-?(?:nan|inf|NaN|Infinity)(?=[,\s\]}])")
_ANNOTATION = re.compile(rb'("cat":\s*"(?:gpu_)?user_annotation",\s*"name":\s*)"([^"\\]*)"')
_ARGS = re.compile(r'\s*,?\s*"args":\s*\{.*\Z', re.DOTALL)


class Sink(Protocol):
    """A writable binary stream."""

    def write(self, data: bytes, /) -> object:
        """Write bytes."""


@dataclass
class Damage:
    """Counts the events of a raw file that weren't JSON."""

    repaired: int = 0
    dropped: int = 0
    unreadable: list[str] = field(default_factory=list)
    """Messages about added traces that couldn't be read."""

    def __str__(self) -> str:
        """Return a message about the repairs; empty if there were none."""
        parts = [self._repair_message(), f"not added: {', '.join(self.unreadable)}" if self.unreadable else ""]
        return "; ".join(filter(None, parts))

    def _repair_message(self) -> str:
        parts = [f"{self.repaired} repaired"] * bool(self.repaired) + [f"{self.dropped} left out"] * bool(self.dropped)
        return f"the profiler wrote events that aren't JSON: {' and '.join(parts)}" if parts else ""


def merge_events(
    source: BinaryIO, target: Sink, metadata: Mapping[str, Any], program_events: Mapping[str, Any] | None = None
) -> Damage:
    """Copy a trace, with `metadata` under `KEY` as its first key and the program's events before the profiler's.

    Args:
        source: The trace.
        target: The stream to write to.
        metadata: The trace's metadata about its recording. Its `markers` have the names that the profiler recorded as
            keys; in the copy, markers have their original names.
        program_events: From `EventLog.window_events`; its `metadata` become top-level keys, and `added` has the traces
            of other tools.

    Raises:
        SaveError: `source` isn't a trace, or is truncated.
    """
    damage = Damage()
    head, rest = _read_head(source)
    if b"traceEvents" not in head:
        raise SaveError("the profiler wrote something that is not a trace")
    document = _parse(head + b"]}")
    if document is None:
        head = _repair_lines(head.decode("utf-8", "replace")).encode()
        document = _parse(head + b"]}")
        damage.repaired += 1
    if not isinstance(document, dict):
        raise SaveError("the profiler wrote a header that isn't JSON")
    names = _true_names(metadata.get("markers") or {})
    if names:
        metadata = {**metadata, "markers": {names.get(name, name): m for name, m in metadata["markers"].items()}}
    facts = {KEY: metadata, **(program_events or {}).get("metadata", {})}
    entry = json.dumps(facts, ensure_ascii=True, allow_nan=False)
    target.write(entry[:-1].encode("ascii") + b",\n" + head.lstrip(_BLANK)[1:].lstrip(_BLANK))
    base_ns = document["baseTimeNanoseconds"] if "baseTimeNanoseconds" in document else _base_at_the_end(source)
    is_empty = _is_empty(source, rest)
    separator = b"\n"
    base_ns = base_ns if isinstance(base_ns, int) else 0
    others = external_events(program_events or {}, base_ns, damage.unreadable)
    for text in chain(chrome_events(program_events or {}, base_ns), others):
        target.write(separator + text.encode("ascii"))
        separator = b",\n"
    if separator != b"\n":
        target.write(b"\n" if is_empty else separator)
    own_frames = OwnFrames((program_events or {}).get("own_threads", ()))
    for chunk in _checked_chunks(source, rest, damage):
        target.write(_rename_markers(own_frames.remove(chunk), names))
    return damage


def _true_names(markers: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the original name of each marker by the name that the profiler recorded, if they differ."""
    names: dict[str, str] = {}
    used_names = set(markers)
    for recorded_name, marker in markers.items():
        name = display_name(str(marker.get("label", recorded_name)))
        if name not in used_names:
            names[recorded_name] = name
            used_names.add(name)
    return names


def _rename_markers(text: bytes, names: Mapping[str, str]) -> bytes:
    """Return events with the markers' original names."""
    if not names:
        return text
    return _ANNOTATION.sub(lambda match: match[1] + _json_name(names, match[2]), text)


def _json_name(names: Mapping[str, str], recorded_name: bytes) -> bytes:
    name = names.get(recorded_name.decode("ascii", "replace"))
    return b'"%s"' % recorded_name if name is None else json.dumps(name).encode("ascii")


def _read_head(source: BinaryIO) -> tuple[bytes, bytearray]:
    """Return the bytes before the first event, and the bytes after them that were read already."""
    read = bytearray()
    while block := source.read(_BLOCK):
        if not read:
            block = block.lstrip(_BLANK)
            if block and not block.startswith(b"{"):
                break
        start = max(0, len(read) - 32)
        read += block
        match = _EVENTS.search(read, start)
        if match is not None:
            return bytes(read[: match.end()]), read[match.end() :]
        if len(read) > _MAX_HEAD:
            break
    return b"", read


def _base_at_the_end(source: BinaryIO) -> int:
    """Return the `baseTimeNanoseconds` after the events; 0 if there is none, or if the source can't go back."""
    try:
        return base_after_events(source)
    except (OSError, ValueError):  # compressed: only writers of torch 2.13 and later do that, with the base first
        return 0


def _is_empty(source: BinaryIO, rest: bytearray) -> bool:
    """Whether there is no event; reads more into `rest` until that is known."""
    while not rest.strip(_BLANK):
        block = source.read(_BLOCK)
        if not block:
            break
        rest += block
    return rest.lstrip(_BLANK).startswith(b"]")


def _checked_chunks(source: BinaryIO, rest: bytearray, damage: Damage) -> Iterator[bytes]:
    """Yield the text from the first event on, in chunks that are JSON."""
    while block := source.read(_BLOCK):
        rest += block
        yield from _take_whole_events(rest, damage)
        if len(rest) > _MAX_UNKNOWN:  # not kineto's layout: too large to check at once
            yield bytes(rest)
            yield from iter(lambda: source.read(_BLOCK), b"")
            return
    yield from _take_whole_events(rest, damage)
    last = bytes(rest)
    if _parse(b'{"traceEvents":[' + last) is None:
        last = _repair_end(last, damage)
    yield last


def _take_whole_events(rest: bytearray, damage: Damage) -> Iterator[bytes]:
    """Remove the complete events from `rest`, except the last one, and return them."""
    between = rest.rfind(_BETWEEN)
    if between >= 0:
        end = between + len(_CLOSED)
        yield _repair_events(bytes(rest[:end]), damage)
        del rest[:end]


def _repair_events(text: bytes, damage: Damage) -> bytes:
    """Return complete events, each with its comma, unchanged or repaired."""
    if _parse(b"[" + text.rstrip(_BLANK).rstrip(b",") + b"]") is not None:
        return text
    whole = (_repair_event(event + b"\n  }", damage) for event in _CLOSINGS.split(text)[:-1])
    return b"".join(event + b",\n" for event in whole if event is not None)


def _repair_event(text: bytes, damage: Damage) -> bytes | None:
    if _parse(text) is not None:
        return text
    readable = text.decode("utf-8", "replace")
    bare = _ARGS.sub("\n  }", readable)
    for candidate in (_repair_lines(readable), _repair_lines(bare)):
        if _parse(candidate.encode()) is not None:
            damage.repaired += 1
            return candidate.encode()
    damage.dropped += 1
    return None


def _repair_end(text: bytes, damage: Damage) -> bytes:
    """Return the last event and what follows it, repaired.

    Raises:
        SaveError: It is truncated.
    """
    event, bracket, rest = text.rpartition(b"\n  ]")
    repaired_event = _repair_event(event, damage) if bracket else None
    candidate = (repaired_event or b"") + bracket + _repair_lines(rest.decode("utf-8", "replace")).encode()
    if not bracket or _parse(b'{"traceEvents":[' + (b"" if repaired_event else b"{}") + candidate) is None:
        raise SaveError("the profiler wrote only a part of its file")
    return candidate if repaired_event else b'{"ph": "M", "name": "left out", "pid": 0, "args": {}}' + candidate


def _parse(text: bytes) -> Any:
    """Return the value of strict JSON; None if it isn't valid."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(constant: str) -> Any:
    raise ValueError(constant)


def _repair_lines(text: str) -> str:
    """Escape quotes in strings that are on separate lines, and replace invalid numbers with null."""
    return "\n".join(map(_repair_line, text.split("\n")))


def _repair_line(line: str) -> str:
    line = _NO_NUMBER.sub("null", line)
    match = _STRING_LINE.fullmatch(line)
    if match is None or _parse(f'"{match[2]}"'.encode()) is not None:
        return line
    value = _STRAY.sub(lambda stray: "\\" + stray[0], match[2])
    value = re.sub(r"[\x00-\x1f]", lambda c: f"\\u{ord(c[0]):04x}", value)
    return f'{match[1]}"{value}"{match[3]}'
