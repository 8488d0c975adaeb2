"""The event scanner: bytes of a JSON array of trace events → arrays, in one pass.

It looks for structure only and builds no objects, so control characters, bad UTF-8, NaN, duplicate keys and stray
commas inside an event don't stop it; anomalies that JSON doesn't allow are counted. An incomplete event is left unread;
the place of a damaged one is noted, and repaired elsewhere. Numba compiles everything here, and it runs without the
interpreter lock. It is all in one file because Numba's cache is valid until the file of the outermost function changes.
"""

# ruff: noqa: SIM109  # `in` builds a tuple, which numba compiles to slower code
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ...arrays.jit import compiled

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
N_STATE = FIRST_ANOMALIES + N_ANOMALIES
"""The places in `Out.state`; NAMELESS counts whole objects that have no phase, and so are no events."""

PHASE = 0
"""The row of `Out.codes` for the key that every event has."""

MISSING = -(2**63)
"""A time that the event doesn't have."""

ODD_PER_EVENT, TOKENS_PER_EVENT = 64, 256
"""An event gets at least this much room; what exceeds it is left out of the columns."""

_QUOTE, _BACKSLASH, _COMMA, _COLON, _DOT, _MINUS = 34, 92, 44, 58, 46, 45
_OPEN_BRACE, _CLOSE_BRACE, _OPEN_BRACKET, _CLOSE_BRACKET = 123, 125, 91, 93
_SPACE, _ZERO, _NINE, _SMALL_N, _SMALL_U, _SMALL_X = 32, 48, 57, 110, 117, 120
_INCOMPLETE, _BROKEN = -1, -2
_ANOMALY_BITS = 15  # of a count of anomalies in one event; four share an integer
_ONE_WORD, _ONE_HEX, _ONE_EMPTY, _ONE_COMMA = (1 << kind * _ANOMALY_BITS for kind in range(N_ANOMALIES))
_DEEPEST = 62  # levels of nesting inside an argument
_MOST_UNFINISHED = 16  # events without an end in one text that are read to its end
_MOST_DIGITS = 18
_LARGEST_US = 2**62 // 1000
_SEED, _PRIME, _MIX, _BYTE, _FREE, _ONE = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 32, 8, 0, 1))
_NO_BITS, _TO_LAST_BIT = np.uint64(0), np.uint64(63)
_SHIFTS = tuple(np.uint64(2**i) for i in range(6))


def _bytes_in(members: bytes) -> NDArray[np.bool_]:
    table = np.zeros(256, np.bool_)
    table[list(members)] = True
    return table


_BLANKS = bytes(range(_SPACE + 1))
_ENDS_BARE = _bytes_in(_BLANKS + b',]}"')
_ENDS_NUMBER = _bytes_in(_BLANKS + b",]}")
_FOLLOWS_STRING = _bytes_in(b",:]}")
_MEANS_NULL = _bytes_in(b"nNiI")  # null, nan, NaN, None, N/A, inf, Infinity
_USUAL_FIRST_KEY = np.array(list(b'"ph"'), np.uint8)
_EVENTS_KEY = np.array(list(b'"traceEvents"'), np.uint8)
_BEGINS_VALUE = _bytes_in(b'"[{-0123456789tf')

F = TypeVar("F", bound=Callable[..., Any])

# Without numba's reference counting, which would count each array at each call: that is five times slower. What is
# compiled here only borrows arrays and creates none, so nothing needs to be counted.
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}


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


def _compiled(function: F) -> F:
    return compiled(function, **_OPTIONS)


def _inlined(function: F) -> F:
    return cast("F", njit(forceinline=True, **_OPTIONS)(function))


