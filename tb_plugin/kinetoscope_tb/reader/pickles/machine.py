"""Opcodes of a pickle (protocols 2 to 5) → flat arrays, in one compiled pass: `tb_plugin/native/pickle.c`.

Values are words of 64 bits: a kind in the low four bits, the value above them. Only dicts, lists, tuples, texts,
numbers, bools and None are read, and torch's typed lists, whose functions return their argument (torch/jit/_pickle.py);
any other opcode ends the reading, by its name. Memory is a small multiple of the text, and time is linear in it.
"""

from __future__ import annotations

import pickletools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.native import SEED, Array, Function

Words = NDArray[np.int64]

PROTOCOL = b"\x80"
"""The first byte of a pickle since protocol 2; the second one is the protocol."""

NAME_BITS = 4

_walk = Function("walk_pickle")
_fill_slots = Function("fill_slots")
_items_of = Function("items_of")
_set_owner = Function("set_owner")

_STATE = (
    *("at", "outcome", "needed", "left_out_frames", "values", "marks", "objects", "words", "wide", "text_bytes"),
    *("texts", "frames", "stacks", "stack_frames", "records", "memo", "scattered"),
)
_AT = {name: index for index, name in enumerate(_STATE)}
_STATE_SIZE = len(_STATE) + 8 + 64 + 64
_SCATTERED = 2 << 12
_SMALL, _SMALL_TEXT = 8, 512  # more than what any opcode adds without saying how much
_OPCODES = {opcode.code.encode("latin-1")[0]: opcode.name for opcode in pickletools.opcodes}
_LONGEST_NAME = 64
_RECORD_KIND_BITS = 3  # of the head of a record
_RECORDS = 1 << 13  # that are read before they are taken


class Kind(IntEnum):
    """Kinds of words."""

    MISSING = 0
    NONE = 1
    BOOL = 2
    INTEGER = 3
    SIGNED = 4
    UNSIGNED = 5
    FLOAT = 6
    TEXT = 7
    LIST = 8
    DICT = 9
    TUPLE = 10
    FUNCTION = 11
    RECORD = 12
    STACK = 13


class _Outcome(IntEnum):
    MORE_TEXT = 0
    ENDED = 1
    ROOM = 2


_PROBLEMS = {
    3: "its opcode {opcode} is refused: it isn't one of plain values",
    4: "its opcode {opcode} of {name} is refused: it names code",
    5: "at its opcode {opcode}, values are nested over 64 deep",
    6: "its opcode {opcode} changes a value that is already inside another, which would make a cycle",
    7: "its opcode {opcode} needs a value that isn't there",
    8: "its opcode {opcode} asks for a value that wasn't stored",
    9: "its opcode {opcode} doesn't fit the value before it",
    10: "its opcode {opcode} has a number of more than 64 bits",
    11: "its opcode {opcode} has a text of more than 16 MiB",
    12: "at its opcode {opcode} it has more values than are read",
}


class PickleError(ValueError):
    """A pickle that isn't read any further, with the reason and the place."""


@dataclass(frozen=True)
class Schema:
    """Dicts that become records, by their keys.

    Args:
        kinds: Of each kind of record its columns, in order; the first kind is a frame of a stack, of three columns,
            and a list of frames is a stack. A dict is of the first kind of which it has all `required` keys.
        required: Of each kind the keys that it must have.
    """

    kinds: Sequence[Sequence[str]] = ()
    required: Sequence[Sequence[str]] = ()

    @property
    def keys(self) -> list[str]:
        """All keys, each once."""
        return list(dict.fromkeys(key for columns in (*self.kinds, *self.required) for key in columns))

    @property
    def width(self) -> int:
        """Words of a record: its kind, and a column each."""
        return 1 + max(map(len, self.kinds)) if self.kinds else 0


