"""Single messages of Perfetto's protobuf, field by field, in plain Python."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeAlias

Value: TypeAlias = int | bytes


class BrokenMessage(Exception):
    """These bytes aren't the fields of a message."""


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(the number at `at`, the index after it)."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & 2**64 - 1, at
    raise BrokenMessage


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Each field's number and value: an int of a varint, the bytes of anything else."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
            yield tag >> 3, value
            continue
        length = {1: 8, 5: 4}.get(tag & 7)
        if length is None:
            if tag & 7 != 2:
                raise BrokenMessage
            length, at = varint(data, at)
        if length > len(data) - at:
            raise BrokenMessage
        yield tag >> 3, data[at : at + length]
        at += length


def values(data: bytes) -> dict[int, Value]:
    """The last value of each field."""
    return dict(fields(data))


def number(message: dict[int, Value], field: int, default: int = 0) -> int:
    """A varint; the default if there is none."""
    value = message.get(field, default)
    return value if isinstance(value, int) else default


def data(message: dict[int, Value], field: int) -> bytes:
    """The bytes of a text or message; none if there is none."""
    value = message.get(field, b"")
    return value if isinstance(value, bytes) else b""


def as_signed(value: int, bits: int = 64) -> int:
    """The varint as a signed number."""
    value &= 2**bits - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def double(value: Value) -> float:
    """The value of a double; NaN if it isn't one."""
    return float(struct.unpack("<d", value)[0]) if isinstance(value, bytes) and len(value) == 8 else float("nan")
