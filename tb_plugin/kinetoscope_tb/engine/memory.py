"""How much memory results take: the arrays and frames that can be reached from them, each counted once."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

_MOST_ITEMS = 1000  # of a list or a mapping; longer ones hold numbers and texts, not arrays
_DEEPEST = 8


def bytes_of(values: Iterable[Any], apart_from: Iterable[Any] = ()) -> int:
    """Bytes of the arrays and frames in some values, without those that other values hold too."""
    seen: set[int] = set()
    for value in apart_from:
        _bytes(value, seen, 0)
    return sum(_bytes(value, seen, 0) for value in values)


def _bytes(value: Any, seen: set[int], depth: int) -> int:
    if isinstance(value, (str, bytes, int, float)) or value is None or id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return _bytes_of_array(value, seen)
    if isinstance(value, (pl.DataFrame, pl.Series)):
        return int(value.estimated_size())
    if depth == _DEEPEST:
        return 0
    return sum(_bytes(part, seen, depth + 1) for part in _parts(value))


def _bytes_of_array(array: np.ndarray[Any, Any], seen: set[int]) -> int:
    """Of a view the array that it is a view of; 0 for one that is mapped from a file, or belongs to a frame."""
    while isinstance(array.base, np.ndarray):
        array = array.base
        if id(array) in seen:
            return 0
        seen.add(id(array))
    return array.nbytes if array.base is None else 0


def _parts(value: Any) -> Iterator[Any]:
    """What an object holds; of a dataclass also its cached properties."""
    if isinstance(value, Mapping):
        yield from list(value.values())[:_MOST_ITEMS]
    elif isinstance(value, (list, tuple)):
        yield from value[:_MOST_ITEMS]
    elif dataclasses.is_dataclass(value):
        yield from list(getattr(value, "__dict__", {}).values())