class Machine:
    """Walks a pickle that comes in blocks.

    Args:
        schema: The dicts that become records.

    Attributes:
        read_bytes: How much of the pickle was walked.
        is_over: Whether its end was reached.
    """

    def __init__(self, schema: Schema | None = None) -> None:
        self._schema = schema or Schema()
        keys = self._schema.keys
        if len(keys) > 63:
            raise ValueError("a schema has 63 keys at most")
        self._keys, self._width = len(keys), self._schema.width
        self._required = np.array([sum(1 << keys.index(k) for k in r) for r in self._schema.required], np.int64)
        columns = [
            columns.index(key) if key in columns else -1 for columns in map(list, self._schema.kinds) for key in keys
        ]
        self._columns = np.array(columns, np.int32)
        self._state = np.zeros(_STATE_SIZE, np.int64)
        self._arrays: dict[str, Array] = _empty_arrays(self._width)
        self._rest = b""
        self._root: int | None = None
        self.read_bytes, self.is_over = 0, False
        if keys:
            self._intern(keys)

    def _intern(self, keys: Sequence[str]) -> None:
        """Make the keys the first texts."""
        texts = [key.encode() for key in keys]
        self._walk(b"".join(b"\x8c" + bytes([len(text)]) + text + b"0" for text in texts))
        self.read_bytes = 0

    def free_memo(self) -> None:
        """Free what only walking needs; `feed` and `end` can't be called any more."""
        self._root = self.root
        for name in self._arrays:
            if name in _OF_WALK:
                self._arrays[name] = self._arrays[name][:0].copy()

    def feed(self, block: bytes) -> None:
        """Walk the next block.

        Raises:
            PickleError: The pickle has something else than plain values; what was read before stays.
        """
        if not self.is_over:
            self._rest = self._walk(self._rest + block if self._rest else block)

    def end(self) -> None:
        """Put what is still open into what holds it: the text has ended, perhaps too early."""
        self._call(b"", is_over=True)

    def _walk(self, text: bytes) -> bytes:
        """Walk a text; returns its rest, which is a part of an opcode.

        Raises:
            PickleError: As above.
        """
        self._state[_AT["at"]] = 0
        outcome = self._call(text)
        at = int(self._state[_AT["at"]])
        self.read_bytes += at
        self.is_over = outcome == _Outcome.ENDED
        if outcome > _Outcome.ROOM:
            raise PickleError(f"{_problem(outcome, text[at : at + _LONGEST_NAME])} (at byte {self.read_bytes})")
        return text[at:]

    def _call(self, text: bytes, *, is_over: bool = False) -> int:
        data = np.frombuffer(text, np.uint8)
        while True:
            outcome = _walk(
                *(data, is_over, self._keys, self._width, SEED, self._required, self._columns, self._state),
                tuple(self._arrays.values()),
            )
            if outcome != _Outcome.ROOM:
                return outcome
            self.make_room()
            self._grow()

    def make_room(self) -> None:
        """Called before arrays grow: a subclass may take the records, and forget them."""

    def _count(self, name: str) -> int:
        return int(self._state[_AT[name]])

    def _grow(self) -> None:
        """Double each array that lacks room for what the next opcode adds."""
        more = self._count("needed") + _SMALL_TEXT
        for name, (counter, factor) in _COUNTERS.items():
            array, count = self._arrays[name], self._count(counter) * factor
            least = count + more
            if name.endswith("slots"):
                least = 2 * (count + _SMALL)
            if name == "records":
                least = (count + _SMALL) * self._width
            if array.size < least:
                self._arrays[name] = self._larger(name, array, max(2 * array.size, least), count)

    def _larger(self, name: str, array: Array, size: int, count: int) -> Array:
        if name.endswith("slots"):
            slots = np.full(1 << (size - 1).bit_length(), -1, np.int32)
            _fill_slots(self._arrays[name.replace("slots", "hashes")][:count], slots)
            return slots
        larger = np.zeros(size, array.dtype)  # the memo's unused numbers are MISSING
        larger[: array.size] = array
        return larger

    # ---- what was read ----

    @property
    def left_out_frames(self) -> int:
        """Frames of stacks beyond the first thousand of each."""
        return self._count("left_out_frames")

    @property
    def root(self) -> int:
        """The word of the whole value; MISSING if there is none."""
        if self._root is not None:
            return self._root
        count = self._count("values")
        word = int(self._arrays["values"][count - 1]) if count else int(Kind.MISSING)
        return self.word_of_contents(word)

    def word_of_contents(self, word: int) -> int:
        """The word of what a dict or a list has become."""
        if word & 15 in (Kind.LIST, Kind.DICT):
            what = int(self._arrays["facts"][word >> NAME_BITS]) & 3
            head = int(self._arrays["heads"][word >> NAME_BITS])
            if what == 2:
                kind, number = head & (1 << _RECORD_KIND_BITS) - 1, head >> _RECORD_KIND_BITS
                return (number << NAME_BITS | kind) << NAME_BITS | Kind.RECORD
            return head << NAME_BITS | Kind.STACK if what == 3 else word
        return word

    def items(self, word: int) -> Words:
        """The words in a list, a tuple or a dict (of that keys and values in turn)."""
        head = int(self._arrays["heads"][word >> NAME_BITS])
        count = _items_of(self._arrays["words"], head, np.empty(0, np.int64))
        items = np.empty(count, np.int64)
        _items_of(self._arrays["words"], head, items)
        return items

    def set_owner(self, word: int, kind: int, value: int, owners: NDArray[np.int32]) -> int:
        """Set the owner of each record of a kind in a list or a tuple.

        Args:
            word: The list or tuple.
            kind: The kind.
            value: The owner.
            owners: Of each record of this kind, by its number.

        Returns:
            How many other items it has.
        """
        head = int(self._arrays["heads"][word >> NAME_BITS])
        return _set_owner(self._arrays["words"], head, kind, value, owners)

    def text(self, word: int) -> str:
        """A text; bytes that aren't UTF-8 are replaced."""
        ends, row = self._arrays["text_ends"], word >> NAME_BITS
        begin = int(ends[row - 1]) if row else 0
        return self._arrays["text_bytes"][begin : int(ends[row])].tobytes().decode("utf-8", "replace")

    def texts(self) -> list[str]:
        """All texts, by row."""
        ends = self._arrays["text_ends"][: self._count("texts")].tolist()
        data = self._arrays["text_bytes"][: self._count("text_bytes")].tobytes()
        return [data[a:b].decode("utf-8", "replace") for a, b in zip([0, *ends], ends, strict=False)]

    @property
    def wide(self) -> Words:
        """Numbers of 64 bits."""
        return self._arrays["wide"][: self._count("wide")]

    @property
    def frames(self) -> Words:
        """The frames of stacks, of three words each."""
        return self._arrays["frames"][: 3 * self._count("frames")].reshape(-1, 3)

    @property
    def stacks(self) -> tuple[NDArray[np.int32], Words]:
        """(rows of frames of all stacks in turn, where each stack ends there)."""
        ends = self._arrays["stack_ends"][: self._count("stacks")]
        return self._arrays["stack_frames"][: self._count("stack_frames")], ends

    def taken_records(self) -> Words:
        """The records since the last call, a row each: the kind and the columns, as words.

        The next block overwrites them.
        """
        count = self._count("records")
        self._state[_AT["records"]] = 0
        return self._arrays["records"][: count * self._width].reshape(count, self._width)


