"""One trace as one file, in the format of `columns`.

The head identifies the trace's file and has the positions of the frames; one column is JSON, with all other members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import IO, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import polars as pl

from ...arrays.constants import with_constants
from ...arrays.gather import NONE
from ...trace import Trace, model
from ...trace.model import POINTERS
from .columns import Read, Reader, Writer, read_head
from .values import BrokenEntry, mapping

MAGIC = b"kinetoscope trace\n"
_LARGEST_NS = 1 << 53  # 104 days: calculations with times fit 64 bits
_EARLIEST_NS = 1 << 62  # of Unix times
_MAY_BE_NAMELESS = ("threads", "collectives")
_BY_THREAD = {"host_events", "launches", "python_calls"}
_SCHEMAS: dict[str, dict[str, Any]] = {
    field.name: getattr(model, field.name.upper()) for field in fields(Trace) if field.type == "pl.DataFrame"
}
_JOINED = ("captures", "replayed", "allocating_calls")  # of other files
_STORED = [field.name for field in fields(Trace) if field.init and field.name not in _JOINED]


def write(file: IO[bytes], trace: Trace, source: dict[str, Any]) -> None:
    """Write the trace to an empty file; `source` identifies the file, as JSON values."""
    writer = Writer(file, MAGIC)
    frames = {name: writer.frame(getattr(trace, name)) for name in _SCHEMAS}
    others = {name: getattr(trace, name) for name in _STORED if name not in frames}
    writer.end({"source": source, "frames": frames, "trace": writer.json(others, _as_json)})


def source_of(read: Read, size: int, magic: bytes = MAGIC) -> dict[str, Any]:
    """The source of an entry of this kind.

    Raises:
        BrokenEntry: It isn't an entry.
    """
    return dict(mapping(read_head(read, size, magic)[1].get("source")))


def read(reader: Reader) -> Trace:
    """The trace in the entry.

    Raises:
        BrokenEntry: It is forged.
    """
    frame_heads = mapping(reader.head.get("frames"))
    frames: dict[str, Any] = {name: reader.frame(frame_heads.get(name), schema) for name, schema in _SCHEMAS.items()}
    for name, columns in POINTERS.items():
        for column, target in columns.items():
            least = 0 if column == "thread" else NONE
            _fail_if_beyond(f"{name}.{column}", frames[name][column], least, frames[target].height - 1)
    for name, frame in frames.items():
        _check(name, frame)
    others = mapping(reader.json(reader.head.get("trace")))
    hints = {name: kind for name, kind in get_type_hints(Trace).items() if name in _STORED and name not in frames}
    smaller: dict[str, Any] = {name: with_constants(frame) for name, frame in frames.items()}
    trace = Trace(**_members(hints, others), **smaller)
    if abs(trace.origin_ns) > _EARLIEST_NS or not -_LARGEST_NS <= trace.window[0] <= trace.window[1] <= _LARGEST_NS:
        raise BrokenEntry("its time of recording is out of range")
    return trace


def _fail_if_beyond(name: str, column: pl.Series, least: int, most: int) -> None:
    values = column.to_numpy()
    if values.size and not least <= int(values.min()) <= int(values.max()) <= most:
        raise BrokenEntry(f"{name} is out of range")


def _check(name: str, frame: pl.DataFrame) -> None:
    """Check that times are plausible, rows are in order, and required values are present."""
    for column, kind in _SCHEMAS[name].items():
        if column.endswith("_ns"):
            _fail_if_beyond(f"{name}.{column}", frame[column], NONE if name == "others" else 0, _LARGEST_NS)
        if (
            (isinstance(kind, pl.Enum) or column == "name")
            and name not in _MAY_BE_NAMELESS
            and frame[column].null_count()
        ):
            raise BrokenEntry(f"{name}.{column} is missing")
    rows = np.arange(frame.height)
    if name in ("host_events", "python_calls") and (frame["parent"].to_numpy() >= rows).any():
        raise BrokenEntry(f"a parent in {name} comes after its child")
    if "start_ns" in frame.columns and name != "counters":
        comes_before = np.diff(frame["start_ns"].to_numpy()) < 0
        if name in _BY_THREAD:
            steps = np.diff(frame["thread"].to_numpy())
            comes_before = (steps < 0) | ((steps == 0) & comes_before)
        if comes_before.any():
            raise BrokenEntry(f"{name} isn't in order")
    if name == "steps" and (frame["end_ns"] < frame["start_ns"]).any():
        raise BrokenEntry("a step ends before it begins")


def _as_json(value: Any) -> Any:
    """Convert objects that JSON can't represent; raise TypeError for unknown ones."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} can't be stored in an entry")


def _members(hints: Mapping[str, Any], members: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a dataclass's members, of the annotated types."""
    if set(members) != set(hints):
        raise BrokenEntry("it has other members")
    return {name: _restore(kind, members[name]) for name, kind in hints.items()}


def _restore(kind: Any, form: Any) -> Any:
    """A value of the annotated type, from its JSON form.

    Raises:
        BrokenEntry: It is of another type.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**_members(get_type_hints(kind), mapping(form)))
    if origin is UnionType:
        return None if form is None else _restore(arguments[0], form)
    if origin in (tuple, frozenset) and isinstance(form, list):
        values = [_restore(arguments[0], value) for value in form]
        if origin is frozenset:
            return frozenset(values)
        if arguments[-1] is Ellipsis or len(values) == len(arguments):
            return tuple(values)
    if origin is Literal and form in arguments:
        return form
    if kind in (bool, int, str) and type(form) is kind:
        return form
    if origin is Mapping and isinstance(form, dict):
        return form
    raise BrokenEntry("one of its members has another type")
