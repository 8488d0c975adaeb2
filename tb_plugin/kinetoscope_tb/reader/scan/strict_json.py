"""Events and values as strict JSON: in UTF-8, without NaN, Infinity and control characters."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...names.regex import regex
from ..input.encodings import decode, whole_characters
from .scanner import value_end
from .tokens import text_of

_OBJECTS = {(0, b'"args"'), (1, b'"occupancy"')}  # whose members the scanner reads one by one
_BETWEEN = regex(rb"[\0- ,]*")
_COLON = regex(rb"[\0- ]*:[\0- ]*")


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def is_strict(text: bytes) -> bool:
    """Whether the text is strict JSON: in UTF-8, without NaN, Infinity and control characters."""
    try:
        json.loads(text.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def strict_value(token: bytes) -> bytes:
    """A JSON value that this reader treats like the token."""
    if is_strict(token):
        return token
    if not token or token[:1] in b"nNiI":  # nan, inf, N/A, None
        return b"null"
    if token[:1] in b"[{":
        try:
            return as_json(json.loads(decode(token), strict=False, parse_constant=_refuse))
        except (ValueError, RecursionError):
            return as_json(text_of(token))
    return as_json(text_of(token))


def as_json(value: Any) -> bytes:
    """The value as JSON in UTF-8; halves of surrogate pairs are replaced."""
    return whole_characters(json.dumps(value, ensure_ascii=False)).encode()


def strict_event(text: bytes) -> bytes:
    """The event as strict JSON; the scanner has accepted it."""
    return text if is_strict(text) else _object(text, np.frombuffer(text, np.uint8), 0, 0)[0]


def _object(text: bytes, data: NDArray[np.uint8], i: int, level: int) -> tuple[bytes, int]:
    """(the object at i as strict JSON, index after it), read member by member as the scanner does."""
    members: list[bytes] = []
    i += 1
    while True:
        i = _BETWEEN.match(text, i).end()  # type: ignore[union-attr]  # matches nothing too
        if text[i : i + 1] != b'"':
            return b"{" + b", ".join(members) + b"}", i + 1
        key_end = value_end(data, i, len(text))
        key, start = text[i:key_end], _COLON.match(text, key_end).end()  # type: ignore[union-attr]
        if (level, key) in _OBJECTS and text[start : start + 1] == b"{":
            value, i = _object(text, data, start, level + 1)
        else:
            i = value_end(data, start, len(text))
            value = strict_value(text[start:i])
        members.append((key if is_strict(key) else as_json(text_of(key))) + b": " + value)