_COUNTERS: Mapping[str, tuple[str, int]] = {
    "values": ("values", 1),
    "memo": ("memo", 1),
    "scattered": ("scattered", 0),
    "heads": ("objects", 1),
    "facts": ("objects", 1),
    "words": ("words", 1),
    "wide": ("wide", 1),
    "text_bytes": ("text_bytes", 1),
    "text_ends": ("texts", 1),
    "text_hashes": ("texts", 1),
    "text_slots": ("texts", 1),
    "frames": ("frames", 3),
    "frame_hashes": ("frames", 1),
    "frame_slots": ("frames", 1),
    "stack_frames": ("stack_frames", 1),
    "stack_ends": ("stacks", 1),
    "stack_hashes": ("stacks", 1),
    "stack_slots": ("stacks", 1),
    "records": ("records", 1),
}
"""The arrays in the order of the compiled function: what counts their use, and values of each."""

_OF_WALK = {
    "memo",
    "facts",
    "records",
    *(f"{of}_{use}" for of in ("text", "frame", "stack") for use in ("hashes", "slots")),
}

_DTYPES: Mapping[str, Any] = {
    "memo": np.int32,
    "heads": np.int32,
    "facts": np.int16,
    "text_bytes": np.uint8,
    "stack_frames": np.int32,
}


def _empty_arrays(width: int) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for name in _COUNTERS:
        if name.endswith("slots"):
            arrays[name] = np.full(2048, -1, np.int32)
        else:
            size = _SCATTERED if name == "scattered" else width * _RECORDS if name == "records" else 1024
            arrays[name] = np.zeros(size, _DTYPES.get(name, np.int64))
    return arrays


def _problem(outcome: int, text: bytes) -> str:
    name = _OPCODES.get(text[0], f"0x{text[0]:02x}") if text else "?"
    function = ".".join(part.decode("ascii", "replace") for part in text[1:].split(b"\n")[:2])
    return _PROBLEMS[outcome].format(opcode=name, name=function)
