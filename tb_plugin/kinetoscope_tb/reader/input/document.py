"""The JSON document around the event array: where the array begins, and the other top-level values.

The events may be broken, and so may the rest: users add raw text with add_metadata_json, and a writer may leave
values out (kineto b10f04a4). So each value is parsed by itself, and one that can't be repaired is left out alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import NotATrace
from ...filesystem import begins_database
from ...names.regex import regex
from ..scan.scanner import members

FARTHEST_BASE_NS = 2**62
"""The year 2116, in Unix time."""

BOM = b"\xef\xbb\xbf"
MOST_VALUES = 10_000  # outside the event array; kineto writes about twenty
MOST_VALUES_BYTES = 1 << 23  # of all of them, which take up to 25 times as much memory as objects of Python
MOST_ARRAYS = 1000  # of events
_MEMBERS_AT_ONCE = 1 << 12
_FAR = 1 << 22  # a trace within the metadata of another is smaller
EVENTS_KEY = b'"traceEvents"'
_SPACE = regex(rb"\s*")
_EVENTS_ANYWHERE = regex(rb'"traceEvents"\s*:\s*\[')
_BASE_ANYWHERE = regex(rb'"baseTimeNanoseconds"\s*:\s*"?(-?[0-9]{1,30})')
_MEMORY_TIMELINE = regex(rb"\[\s*\[\s*-?\d+\s*[,\]]")  # of times, or of [time, action, bytes, category]
_NODE_STACKS = regex(rb'\{\s*"\d{1,20}"\s*:\s*"')
_MAGIC = {
    b"PK\x03\x04": "a zip archive; unpack it",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it",
    b"Rar!\x1a\x07": "a RAR archive; unpack it",
    b"\x1f\x8b": "compressed another time, with gzip; decompress it",
    b"\x28\xb5\x2f\xfd": "compressed another time, with zstd; decompress it",
    b"\xfd7zXZ\0": "compressed another time, with xz; decompress it",
    b"BZh": "compressed another time, with bzip2; decompress it",
    b"\x04\x22\x4d\x18": "compressed with lz4, which isn't read; decompress it",
    b"\x02\x21\x4c\x18": "compressed with lz4, which isn't read; decompress it",
    b"\xff\x06\0\0sNaPpY": "compressed with snappy, which isn't read; decompress it",
    b"\x1f\x9d": "compressed with compress, which isn't read; decompress it",
    b"LZIP": "compressed with lzip, which isn't read; decompress it",
    **dict.fromkeys((b"x\x01", b"x\x9c", b"x\xda"), "zlib data, which isn't read; decompress it"),
}
"""By the first bytes, what a file is that has to be unpacked first."""

_HOLE = 512  # bytes: a sector of a disk, all of it zero, was never written
_TAR, _TAR_AT = b"ustar", 257  # POSIX and GNU
_LFS = b"version https://git-lfs.github.com/spec/"
_ANNEX = regex(rb"[./]*(\.git/|/)annex/objects/")
_NO_VALUE = regex(r":\s*(?=[,}\]])")
_STRAY_COMMA = regex(r",\s*(?=[,}\]])")


def array_start(text: bytes, *, is_whole: bool) -> int | None:
    """Offset of the first byte inside the event array; None if more text is needed to find it.

    It is the first array of that name at the top level. An array inside another value is passed over, unless its value
    ends far behind it or never: then a bracket before it is missing. So the place depends on the file alone, however
    much of it is there.

    Args:
        text: The file's beginning.
        is_whole: Whether nothing follows. Without an array at the top level, the first one is taken.

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
    if EVENTS_KEY not in text:
        return None
    walk = walk_members(text, i + 1)
    starts = np.array([match.end() for match in _EVENTS_ANYWHERE.finditer(text, i + 1)], np.int64)
    at_top = walk.events_at
    inside = starts if at_top is None else starts[starts < at_top]
    ends = np.append(walk.places[:, 3], len(text))[np.searchsorted(walk.places[:, 2], inside, side="right") - 1]
    is_behind = inside >= walk.following
    ends[is_behind] = len(text)
    candidates = inside[(ends - inside > _FAR) | (is_behind & walk.has_ended)]
    if candidates.size:
        return int(candidates[0])
    return int(starts[0]) if is_whole and at_top is None and starts.size else at_top


