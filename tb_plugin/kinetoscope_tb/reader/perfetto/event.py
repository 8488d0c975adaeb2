"""One packet as JSON, for the details of a row: its fields by the names that torch's JSON has for them.

A slice is two packets; this is the one that begins it. Texts that it refers to come from all packets before it, so the
file is read from its start.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import wire as w
from .ingest import Ingestion
from .message import BrokenMessage, Value, as_signed, data, double, fields, number, values
from .state import State

_PHASES = {1: "B", 2: "E", 3: "i", 4: "C"}
_DEEPEST = 30


def packet_as_json(blocks: Iterable[bytes], offset: int, length: int) -> bytes:
    """The event of `length` bytes at this offset of the decompressed file, as JSON.

    Raises:
        BrokenMessage: The bytes there aren't an event.
    """
    ingestion = Ingestion()
    rest, base = b"", 0
    with ThreadPoolExecutor(1, "kinetoscope-sort") as pool:
        for block in blocks:
            rest += block
            read = ingestion.scan(pool, rest[: max(0, offset - base)], base, is_last=False)
            base, rest = base + read, rest[read:]
            if base + len(rest) >= offset + length:
                break
        raw = rest[offset - base : offset - base + length]
        ingestion.scan(pool, raw, base, is_last=True)  # what the packet says itself
    if len(raw) < length:
        raise BrokenMessage
    return json.dumps(_event(ingestion.state, raw), ensure_ascii=False).encode("utf-8", "replace")


def _event(state: State, raw: bytes) -> dict[str, Any]:
    """The event in a field: a packet, or one sample of a device's counters."""
    kind, inner = next(fields(raw))
    if not isinstance(inner, bytes):
        raise BrokenMessage
    if kind == 2:
        sample = values(inner)
        return {"ph": "C", "counter_id": number(sample, 1), "args": {"": _number(sample, 2, 3)}}
    packet = values(inner)
    sequence = number(packet, 10)
    if 53 in packet:
        return _work(state, sequence, packet)
    if 11 in packet:
        return _slice(state, sequence, packet)
    raise BrokenMessage


def _slice(state: State, sequence: int, packet: dict[int, Value]) -> dict[str, Any]:
    body = data(packet, 11)
    event = values(body)
    pid, tid = state.pid_and_tid(number(event, 11))
    arguments = [values(value) for kind, value in fields(body) if kind == 4 and isinstance(value, bytes)]
    raw_arguments = [value for kind, value in fields(body) if kind == 4 and isinstance(value, bytes)]
    result: dict[str, Any] = {
        "ph": _PHASES.get(number(event, 9), "?"),
        "cat": _text(state, sequence, w.CATEGORIES, event, 3, 22),
        "name": _text(state, sequence, w.NAMES, event, 10, 23),
        "pid": json.loads(pid),
        "tid": json.loads(tid),
        "timestamp": number(packet, 8),
        "args": {
            _name(state, sequence, argument): _value(state, sequence, raw, 0)
            for argument, raw in zip(arguments, raw_arguments, strict=True)
        },
    }
    if 30 in event or 44 in event:
        result["args"][""] = _number(event, 30, 44)
    return {key: value for key, value in result.items() if value is not None}


def _work(state: State, sequence: int, packet: dict[int, Value]) -> dict[str, Any]:
    body = data(packet, 53)
    event = values(body)
    extra = [values(value) for kind, value in fields(body) if kind == 6 and isinstance(value, bytes)]
    launch = values(data(event, 21))
    args: dict[str, Any] = {_decode(data(entry, 1)): _decode(data(entry, 2)) for entry in extra}
    for name, field in (("grid", 1), ("block", 2)):
        if field in launch:
            sizes = values(data(launch, field))
            args[name] = [number(sizes, axis) for axis in (1, 2, 3)]
    for kind, value in fields(data(event, 21)):
        if kind == 3 and isinstance(value, bytes):
            entry = values(value)
            token = state.token(sequence, w.KERNEL_ARGUMENTS, number(entry, 1))
            args[json.loads(token) if token else str(number(entry, 1))] = number(entry, 4)
    result = {
        "ph": "X",
        "stage": _text(state, sequence, w.GPU_SPECIFICATIONS, event, 14),
        "name": _text(state, sequence, w.NAMES, event, 20),
        "device": number(event, 11),
        "queue": _text(state, sequence, w.GPU_SPECIFICATIONS, event, 13),
        "timestamp": number(packet, 8),
        "duration": number(event, 2),
        "event_id": number(event, 1),
        "args": args,
    }
    return {key: value for key, value in result.items() if value is not None}


def _text(state: State, sequence: int, kind: int, message: dict[int, Value], iid: int, inline: int = 0) -> str | None:
    """A text of a message, interned or not; None if it has none."""
    if inline and inline in message:
        return _decode(data(message, inline))
    blob = message.get(iid)
    reference = next(iter(blob), 0) if isinstance(blob, bytes) else number(message, iid)
    token = state.token(sequence, kind, reference) if reference else None
    return None if token is None else json.loads(token.decode("utf-8", "replace"), strict=False)


def _name(state: State, sequence: int, annotation: dict[int, Value]) -> str:
    return _text(state, sequence, w.ANNOTATION_NAMES, annotation, 1, 10) or ""


def _value(state: State, sequence: int, raw: bytes, depth: int) -> Any:
    """The value of an annotation; null where it is nested too deeply, as for the scanner."""
    if depth == _DEEPEST:
        return None
    items: list[Any] = []
    members: dict[str, Any] = {}
    value: Any = None
    for kind, item in fields(raw):
        if kind == 12 and isinstance(item, bytes):
            items.append(_value(state, sequence, item, depth + 1) if item else [])
        elif kind == 11 and isinstance(item, bytes):
            members[_name(state, sequence, values(item))] = _value(state, sequence, item, depth + 1)
        elif kind in _SCALARS:
            value = _SCALARS[kind](item)
    return items or members or value


_SCALARS: Mapping[int, Any] = {
    2: bool,
    3: lambda value: value,
    4: lambda value: as_signed(value) if isinstance(value, int) else None,
    5: double,
    6: lambda value: _decode(value) if isinstance(value, bytes) else None,
}


def _number(message: dict[int, Value], integer: int, double_field: int) -> int | float:
    return double(message[double_field]) if double_field in message else as_signed(number(message, integer))


def _decode(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
