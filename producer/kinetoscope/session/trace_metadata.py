"""The program's own top-level keys of a trace."""

from __future__ import annotations

import json
from typing import Any

from ..errors import UsageError

_RESERVED = frozenset(
    ("kinetoscope", "traceEvents", "schemaVersion", "baseTimeNanoseconds", "deviceProperties", "distributedInfo")
)
"""Reserved keys, which the program can't set."""


class TraceMetadata:
    """The program's keys for the next window, and for all windows."""

    def __init__(self) -> None:
        self._preset: dict[str, Any] = {}
        self._next: dict[str, Any] = {}

    def add(self, key: str, value: str) -> None:
        """Add a text to the next window.

        Raises:
            UsageError: The key is reserved.
        """
        self._next[_checked_key(key)] = str(value)

    def add_json(self, key: str, value: str) -> None:
        """Add a JSON value to the next window.

        Raises:
            UsageError: The key is reserved, or the value isn't JSON.
        """
        self._next[_checked_key(key)] = _parse(key, value)

    def preset_json(self, key: str, value: str) -> None:
        """Add a JSON value to all windows from now on.

        Raises:
            UsageError: The key is reserved, or the value isn't JSON.
        """
        self._preset[_checked_key(key)] = _parse(key, value)

    def take(self) -> dict[str, Any]:
        """Return the keys of the window that is being saved."""
        values, self._next = {**self._preset, **self._next}, {}
        return values


def _checked_key(key: str) -> str:
    if key in _RESERVED:
        raise UsageError(f"{key!r} is a reserved key of traces; choose another one.")
    return str(key)


def _parse(key: str, value: str) -> Any:
    try:
        return json.loads(value, parse_constant=lambda constant: _refuse(key, constant))
    except (ValueError, TypeError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(f"The value of {key!r} is not JSON: {error}.") from error


def _refuse(key: str, constant: str) -> Any:
    raise UsageError(f"The value of {key!r} is not JSON, which has no {constant}.")
