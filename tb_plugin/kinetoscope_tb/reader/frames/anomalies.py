"""Anomalies in the texts and numbers of events, found after all of a trace is read.

Those of texts are found in its distinct texts, which are few. A backslash that kineto replaced with a slash (2.1 and
later) can't be detected. Impossible numbers are sizes whose sums could exceed 64 bits, and ranks that no job has.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...arrays.gather import NONE
from ...names.regex import regex
from ...trace.meta import MOST_RANKS
from ...trace.model import Diagnostic
from ..input.encodings import is_cp1252
from ..scan.rows import LAYOUTS, NO_NAME, Occurrences, Rows, SortedEvents

_MOST_OF_AN_AMOUNT = 2**50
"""Bytes or numbers: a petabyte."""

_MOST_OF_COLUMN = {
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
        _MOST_OF_AN_AMOUNT,
    ),
    "nth": 2**60,
    **dict.fromkeys(("group_size", "rank", "source_rank", "target_rank"), MOST_RANKS),
}

_CONTROL = regex(rb"[\0-\x1f]")
_ESCAPE = regex(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|(\\)')


def text_diagnostics(events: SortedEvents) -> list[Diagnostic]:
    """Diagnostics about the texts of the events; counts are of distinct texts unless noted otherwise."""
    tokens = events.tokens
    return [*_damaged_texts(events, tokens), *_odd_names(events, tokens)]


def _damaged_texts(events: SortedEvents, tokens: Sequence[bytes]) -> list[Diagnostic]:
    all_text = b"".join(tokens)
    has_controls = bool(_CONTROL.search(all_text))
    if all_text.isascii() and not has_controls and b"\\" not in all_text:
        return []
    is_used = _occurrence(events, len(tokens))
    counts = dict.fromkeys(_WORDS, 0)
    for code, text in enumerate(tokens):
        if not text.startswith(b'"') or not is_used[code]:
            continue
        if not text.isascii() and not _is_utf8(text):
            counts["cp1252_text" if is_cp1252(text) else "not_utf8"] += 1
        if has_controls and _CONTROL.search(text):
            counts["control_characters"] += 1
        if b"\\" in text and any(match[1] for match in _ESCAPE.finditer(text)):
            counts["bad_escape"] += 1
    return [Diagnostic(rule, count, _WORDS[rule], level="note") for rule, count in counts.items() if count]


def _occurrence(events: SortedEvents, n_tokens: int) -> NDArray[np.bool_]:
    """Mask of the texts that events use: the scanner also collects those of events that turn out to be damaged."""
    occurs = np.zeros(n_tokens + 1, bool)
    for rows in events.frames.values():
        for column in rows.codes():
            occurs[column] = True  # -1 is the last place
    return occurs[:-1]


_WORDS = {
    # kineto#80, pytorch#136180; fixed by kineto 7ae1ce85
    "not_utf8": "Texts contain bytes that aren't UTF-8; those are shown as �, so different names may look the same.",
    "cp1252_text": "Texts are in the encoding of Windows (cp1252) instead of UTF-8, and were converted.",
    # pytorch#113001, #130622; fixed by kineto 51fd6e6a
    "control_characters": "Texts contain raw line breaks or control characters, which JSON forbids; they are kept.",
    # kineto#336, pytorch#98432; fixed by kineto 21beef37
    "bad_escape": "Texts contain single backslashes, as in Windows paths; they are kept, but one before b, f, n, r "
    "or t is read as a control character.",
}


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _odd_names(events: SortedEvents, tokens: Sequence[bytes]) -> list[Diagnostic]:
    """A name is a text; a number, a list or an object is shown as it is spelled."""
    odd = [code for code, token in enumerate(tokens) if not token.startswith(b'"')]
    notes = _events_named(events, odd)
    words = f"Events have no name, or one that isn't text; those without any are called {NO_NAME.decode()} here."
    return [Diagnostic("odd_name", notes.count, words, notes.first)] if notes.count else []


def _events_named(events: SortedEvents, codes: Sequence[int]) -> Occurrences:
    """The events with one of these names."""
    notes = Occurrences()
    for frame, layout in LAYOUTS.items():
        if codes and layout.is_timed and "name" in layout.codes:
            rows = events.frames[frame]
            notes.add_where(np.isin(rows["name"], codes), rows["offset"])
    return notes


def without_impossible_numbers(events: SortedEvents) -> list[Diagnostic]:
    """Replace such numbers with missing values, and count them."""
    notes, columns = Occurrences(), list[str]()
    for rows in events.frames.values():
        for name, most in _MOST_OF_COLUMN.items():
            if name in rows and _drop_beyond(rows, name, most, notes):
                columns.append(name)
    if not notes.count:
        return []
    names = ", ".join(dict.fromkeys(columns)).replace("_", " ")
    words = f"Arguments of events have impossible numbers ({names}); they count as unknown."
    return [Diagnostic("impossible_number", notes.count, words, notes.first)]


def _drop_beyond(rows: Rows, name: str, most: int, notes: Occurrences) -> bool:
    """Drop the values of a column beyond a limit; return whether there were any."""
    values = rows[name]
    if np.iinfo(values.dtype).max <= most:
        return False
    odd = np.flatnonzero((values > most) | (values < -most))
    notes.add(int(odd.size), int(rows["offset"][odd[0]]) if odd.size else None)
    rows.put(name, odd, np.full(odd.size, NONE, np.int64))
    return bool(odd.size)
