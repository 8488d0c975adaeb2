"""Untrusted JSON values: each has the expected type, or the entry is broken."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MOST_DEPTH = 200  # of nested lists and objects
_NO_BRACKETS = bytes(set(range(256)) - set(b'"[]{}'))


class BrokenEntry(ValueError):
    """Bytes that have another format, or are damaged."""


def parse_json(text: bytes) -> Any:
    """A JSON value.

    Raises:
        BrokenEntry: It isn't JSON, or is nested too deeply to be parsed safely.
    """
    if text.count(b"[") + text.count(b"{") > MOST_DEPTH and _depth(text) > MOST_DEPTH:
        raise BrokenEntry("its JSON is nested too deeply")
    try:
        return json.loads(text)
    except ValueError as error:  # not JSON, not UTF-8, or a number with too many digits
        raise BrokenEntry("its JSON can't be parsed") from error


def _depth(text: bytes) -> int:
    """How deeply lists and objects are nested; brackets in texts don't count."""
    characters = np.frombuffer(text.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _NO_BRACKETS), "u1")
    is_quote = characters == ord('"')
    outside = characters[~is_quote & ((np.cumsum(is_quote, dtype=np.int32) & 1) == 0)]
    steps = np.where((outside == ord("[")) | (outside == ord("{")), 1, -1)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))


def whole(value: Any, least: int, most: int = 1 << 62) -> int:
    """The value, which must be an integer in this range.

    Raises:
        BrokenEntry: It isn't.
    """
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise BrokenEntry("a number in its head is out of range")
    return value


def mapping(value: Any) -> Mapping[str, Any]:
    """The value, which must be an object.

    Raises:
        BrokenEntry: It isn't.
    """
    if not isinstance(value, dict):
        raise BrokenEntry("an object is missing in its head")
    return value


def sequence(value: Any, size: int | None = None) -> Sequence[Any]:
    """The value, which must be a list of this length.

    Raises:
        BrokenEntry: It isn't.
    """
    if not isinstance(value, list) or (size is not None and len(value) != size):
        raise BrokenEntry("a list is missing in its head")
    return value
