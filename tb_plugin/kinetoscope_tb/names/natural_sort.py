"""Natural sort order of names: rank2 before rank10."""

from __future__ import annotations

import re
from functools import lru_cache

from .regex import regex

_CACHE_SIZE = 1 << 14
_PART = regex(r"(?P<sign>^-(?=[0-9]))?0*(?P<number>[0-9]+)|(?P<text>[^0-9]+)")
_NEGATIVE, _NUMBER, _TEXT = range(3)
_COMPLEMENT = str.maketrans("0123456789", "9876543210")

Key = tuple[tuple[int, int, str], ...]


@lru_cache(_CACHE_SIZE)
def natural_key(name: str) -> Key:
    """Sort key that orders numbers by value and before text, and ignores case.

    A minus at the very beginning is a sign; anywhere else it separates.
    """
    return tuple(_part_key(match) for match in _PART.finditer(name)) or ((_TEXT, 0, ""),)


def _part_key(match: re.Match[str]) -> tuple[int, int, str]:
    number = match["number"]
    if number is None:
        return _TEXT, 0, match["text"].casefold()
    if match["sign"] is None or number == "0":
        return _NUMBER, len(number), number
    return _NEGATIVE, -len(number), number.translate(_COMPLEMENT)
