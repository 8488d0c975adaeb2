"""The values outside the event array, checked once: the value of a known key has the expected type, or is null.

Texts have only whole characters, integers fit 64 bits, and floats are finite, at any depth. `_CHECKS_BY_KEY` defines
the types of the keys that the viewer reads; other keys may have any value.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Any

from ...trace.meta import MOST_RANKS
from ...trace.model import Diagnostic
from ..input.document import FARTHEST_BASE_NS, base_ns, marker_labels, top_values
from ..input.encodings import whole_characters

_LARGEST = 2**63 - 1
_MOST_DEVICES = 1 << 12
_MOST_NAMED = 8
_LONGEST_SHOWN = 40


@dataclass(frozen=True)
class Metadata:
    """The values outside the event array.

    Args:
        top: The values by their keys, without traceEvents.
        base_ns: Unix time of the file's zero.
        impossible: Impossible numbers about the worker's place in its job, or its clock, each with its key.
        odd: The keys of values that were replaced or left out.
        lost: How many values couldn't be read.
    """

    top: Mapping[str, Any]
    base_ns: int
    impossible: tuple[str, ...]
    odd: tuple[str, ...]
    lost: int

    @property
    def labels(self) -> dict[str, str]:
        """The program's names of the ranges that our recorder renamed."""
        return marker_labels(self.top)

    def with_origin(self, earliest_ns: int) -> tuple[Metadata, int]:
        """(the same, without an impossible clock; the Unix time of the first event)."""
        origin = self.base_ns + earliest_ns
        if abs(origin) <= FARTHEST_BASE_NS:
            return self, origin
        problem = f"the events begin {origin} ns after 1970"
        return replace(self, base_ns=0, impossible=(*self.impossible, problem)), earliest_ns

    def diagnostics(self) -> list[Diagnostic]:
        """Diagnostics about replaced and impossible values."""
        messages = []
        if self.odd:
            paths = ", ".join(self.odd[:_MOST_NAMED]) + (" …" if len(self.odd) > _MOST_NAMED else "")
            words = f"Metadata values have unexpected types, and are left out or replaced: {paths}."
            messages.append(Diagnostic("odd_metadata", len(self.odd), words))
        if self.impossible:
            words = f"Impossible metadata: {'; '.join(self.impossible)}. It counts as unknown, and views of all ranks "
            words += "leave this recording out."
            messages.append(Diagnostic("impossible_metadata", len(self.impossible), words))
        return messages


def metadata(head: bytes, tail: bytes) -> Metadata:
    """The metadata of a file, from the text before and after its events."""
    raw, lost_count = top_values(head, tail)
    return checked_metadata(raw, base_ns(raw, head, tail), lost_count)


def checked_metadata(values: Mapping[str, Any], base: int = 0, lost_count: int = 0) -> Metadata:
    """The metadata in top-level values, each of which has the type that views expect."""
    checks = _Checks()
    top = checks.members(values, _CHECKS_BY_KEY, ())
    if abs(base) > FARTHEST_BASE_NS:
        checks.impossible.append(f"baseTimeNanoseconds is {base}")
        base = 0
    return Metadata(top, base, tuple(checks.impossible), tuple(dict.fromkeys(checks.odd)), lost_count)


@dataclass
class _Checks:
    """Checks values, and collects the paths of those with unexpected types."""

    odd: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)

    def members(self, value: Any, checks_by_key: Mapping[str, Any], path: tuple[str, ...]) -> Any:
        """An object: keys in `checks_by_key` are checked by their function, others with `any_value`."""
        if not isinstance(value, Mapping):
            return self.replacement(path, {})
        result = {}
        for key, inner in value.items():
            name, check = whole_characters(key), checks_by_key.get(key, _Checks.any_value)
            result[name] = None if inner is None else check(self, inner, (*path, name))
        return result

    def replacement(self, path: tuple[str, ...], value: Any = None) -> Any:
        """Note the path; return the replacement."""
        self.odd.append(".".join(path)[:_LONGEST_SHOWN])
        return value

    def any_value(self, value: Any, path: tuple[str, ...]) -> Any:
        """A value of any kind."""
        if isinstance(value, str):
            whole = whole_characters(value)
            return whole if whole == value else self.replacement(path, whole)
        if isinstance(value, float) and not isfinite(value):
            return self.replacement(path)
        if isinstance(value, int) and not -_LARGEST <= value <= _LARGEST:
            return self.replacement(path)
        if isinstance(value, list):
            return [self.any_value(inner, path) for inner in value]
        return self.members(value, {}, path) if isinstance(value, dict) else value


_Check = Callable[[_Checks, Any, tuple[str, ...]], Any]


