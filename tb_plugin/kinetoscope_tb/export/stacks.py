"""Trees of calls as stacks, in the formats of flame graph viewers.

speedscope: JSON (speedscope.app/file-format-schema.json); a profile for each root, such as a thread.
folded: a line for each stack, `root;caller;callee 1200` (Brendan Gregg's stackcollapse), which flamegraph.pl reads.
pprof: protocol buffers (github.com/google/pprof, proto/profile.proto), compressed with gzip.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from ..pictures import parent_column
from ..table import Table


@dataclass(frozen=True)
class Frame:
    """A place in a stack: a function with its file and line, or the name of a module or thread."""

    name: str
    file: str = ""
    line: int = 0

    @property
    def text(self) -> str:
        """The name, with the place if it is known."""
        return f"{self.name} ({self.file}:{self.line})" if self.file else self.name


@dataclass(frozen=True)
class Stack:
    """What one stack took by itself, without its callees.

    Args:
        frames: From the root to the leaf.
        values: In ns, in the order of the requested columns.
    """

    frames: tuple[Frame, ...]
    values: tuple[int, ...]


def stacks_of(table: type[Table], rows: pl.DataFrame, columns: Sequence[str]) -> list[Stack]:
    """The stacks of the rows of a tree that took time.

    Args:
        table: Of a tree, with a column `function` or `name`.
        rows: A parent comes before its children.
        columns: Of times without callees; a missing or negative one counts as 0.
    """
    names = rows["function" if "function" in rows.columns else "name"]
    no_values = [None] * rows.height
    files, lines = (rows[name] if name in rows.columns else no_values for name in ("file", "line"))
    parents = rows[parent_column(table.picture) or ""]
    values = list(zip(*(rows[column].fill_null(0).clip(0) for column in columns), strict=True))
    above: list[tuple[Frame, ...]] = []
    for name, file, line, parent in zip(names, files, lines, parents, strict=True):
        above.append((() if parent is None else above[parent]) + (Frame(name or "", file or "", line or 0),))
    return [Stack(frames, own) for frames, own in zip(above, values, strict=True) if any(own)]


def folded_lines(stacks: Iterable[Stack], _columns: Sequence[str], _title: str) -> Iterator[bytes]:
    """Lines with the first value; a semicolon or line break in a name becomes a colon or space."""
    for stack in stacks:
        if stack.values[0]:
            names = (" ".join(frame.text.split()).replace(";", ":") for frame in stack.frames)
            yield f"{';'.join(names)} {stack.values[0]}\n".encode()


def speedscope_json(stacks: Sequence[Stack], columns: Sequence[str], title: str) -> Iterator[bytes]:
    """A profile for each root and value."""
    numbers: dict[Frame, int] = {}
    by_root: dict[Frame, list[tuple[list[int], tuple[int, ...]]]] = {}
    for stack in stacks:
        sample = [numbers.setdefault(frame, len(numbers)) for frame in stack.frames]
        by_root.setdefault(stack.frames[0], []).append((sample, stack.values))
    frames = [
        {"name": frame.name} | ({"file": frame.file, "line": frame.line} if frame.file else {}) for frame in numbers
    ]
    profiles = [
        _speedscope_profile(f"{root.text} · {column}", [(sample, values[nth]) for sample, values in samples])
        for root, samples in by_root.items()
        for nth, column in enumerate(columns)
        if any(values[nth] for _, values in samples)
    ]
    schema = "https://www.speedscope.app/file-format-schema.json"
    file = {"$schema": schema, "exporter": "kinetoscope", "name": title, "shared": {"frames": frames}}
    yield json.dumps(file | {"profiles": profiles}, ensure_ascii=False).encode("utf-8", "replace")


def _speedscope_profile(name: str, samples: list[tuple[list[int], int]]) -> dict[str, Any]:
    samples = [(sample, value) for sample, value in samples if value]
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": sum(value for _, value in samples),
        "samples": [sample for sample, _ in samples],
        "weights": [value for _, value in samples],
    }


def pprof_profile(stacks: Iterable[Stack], columns: Sequence[str], _title: str) -> Iterator[bytes]:
    """One profile, with a type of sample for each value."""
    texts: dict[str, int] = {"": 0}
    locations: dict[Frame, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    parts = [_field(1, _number(1, text(column)) + _number(2, text("nanoseconds"))) for column in columns]
    for stack in stacks:
        ids = [locations.setdefault(frame, len(locations) + 1) for frame in reversed(stack.frames)]
        parts.append(
            _field(2, _field(1, b"".join(map(_varint, ids))) + _field(2, b"".join(map(_varint, stack.values))))
        )
    for frame, number in locations.items():
        parts.append(_field(4, _number(1, number) + _field(4, _number(1, number) + _number(2, frame.line))))
        function = _number(1, number) + _number(2, text(frame.name)) + _number(4, text(frame.file))
        parts.append(_field(5, function))
    parts += [_field(6, value.encode("utf-8", "replace")) for value in texts]
    yield gzip.compress(b"".join(parts), mtime=0)


def _varint(value: int) -> bytes:
    """A whole number of at least 0, as protocol buffers write it: 7 bits a byte, the lowest first."""
    head = []
    while value > 0x7F:
        head.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*head, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, value: bytes) -> bytes:
    """A text, bytes, packed numbers or a message, with its length."""
    return _varint(field << 3 | 2) + _varint(len(value)) + value


FORMATS = {
    ".speedscope.json": speedscope_json,
    ".folded": folded_lines,
    ".collapsed": folded_lines,
    ".pb.gz": pprof_profile,
}
"""How a file of each ending is written."""
