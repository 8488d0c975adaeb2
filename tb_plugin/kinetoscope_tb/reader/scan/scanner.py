"""The event scanner: bytes of a JSON array of trace events → arrays, in one pass (tb_plugin/native/scanner.c).

It looks for structure only and builds no objects, so control characters, bad UTF-8, NaN, duplicate keys and stray
commas inside an event don't stop it; anomalies that JSON doesn't allow are counted. An incomplete event is left unread;
the place of a damaged one is noted, and repaired elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.native import Array, Function

SKIP, CODE, INTEGER, TIME, OBJECT = range(5)
"""How a key's value is read: not at all; as a code for its text; an integer; µs to ns; an object with keys to read."""

MORE, ARRAY_END, FULL, STUCK, CUT = range(5)
"""Why a scan stopped: no further complete event; the array's closing bracket; no room left in `Out`. In the last text
also: damage, or an event without an end, after which no other event is known to begin."""

WORD, HEX, EMPTY, COMMA = range(4)
"""Anomalies that the scanner accepts although JSON doesn't: a bare word such as inf, a bare 0x1f, a missing value, a
missing or extra comma."""
N_ANOMALIES = 4

EVENTS, TOKENS, ODD, PLACES, STATUS, NAMELESS, FIRST_NAMELESS = range(7)
ANOMALIES = 7
FIRST_ANOMALIES = ANOMALIES + N_ANOMALIES
SEED = FIRST_ANOMALIES + N_ANOMALIES
N_STATE = SEED + 1
"""The places in `Out.state`; NAMELESS counts whole objects that have no phase, and so are no events. SEED: that of
the hash table of tokens; everything before it is 0 when a scan begins."""

PHASE = 0
"""The row of `Out.codes` for the key that every event has."""

MISSING = -(2**63)
"""A time that the event doesn't have."""

ODD_PER_EVENT, TOKENS_PER_EVENT = 64, 256
"""An event gets at least this much room; what exceeds it is left out of the columns."""


class Keys(NamedTuple):
    """An open-addressing table, by `key_hash`, of the keys that are read; a free slot has length -1 and kind SKIP."""

    levels: Any  # 0: a key of the event, 1: of its args, 2: of an object inside them
    kinds: Any
    columns: Any  # the row in Out.codes, Out.times or Out.arg_values
    starts: Any  # of the key in `text`
    lengths: Any
    text: Any  # uint8


class Out(NamedTuple):
    """Where a scan writes. A token is the raw text of a JSON value; equal tokens share a code."""

    codes: Any  # [column, event] int32: a token's code, or -1
    times: Any  # [column, event] int64: ns, or MISSING
    offsets: Any  # [event] of its opening brace
    lengths: Any  # [event]
    arg_counts: Any  # [column]
    arg_rows: Any  # [column, nth value] int32: the event that has it
    arg_values: Any  # [column, nth value] int64: a code or an integer
    slots: Any  # hash table of the tokens: hash, or 0
    slot_codes: Any
    token_starts: Any  # [code]
    token_lengths: Any
    odd: Any  # [nth number in another form]: event, column, nth value (-1: a time), offset, length
    places: Any  # [nth damaged place]: where it begins, and where the next event does
    state: Any


_KEY_FIELDS, _MOST_COLUMNS = 4, 1 << 7  # of what the scanner remembers: the last key after each, and the last tokens

_scan, _members, _value_end = Function("scan"), Function("members"), Function("value_end")


def key_hash(key: bytes) -> int:
    """A number for a key from its length and three of its bytes: the keys that are read differ in those."""
    return len(key) * 7 + key[0] * 3 + key[len(key) // 2] * 31 + key[-1] * 113


def scan(text: Array, pos: int, end: int, first_key: Array, keys: Keys, out: Out, *, is_last: bool) -> int:
    """Read the events in text[pos:end] into `out`, and return the first byte that wasn't read.

    Args:
        text: Bytes.
        pos, end: The part that is read.
        first_key: The quoted key that the first event of this file begins with.
        keys: The keys that are read.
        out: Where events are written.
        is_last: Whether nothing follows, so what is incomplete stays so, and what lies beyond it is read.
    """
    seen_keys, seen_codes = np.empty((keys.lengths.size, _KEY_FIELDS), np.int64), np.empty(_MOST_COLUMNS, np.int32)
    return _scan(text, pos, end, is_last, first_key, keys, out, seen_keys, seen_codes)


def members(text: Array, i: int, end: int, bounds: Array) -> tuple[int, int, bool]:
    """Find the members of an object from i on, up to an array that is the value of traceEvents.

    Of each its key begins and ends, and its value does, in a row of `bounds`; the array ends at -1.

    Returns: How many were found, where the next one begins, and whether more text wouldn't add one, since something
        else follows.
    """
    end_state = np.empty(2, np.int64)
    count = _members(text, i, end, bounds, end_state)
    return count, int(end_state[0]), bool(end_state[1])


def value_end(text: Array, i: int, end: int) -> int:
    """Index after the JSON value that begins at i, or a negative number if it is incomplete or broken."""
    return _value_end(text, i, end)