def _text(checks: _Checks, value: Any, path: tuple[str, ...]) -> Any:
    return checks.any_value(value, path) if isinstance(value, str) else checks.replacement(path)


def _version(checks: _Checks, value: Any, path: tuple[str, ...]) -> Any:
    """A text, or a number written in its place."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return _text(checks, str(checks.any_value(value, path)) if is_number else value, path)


def _number(least: int, most: int) -> _Check:
    def check(checks: _Checks, value: Any, path: tuple[str, ...]) -> Any:
        number = None if isinstance(value, str) else _whole(value)
        return number if number is not None and least <= number <= most else checks.replacement(path)

    return check


def _whole(value: Any) -> int | None:
    """An integer, also with a decimal point or in quotes, as daemons write it."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _rank(checks: _Checks, value: Any, path: tuple[str, ...]) -> Any:
    """A rank or a number of ranks. torch writes -1 for a worker without a rank."""
    number = _whole(value)
    if number is not None and number < 0:
        return None
    if number is None:
        return checks.replacement(path)
    if number >= MOST_RANKS:
        checks.impossible.append(f"{'.'.join(path)} is {value}"[: 2 * _LONGEST_SHOWN])
        return None
    return number


def _ranks(checks: _Checks, value: Any, path: tuple[str, ...]) -> Any:
    """A list of ranks; null if one isn't a rank."""
    if not isinstance(value, list):
        return checks.replacement(path)
    numbers = [_whole(rank) for rank in value]
    if len(value) > MOST_RANKS or not all(rank is not None and 0 <= rank < MOST_RANKS for rank in numbers):
        return checks.replacement(path)
    return numbers


def _object(checks_by_key: Mapping[str, Any]) -> _Check:
    return lambda checks, value, path: checks.members(value, checks_by_key, path)


def _objects(checks_by_key: Mapping[str, Any], most: int, required_key: str | None = None) -> _Check:
    """A list of objects, which may be JSON text; those without the needed key are left out."""

    def check(checks: _Checks, value: Any, path: tuple[str, ...]) -> Any:
        items = _parse(value) if isinstance(value, str) else value
        if not isinstance(items, list):
            return checks.replacement(path, [])
        objects = [item for item in items if isinstance(item, dict)][:most]
        if len(objects) < len(items):
            checks.replacement(path)
        members = [checks.members(item, checks_by_key, path) for item in objects]
        return [item for item in members if required_key is None or item.get(required_key) is not None]

    return check


def _mapping_of(check: _Check) -> _Check:
    """An object with one type of value under any key."""

    def check_members(checks: _Checks, value: Any, path: tuple[str, ...]) -> Any:
        keys = dict.fromkeys(value, check) if isinstance(value, dict) else {}
        return checks.members(value, keys, path)

    return check_members


def _parse(text: str) -> Any:
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return None


_COUNT = _number(0, _LARGEST)
_TIME = _number(-(2**60), 2**60)
_DEVICE = {
    "id": _number(0, 2**31 - 1),
    "name": _text,
    **dict.fromkeys(
        (
            "totalGlobalMem",
            "computeMajor",
            "computeMinor",
            "numSms",
            "maxThreadsPerMultiprocessor",
            "regsPerMultiprocessor",
            "sharedMemPerMultiprocessor",
            "maxSharedMemoryPerMultiProcessor",
            "warpSize",
        ),
        _COUNT,
    ),
}
_GROUP = {"pg_name": _text, "pg_desc": _text, "pg_size": _number(0, MOST_RANKS), "ranks": _ranks}
_CHECKS_BY_KEY = {
    "deviceProperties": _objects(_DEVICE, _MOST_DEVICES, "id"),
    "distributedInfo": _object(
        {"backend": _text, "rank": _rank, "world_size": _rank, "pg_config": _objects(_GROUP, MOST_RANKS)}
    ),
    "global_rank": _rank,
    "host_name": _text,
    "traceName": _text,
    "cuda_runtime_version": _COUNT,
    "hip_runtime_version": _COUNT,
    "kinetoscope": _object(
        {
            "global_rank": _rank,
            "world_size": _rank,
            "local_rank": _rank,
            "node_rank": _rank,
            "local_world_size": _rank,
            "ranks": _ranks,
            "host": _text,
            "launcher": _text,
            "torch_version": _version,
            "cuda_version": _version,
            "python_version": _version,
            "clock": _object({"offset_ns": _TIME, "error_ns": _number(0, 2**60)}),
            "mesh": _mapping_of(_number(0, MOST_RANKS)),
            "options": _object({}),
            "counters": _mapping_of(_object({"unit": _text})),
        }
    ),
}
