"""Sizes in bytes as people write them: `50 GB`.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import re

from .errors import UsageError

_UNITS = {
    "": 1,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "KI": 1 << 10,
    "MI": 1 << 20,
    "GI": 1 << 30,
    "TI": 1 << 40,
}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,18})?)\s*([KMGT]I?|)B?", re.IGNORECASE)


def bytes_in(text: str) -> int:
    """Return the number of bytes that a text such as `50GB` or `1.5 GiB` names.

    Raises:
        UsageError: It names none.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} isn't a size; write 50GB, 500 MB, or 1.5 GiB.")
    return round(float(match[1]) * _UNITS[match[2].upper()])


def size_text(size: int) -> str:
    """Return a size with its unit, such as `1.5 GB`."""
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"
