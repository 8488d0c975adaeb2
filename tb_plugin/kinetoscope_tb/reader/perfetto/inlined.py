"""What the scanner of Perfetto's protobuf shares with that of JSON (tb_plugin/native/scanner.h), compiled by numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from ...arrays.jit import compiled
from ..scan.scanner import ODD, TOKENS, Keys, Out

_SEED, _PRIME, _MIX, _BYTE, _FREE, _ONE = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 32, 8, 0, 1))

F = TypeVar("F", bound=Callable[..., Any])

# Without numba's reference counting, which would count each array at each call: that is five times slower. What is
# compiled here only borrows arrays and creates none, so nothing needs to be counted.
_OPTIONS: dict[str, Any] = {"nogil": True, "_nrt": False}


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
def _forget(out: Out, row: int) -> None:
    """Undo the entries of an event that was dropped. Its tokens stay: another event may use them."""
    for column in range(out.arg_counts.size):
        while out.arg_counts[column] and out.arg_rows[column, out.arg_counts[column] - 1] == row:
            out.arg_counts[column] -= 1
    while out.state[ODD] and out.odd[out.state[ODD] - 1, 0] == row:
        out.state[ODD] -= 1