@dataclass(frozen=True)
class Members:
    """Members of an object, up to an event array.

    Args:
        places: Of each, where its key begins and ends, and where its value does; -1 if that is the event array.
        following: Where the next one begins.
        has_ended: Whether something else follows, so that more text wouldn't add one.
    """

    places: NDArray[np.int64]
    following: int
    has_ended: bool

    @property
    def events_at(self) -> int | None:
        """Offset of the first byte inside the event array; None if there is none."""
        is_last = len(self.places) and self.places[-1, 3] < 0
        return int(self.places[-1, 2]) + 1 if is_last else None


def walk_members(text: bytes | memoryview, i: int) -> Members:
    """The members of an object from offset i on."""
    data = np.frombuffer(text, np.uint8)
    blocks = [np.empty((0, 4), np.int64)]
    count, has_ended = _MEMBERS_AT_ONCE, False
    while count == _MEMBERS_AT_ONCE and not (len(blocks[-1]) and blocks[-1][-1, 3] < 0):
        block = np.empty((_MEMBERS_AT_ONCE, 4), np.int64)
        count, i, has_ended = members(data, i, len(text), block)
        blocks.append(block[:count])
    return Members(np.concatenate(blocks), i, has_ended)


def top_values(head: bytes, tail: bytes) -> tuple[dict[str, Any], int]:
    """The top-level values before and after the events, and how many couldn't be read, or are too many.

    Of a key that occurs more than once the last value counts, as in Python's json.
    """
    top: dict[str, Any] = {}
    lost_count, left = 0, MOST_VALUES_BYTES
    start = head.find(b"{")
    for text, at in ((head, start + 1 if start >= 0 else len(head)), (tail, 0)):
        bounds = walk_members(text, at).places
        whole_members = bounds[bounds[:, 3] >= 0]
        for key_start, key_end, begin, end in whole_members[:MOST_VALUES].tolist():
            if text[key_start:key_end] == EVENTS_KEY:
                continue
            if end - key_start > left:
                lost_count += 1
                continue
            left -= end - key_start
            try:
                top[str(_parse(text[key_start:key_end]))] = _parse(text[begin:end])
            except (ValueError, RecursionError):
                lost_count += 1
        lost_count += max(0, len(whole_members) - MOST_VALUES)
    return top, lost_count


def _parse(token: bytes) -> Any:
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
    if EVENTS_KEY in text:
        return NotATrace(path, "its traceEvents have no usable event. Record the trace again.")
    return NotATrace(path, "it has no traceEvents, so it isn't a profiler's trace, or it was truncated before them.")


def _not_json(path: str, start: bytes, text: bytes) -> str:
    """What a file is that isn't JSON, and what to do."""
    if not text:
        return "the file has only whitespace. Record the trace again."
    if (archive := _archive_of(start)) is not None:
        return f"it is {archive} first."
    if text.startswith(_LFS):
        return "this is a pointer of Git LFS in place of the file. Get the file with `git lfs pull`."
    if _ANNEX.match(text):
        return "this is a pointer of git-annex in place of the file. Get the file with `git annex get`."
    zeros = len(start) - len(start.lstrip(b"\0"))
    if zeros >= min(len(start), _HOLE):
        return (
            f"its first {zeros:,} bytes are zero: perhaps it was copied before it was written, or the machine stopped "
            "before the data reached its disk. Copy the file again, or record again."
        )
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


def _archive_of(start: bytes) -> str | None:
    """What a file is that has to be unpacked first, and how; None for others."""
    if start.startswith(_TAR, _TAR_AT):
        return "a tar archive; unpack it"
    return next((words for magic, words in _MAGIC.items() if start.startswith(magic)), None)