def _generated(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose machine code the given one writes, instruction by instruction."""
    return cast("Callable[..., Any]", intrinsic(function))


@_generated
def _item(_typing: Any, array: Any, _at: Any) -> Any:
    """An item of an array. Numba's brackets look whether an index counts from the end, which costs half of all time."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        items = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.load(builder.gep(items, [arguments[1]]))

    return array.dtype(array, types.int64), generated


@_generated
def _eight(_typing: Any, array: Any, _at: Any) -> Any:
    """The eight bytes from an index on as one number, the first byte lowest; the caller sees that they exist."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bytes_of = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        place = builder.gep(bytes_of, [arguments[1]])
        word = builder.load(builder.bitcast(place, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(array, types.int64), generated


def _finder(width: int, comparison: str = "==") -> Any:
    """Build a function that compares the `width` bytes from an index on with a byte, one bit each.

    The caller sees that they exist. LLVM makes a few vector instructions of it, whichever the processor has.
    """

    @_generated
    def where(_typing: Any, array: Any, _at: Any, _byte: Any) -> Any:
        def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            vector = ir.VectorType(ir.IntType(8), width)
            bytes_of = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            place = builder.gep(bytes_of, [arguments[1]])
            loaded = builder.load(builder.bitcast(place, vector.as_pointer()))
            loaded.align = 1
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), arguments[2], ir.IntType(32)(0))
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), [0] * width)
            is_it = builder.icmp_unsigned(comparison, loaded, builder.shuffle_vector(one, one, zeros))
            return builder.zext(builder.bitcast(is_it, ir.IntType(width)), ir.IntType(64))

        return types.uint64(array, types.int64, types.uint8), generated

    return where


_SHORT_NESTED = 1 << 12
_WIDTH, _SHORT = 64, 16  # bytes compared at once: in arguments, and in texts, which are short
_where, _where_nearby, _blank_nearby = _finder(_WIDTH), _finder(_SHORT), _finder(_SHORT, "<=")


@_generated
def _lowest_bit(_typing: Any, word: Any) -> Any:
    """The place of the lowest bit that is set in a number that isn't 0."""

    def generated(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(word), generated


@_generated
def _bits(_typing: Any, word: Any) -> Any:
    """How many bits are set."""

    def generated(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(word), generated


@_inlined
def _mixed(h: Any, word: Any) -> Any:
    h = (h ^ word) * _PRIME
    return h ^ (h >> _MIX)


@_inlined
def _hash(b: Any, i: int, end: int) -> Any:
    """A hash of b[i:end] that is never 0 and whose low bits depend on every byte."""
    h = _mixed(_SEED, np.uint64(end - i))
    while i + 8 <= end:
        h = _mixed(h, _eight(b, i))
        i += 8
    rest = _SEED
    while i < end:
        rest = rest << _BYTE | np.uint64(_item(b, i))
        i += 1
    h = _mixed(h, rest)
    return h if h != _FREE else _ONE


@_inlined
def _same(a: Any, i: int, b: Any, j: int, length: int) -> bool:
    k = 0
    while k + 8 <= length:
        if _eight(a, i + k) != _eight(b, j + k):
            return False
        k += 8
    while k < length and a[i + k] == _item(b, j + k):
        k += 1
    return k == length


@_inlined
def _past_space(b: Any, i: int, end: int) -> int:
    while i < end and _item(b, i) <= _SPACE:
        i += 1
    return i


@_inlined
def _string_end(b: Any, i: int, end: int) -> int:
    """Index of the closing quote of the string whose text begins at i; end or more if it is missing."""
    while i < end:
        if i + _SHORT <= end:
            bits = _where_nearby(b, i, _QUOTE) | _where_nearby(b, i, _BACKSLASH)
            if bits == _NO_BITS:
                i += _SHORT
                continue
            i += _lowest_bit(bits)
        if _item(b, i) == _QUOTE:
            return i
        i += 2 if _item(b, i) == _BACKSLASH else 1
    return i


@_inlined
def _in_strings(quotes: Any) -> Any:
    """From the places of quotes: which bytes follow an odd number of them, a quote itself counted."""
    for shift in _SHIFTS:
        quotes ^= quotes << shift
    return quotes


@_inlined
def _simple_nested_end(b: Any, i: int, end: int) -> int:
    """What _nested_end returns, for a short value without anything unusual that ends well before `end`; else 0."""
    depth, lists, inside, string_ended = 0, 0, _NO_BITS, _NO_BITS
    end = min(end, i + _SHORT_NESTED)
    while i + _WIDTH <= end and _where(b, i, _BACKSLASH) == _NO_BITS:
        quotes = _where(b, i, _QUOTE)
        within = _in_strings(quotes) ^ inside
        lists_opened = _where(b, i, _OPEN_BRACKET) & ~within
        lists_closed = _where(b, i, _CLOSE_BRACKET) & ~within
        opened = lists_opened | _where(b, i, _OPEN_BRACE) & ~within
        closed = lists_closed | _where(b, i, _CLOSE_BRACE) & ~within
        if depth + _bits(opened) > _DEEPEST:
            return 0
        odd = _NO_BITS  # what follows a string, and isn't punctuation
        if quotes | string_ended != _NO_BITS:
            after_string = (quotes & ~within) << _ONE | string_ended
            usual = closed | _where(b, i, _COMMA) | _where(b, i, _COLON)
            odd = after_string & ~usual
            string_ended = (quotes & ~within) >> _TO_LAST_BIT
        closings = 0
        rest = closed if _bits(closed) >= depth else _NO_BITS
        while rest != _NO_BITS:
            closings += 1
            following = rest & (rest - _ONE)
            up_to_here = (rest ^ following) | ((rest ^ following) - _ONE)
            if depth + _bits(opened & up_to_here) == closings:
                if odd & up_to_here != _NO_BITS:
                    return 0
                lists += _bits(lists_opened & up_to_here) - _bits(lists_closed & up_to_here)
                return i + _bits(up_to_here) if lists == 0 else _BROKEN
            rest = following
        if odd != _NO_BITS:
            return 0
        depth += _bits(opened) - _bits(closed)
        lists += _bits(lists_opened) - _bits(lists_closed)
        inside = _NO_BITS - (within >> _TO_LAST_BIT)
        i += _WIDTH
    return 0


@_inlined
def _follows_colon(b: Any, i: int) -> bool:
    i -= 1
    while _item(b, i) <= _SPACE:
        i -= 1
    return bool(_item(b, i) == _COLON)


@_compiled
def _nested_end(b: Any, i: int, end: int) -> int:
    """Index after the object or array that begins at i, _INCOMPLETE, or _BROKEN.

    It is broken if some bracket closes a brace, or if something other than punctuation follows a string; a long one
    also if it holds an object without a key. So the loss of one bracket or quote is seen near it, and swallows little
    of what follows.
    """
    after = _simple_nested_end(b, i, end)
    if after != 0:
        return after
    depth, lists, far = 0, 0, i + _SHORT_NESTED
    while i < end:
        c = _item(b, i)
        if c == _QUOTE:
            i = _string_end(b, i + 1, end)
            following = _past_space(b, i + 1, end)
            if following < end and not _FOLLOWS_STRING[_item(b, following)]:
                return _BROKEN
        elif c == _OPEN_BRACE or c == _OPEN_BRACKET:
            depth += 1
            lists += c == _OPEN_BRACKET
            if depth > _DEEPEST or (lists == 0 and i > far and not _follows_colon(b, i)):
                return _BROKEN
        elif c == _CLOSE_BRACE or c == _CLOSE_BRACKET:
            depth -= 1
            lists -= c == _CLOSE_BRACKET
            if depth == 0:
                return i + 1 if lists == 0 else _BROKEN
        i += 1
    return _INCOMPLETE


@_compiled
def value_end(b: Any, i: int, end: int) -> int:
    """Index after the JSON value that begins at i, or a negative number if it is incomplete or broken.

    A missing value (`"key": ,`) is an empty one: kineto b10f04a4.
    """
    c = _item(b, i)
    if c == _QUOTE:
        i = _string_end(b, i + 1, end) + 1
    elif c == _OPEN_BRACE or c == _OPEN_BRACKET:
        return _nested_end(b, i, end)
    elif c == _CLOSE_BRACKET:
        return _BROKEN
    else:
        while i + _SHORT <= end:
            bits = _where_nearby(b, i, _COMMA) | _where_nearby(b, i, _CLOSE_BRACE) | _blank_nearby(b, i, _SPACE)
            bits |= _where_nearby(b, i, _CLOSE_BRACKET) | _where_nearby(b, i, _QUOTE)
            if bits != _NO_BITS:
                i += _lowest_bit(bits)
                break
            i += _SHORT
        while i < end and not _ENDS_BARE[_item(b, i)]:
            i += 1
        if i == end:
            return _INCOMPLETE
        if not _ENDS_NUMBER[_item(b, i)]:
            return _BROKEN
    return i if i <= end else _INCOMPLETE


@_compiled
def _end_at_any_depth(b: Any, i: int, end: int) -> int:
    """Index after the object or array that begins at i, or _INCOMPLETE; brackets needn't match in kind."""
    depth = 0
    while i < end:
        c = _item(b, i)
        if c == _QUOTE:
            i = _string_end(b, i + 1, end)
        elif c == _OPEN_BRACE or c == _OPEN_BRACKET:
            depth += 1
        elif c == _CLOSE_BRACE or c == _CLOSE_BRACKET:
            depth -= 1
            if depth == 0:
                return i + 1
        if depth == 0:
            return _INCOMPLETE
        i += 1
    return _INCOMPLETE


@_compiled
def members(b: Any, i: int, end: int, places: Any) -> tuple[int, int]:
    """Find the members of an object from i on: (how many were found, where the next one begins).

    Of each its key begins and ends, and its value does, in a row of `places`. A value that ends at -1 is that of
    traceEvents, behind which no further one is looked for. Where less than all of `places` is filled otherwise, what
    follows isn't a whole member.
    """
    count = 0
    while count < places.shape[0]:
        while i < end and (_item(b, i) <= _SPACE or _item(b, i) == _COMMA or _item(b, i) == _OPEN_BRACE):
            i += 1
        if i >= end or _item(b, i) != _QUOTE:
            return count, i
        key_end = _string_end(b, i + 1, end) + 1
        colon = _past_space(b, key_end, end)
        if colon >= end or _item(b, colon) != _COLON:
            return count, i
        start = _past_space(b, colon + 1, end)
        if start >= end:
            return count, i
        is_events = key_end - i == _EVENTS_KEY.size and _same(_EVENTS_KEY, 0, b, i, _EVENTS_KEY.size)
        after = -1 if is_events else value_end(b, start, end)
        if after == _BROKEN and not is_events:
            after = _end_at_any_depth(b, start, end)
        if after < 0 and not is_events:
            return count, i
        places[count, 0], places[count, 1], places[count, 2], places[count, 3] = i, key_end, start, after
        count += 1
        if is_events:
            return count, start
        i = after
    return count, i


@_compiled
def _next_event(b: Any, i: int, end: int, first_key: Any) -> int:
    """The next opening brace before "ph" or the key that begins the file's first event; end if there is none.

    Kineto begins its named rows and its events differently. No string of valid JSON has a brace and such a key, since
    the key's quotes would be escaped.
    """
    while i < end:
        if _item(b, i) == _OPEN_BRACE:
            key = _past_space(b, i + 1, end)
            for usual in (first_key, _USUAL_FIRST_KEY):
                if key + usual.size <= end and _same(b, key, usual, 0, usual.size):
                    return i
        i += 1
    return end


@_inlined
def key_hash(length: Any, first: Any, middle: Any, last: Any) -> Any:
    """A number for a key from its length and three of its bytes: the keys that are read differ in those."""
    return length * 7 + first * 3 + middle * 31 + last * 113


@_inlined
def _key_slot(b: Any, i: int, end: int, level: int, keys: Keys) -> Any:
    """The slot of the key b[i:end]; a free one if it isn't read."""
    mask = keys.lengths.size - 1
    first, middle, last = _item(b, i), _item(b, (i + end) >> 1), _item(b, end - 1)
    slot = key_hash(end - i, np.int64(first), np.int64(middle), np.int64(last)) & mask
    while _item(keys.lengths, slot) >= 0:
        alike = _item(keys.lengths, slot) == end - i and _item(keys.levels, slot) == level
        if alike and _same(keys.text, _item(keys.starts, slot), b, i, end - i):
            break
        slot = (slot + 1) & mask
    return slot


@_inlined
def _token_code(b: Any, i: int, end: int, h: Any, out: Out) -> Any:
    """The code of the token b[i:end] with hash h, which is new or known; -1 if there is no room for a new one."""
    mask = out.slots.size - 1
    slot = np.int64(h & np.uint64(mask))
    while _item(out.slots, slot) != _FREE:
        code = np.int64(_item(out.slot_codes, slot))
        alike = _item(out.slots, slot) == h and _item(out.token_lengths, code) == end - i
        if alike and _same(b, _item(out.token_starts, code), b, i, end - i):  # equal hashes can be constructed
            return code
        slot = (slot + 1) & mask
    code = out.state[TOKENS]
    if code >= out.token_starts.size:
        return -1
    out.slots[slot] = h
    out.slot_codes[slot] = code
    out.token_starts[code] = i
    out.token_lengths[code] = end - i
    out.state[TOKENS] = code + 1
    return code


@_inlined
def _number(b: Any, i: int, end: int, is_time: bool) -> tuple[int, int]:  # noqa: FBT001
    """(value, index after it) of a plain number, quoted or not; the index is negative for any other form.

    A time is microseconds with any number of decimals, and becomes nanoseconds by its digits, never through a float.
    """
    quoted = _item(b, i) == _QUOTE  # Ascend's torch_npu writes times as strings
    i += quoted
    negative = i < end and _item(b, i) == _MINUS
    i += negative
    first = i
    x: Any = 0
    while i < end and _ZERO <= _item(b, i) <= _NINE and i - first <= _MOST_DIGITS:
        x = x * 10 + (np.int64(_item(b, i)) - _ZERO)
        i += 1
    if i == first or i - first > _MOST_DIGITS or (is_time and x >= _LARGEST_US):
        return 0, _BROKEN
    if is_time:
        decimals = 0
        if i < end and _item(b, i) == _DOT:
            i += 1
            while i < end and _ZERO <= _item(b, i) <= _NINE:
                if decimals < 3:
                    x = x * 10 + (np.int64(_item(b, i)) - _ZERO)
                decimals += 1
                i += 1
        while decimals < 3:
            x *= 10
            decimals += 1
    if i >= end or (_item(b, i) != _QUOTE if quoted else not _ENDS_NUMBER[_item(b, i)]):
        return 0, _BROKEN
    return -x if negative else x, i + quoted


@_inlined
def _append(out: Out, column: int, row: int, value: Any) -> Any:
    """Note an argument of an event; returns which value of its column it is, -1 if there was no room."""
    nth = out.arg_counts[column]
    if nth >= out.arg_rows.shape[1]:
        return -1
    out.arg_rows[column, nth] = row
    out.arg_values[column, nth] = value
    out.arg_counts[column] = nth + 1
    return nth


@_inlined
def _read_number(b: Any, i: int, end: int, kind: int, column: int, row: int, out: Out) -> int:
    """Read a time or an integer at i; one in an odd form is noted for the exact, slow way. Returns as value_end."""
    value, after = _number(b, i, end, kind == TIME)
    if after >= 0:
        if kind == TIME:
            out.times[column, row] = value
        else:
            _append(out, column, row, value)
        return after
    after = value_end(b, i, end)
    if after <= i or _MEANS_NULL[_item(b, i)]:
        return after
    nth = _append(out, column, row, -1) if kind == INTEGER else -1
    n = out.state[ODD]
    if n < out.odd.shape[0] and (kind == TIME or nth >= 0):
        out.odd[n, 0], out.odd[n, 1], out.odd[n, 2] = row, column, nth
        out.odd[n, 3], out.odd[n, 4] = i, after - i
        out.state[ODD] = n + 1
    return after


@_inlined
def _read_text(b: Any, i: int, end: int, column: int, row: int, out: Out) -> int:
    """Read the token at i. Returns as value_end."""
    if _item(b, i) == _QUOTE:
        after = _string_end(b, i + 1, end) + 1
        if after > end:
            return _INCOMPLETE
    else:
        after = value_end(b, i, end)
        if after <= i or _MEANS_NULL[_item(b, i)]:
            return after
    code = _token_code(b, i, after, _hash(b, i, after), out)
    if column < out.codes.shape[0]:
        out.codes[column, row] = code
    elif code >= 0:
        _append(out, column, row, code)
    return after


@_inlined
def _read_value(b: Any, i: int, end: int, kind: int, column: int, row: int, out: Out) -> int:
    """Read the value at i as its key's type requires. Returns as value_end."""
    if kind == CODE:
        return _read_text(b, i, end, column, row, out)
    if kind == INTEGER or kind == TIME:
        return _read_number(b, i, end, kind, column, row, out)
    return value_end(b, i, end)


@_compiled
def _unusual(b: Any, i: int, end: int) -> int:
    """The anomaly of a value that doesn't begin like a text, list, object, number or boolean; 0 for null."""
    c = _item(b, i)
    if c == _SMALL_N and i + 1 < end and _item(b, i + 1) == _SMALL_U:
        return 0
    return _ONE_EMPTY if c == _COMMA or c == _CLOSE_BRACE else _ONE_WORD


@_inlined
def _oddity(b: Any, i: int, end: int) -> int:
    """The anomaly of the value at i, as a packed count."""
    if not _BEGINS_VALUE[_item(b, i)]:
        return _unusual(b, i, end)
    is_hex = _item(b, i) == _ZERO and i + 1 < end and _item(b, i + 1) | _SPACE == _SMALL_X
    return _ONE_HEX if is_hex else 0


@_inlined
def _read_event(b: Any, start: int, end: int, row: int, keys: Keys, out: Out) -> tuple[int, int]:
    """Read the event that begins at start: (index after it, _INCOMPLETE or _BROKEN; counts of anomalies)."""
    level, i, anomalies, last = 0, start + 1, 0, _OPEN_BRACE
    while i < end:
        c = _item(b, i)
        if c <= _SPACE:
            i += 1
        elif c == _COMMA:
            anomalies += _ONE_COMMA if last != 0 else 0
            last = _COMMA
            i += 1
        elif c == _CLOSE_BRACE:
            anomalies += _ONE_COMMA if last == _COMMA else 0
            last = 0
            i += 1
            if level == 0:
                return i, anomalies
            level -= 1
        elif c != _QUOTE:
            return _BROKEN, 0
        else:
            anomalies += _ONE_COMMA if last == 0 else 0
            last = 0
            key_end = _string_end(b, i + 1, end)
            if key_end >= end:
                return _INCOMPLETE, 0
            slot = _key_slot(b, i + 1, key_end, level, keys)
            colon = _past_space(b, key_end + 1, end)
            if colon < end and _item(b, colon) != _COLON:
                return _BROKEN, 0
            i = _past_space(b, colon + 1, end)
            if i >= end:
                return _INCOMPLETE, 0
            anomalies += _oddity(b, i, end)
            kind, column = _item(keys.kinds, slot), _item(keys.columns, slot)
            if kind == OBJECT and _item(b, i) == _OPEN_BRACE:
                level, i, last = level + 1, i + 1, _OPEN_BRACE
                continue
            i = _read_value(b, i, end, kind, column, row, out)
            if i < 0:
                return i, 0
    return _INCOMPLETE, 0


@_inlined
def _forget(out: Out, row: int) -> None:
    """Undo the entries of an event that was dropped. Its tokens stay: another event may use them."""
    for column in range(out.arg_counts.size):
        while out.arg_counts[column] and out.arg_rows[column, out.arg_counts[column] - 1] == row:
            out.arg_counts[column] -= 1
    while out.state[ODD] and out.odd[out.state[ODD] - 1, 0] == row:
        out.state[ODD] -= 1


@_compiled
def _closes_array(b: Any, i: int, end: int) -> int:
    """Whether the bracket at i closes the array: 1 yes, 0 it is damage, -1 the text ends before that is clear."""
    i = _past_space(b, i + 1, end)
    following = _past_space(b, i + 1, end)
    if i >= end:
        return -1
    if _item(b, i) == _OPEN_BRACKET:
        return 1  # another array
    if following >= end:
        return -1
    if _item(b, i) == _COMMA:
        return 1 if _item(b, following) == _QUOTE else 0
    if _item(b, i) == _CLOSE_BRACE:
        return (
            0
            if _item(b, following) == _COMMA
            or _item(b, following) == _CLOSE_BRACE
            or _item(b, following) == _CLOSE_BRACKET
            else 1
        )
    return 0


@_inlined
def _has_room(out: Out) -> bool:
    state = out.state
    return bool(
        state[EVENTS] < out.offsets.size
        and state[TOKENS] + TOKENS_PER_EVENT <= out.token_starts.size
        and state[ODD] + ODD_PER_EVENT <= out.odd.shape[0]
        and state[PLACES] < out.places.shape[0]
    )


@_inlined
def _count(state: Any, kind: int, counts: int, at: int) -> None:
    """Add one kind's share of an event's packed counts."""
    count = counts >> kind * _ANOMALY_BITS & (1 << _ANOMALY_BITS) - 1
    if count and state[ANOMALIES + kind] == 0:
        state[FIRST_ANOMALIES + kind] = at
    state[ANOMALIES + kind] += count


@_inlined
def _keep(b: Any, pos: int, end: int, keys: Keys, out: Out) -> int:
    """Read the event at pos into the next row, and keep it if it is whole and has a phase. Returns as value_end."""
    row = out.state[EVENTS]
    for column in range(out.codes.shape[0]):  # loops, since numba takes long to compile an assignment to a slice
        out.codes[column, row] = -1
    for column in range(out.times.shape[0]):
        out.times[column, row] = MISSING
    after, anomalies = _read_event(b, pos, end, row, keys, out)
    if after >= 0 and out.codes[PHASE, row] >= 0:
        out.offsets[row] = pos
        out.lengths[row] = after - pos
        out.state[EVENTS] = row + 1
        if anomalies:
            for kind in range(N_ANOMALIES):
                _count(out.state, kind, anomalies, pos)
        return after
    _forget(out, row)
    if after >= 0:
        if out.state[NAMELESS] == 0:
            out.state[FIRST_NAMELESS] = pos
        out.state[NAMELESS] += 1
    return after


@_compiled
def scan(b: Any, pos: int, end: int, is_last: bool, first_key: Any, keys: Keys, out: Out) -> int:  # noqa: FBT001
    """Read the events in b[pos:end] into `out`, and return the first byte that wasn't read.

    `is_last`: nothing follows, so what is incomplete stays so, and what lies beyond it is read. `first_key`: the quoted
    key that the first event of this file begins with.
    """
    out.state[STATUS] = MORE
    unfinished = 0
    while True:
        while pos < end and (_item(b, pos) <= _SPACE or _item(b, pos) == _COMMA):
            pos += 1
        if pos >= end:
            return pos
        if not _has_room(out):
            out.state[STATUS] = FULL
            return pos
        after = _BROKEN
        if _item(b, pos) == _OPEN_BRACE:
            after = _keep(b, pos, end, keys, out)
            if after >= 0:
                pos = after
                continue
            if after == _INCOMPLETE:
                unfinished += 1
                if not is_last or unfinished > _MOST_UNFINISHED:
                    out.state[STATUS] = CUT if is_last else MORE
                    return pos
        elif _item(b, pos) == _CLOSE_BRACKET:
            closes = _closes_array(b, pos, end)
            if closes == 1 or (closes == -1 and is_last):
                out.state[STATUS] = ARRAY_END
            if closes != 0:
                return pos
        following = _next_event(b, pos + 1, end, first_key)
        if following == end:
            if is_last:
                out.state[STATUS] = STUCK if after == _BROKEN else CUT
            return pos  # more text will show
        place = out.state[PLACES]
        out.places[place, 0], out.places[place, 1] = pos, following
        out.state[PLACES] = place + 1
        pos = following
