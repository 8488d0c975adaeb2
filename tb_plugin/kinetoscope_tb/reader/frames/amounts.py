"""Impossible numbers in arguments: sizes whose sums could exceed 64 bits, and ranks that no job has."""

from __future__ import annotations

import numpy as np

from ...arrays.gather import NONE
from ...trace.meta import MOST_RANKS
from ...trace.model import Diagnostic
from ..scan.rows import Noted, Rows, Sorted

MOST_OF_AN_AMOUNT = 2**50
"""Bytes or numbers: a petabyte."""

_MOST = {
    **dict.fromkeys(
        (
            "bytes",
            "shared_memory_bytes",
            "memory_bytes",
            "total_allocated",
            "total_reserved",
            "in_elements",
            "out_elements",
        ),
        MOST_OF_AN_AMOUNT,
    ),
    "nth": 2**60,
    **dict.fromkeys(("group_size", "rank", "source_rank", "target_rank"), MOST_RANKS),
}


def without_impossible_numbers(events: Sorted) -> list[Diagnostic]:
    """Replace such numbers with missing values, and count them."""
    noted, named = Noted(), list[str]()
    for rows in events.frames.values():
        for name, most in _MOST.items():
            if name in rows and _drop(rows, name, most, noted):
                named.append(name)
    if not noted.count:
        return []
    listed = ", ".join(dict.fromkeys(named)).replace("_", " ")
    words = f"Arguments of events have impossible numbers ({listed}); they count as unknown."
    return [Diagnostic("impossible_number", noted.count, words, noted.first)]


def _drop(rows: Rows, name: str, most: int, noted: Noted) -> bool:
    """Drop the values of a column beyond a limit; return whether there were any."""
    values = rows[name]
    if np.iinfo(values.dtype).max <= most:
        return False
    odd = np.flatnonzero((values > most) | (values < -most))
    noted.add(int(odd.size), int(rows["offset"][odd[0]]) if odd.size else None)
    rows.put(name, odd, np.full(odd.size, NONE, np.int64))
    return bool(odd.size)
