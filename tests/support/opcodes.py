"""Pickles with damage between whole opcodes, and what Python's own unpickler says of those that are read."""

from __future__ import annotations

import io
import pickle
import pickletools
import random
import struct
from typing import Any

from .pickles import OF_VALUES

_INTEGERS = (0, 1, 127, 128, 255, 256, 65535, 65536, 2**27, 2**31 - 1)
_OPCODES = [opcode for opcode in pickletools.opcodes if opcode.name in OF_VALUES - {"GLOBAL", "PROTO", "STOP", "FRAME"}]


def opcodes(data: bytes) -> list[bytes]:
    """The opcodes of a pickle, each with its argument; without FRAME, whose lengths wouldn't fit any more."""
    places = [at for _, _, at in pickletools.genops(data)]
    codes = [data[begin:end] for begin, end in zip(places, [*places[1:], len(data)], strict=True)]
    return [code for code in codes if not code.startswith(pickle.FRAME)]


def random_opcode(numbers: random.Random) -> bytes:
    """An opcode of values with an argument that has its form."""
    opcode = numbers.choice(_OPCODES)
    code = opcode.code.encode("latin-1")
    text = numbers.choice((b"", b"a", b"size", b"addr", b"frames", "é".encode(), numbers.randbytes(3)))
    number = numbers.choice(_INTEGERS)
    arguments = {
        "BININT": lambda: struct.pack("<i", number),
        "BININT1": lambda: struct.pack("<B", number & 255),
        "BININT2": lambda: struct.pack("<H", number & 65535),
        "LONG1": lambda: bytes([len(text)]) + text,
        "LONG4": lambda: struct.pack("<i", len(text)) + text,
        "BINFLOAT": lambda: struct.pack(">d", number / 3),
        "BINUNICODE": lambda: struct.pack("<I", len(text)) + text,
        "SHORT_BINUNICODE": lambda: bytes([len(text)]) + text,
        "BINUNICODE8": lambda: struct.pack("<Q", len(text)) + text,
        "BINPUT": lambda: bytes([number & 255]),
        "BINGET": lambda: bytes([number & 255]),
        "LONG_BINPUT": lambda: struct.pack("<I", number),
        "LONG_BINGET": lambda: struct.pack("<I", number),
    }
    return code + arguments[opcode.name]() if opcode.arg else code


def with_other_opcodes(codes: list[bytes], numbers: random.Random) -> bytes:
    """A pickle with one to five opcodes lost, repeated, swapped, replaced or added, or with another argument."""
    codes = list(codes)
    for _ in range(numbers.choice((1, 1, 2, 5))):
        at, other = numbers.randrange(1, len(codes)), numbers.randrange(1, len(codes))
        kind = numbers.randrange(6)
        if kind == 0:
            del codes[at]
        elif kind == 1:
            codes.insert(at, codes[other])
        elif kind == 2:
            codes[at], codes[other] = codes[other], codes[at]
        elif kind == 3:
            codes[at] = random_opcode(numbers)
        elif kind == 4:
            codes.insert(at, random_opcode(numbers))
        elif len(codes[at]) > 1:
            codes[at] = codes[at][:-1] + numbers.randbytes(1)
    return b"".join(codes)


class _Unpickler(pickle._Unpickler):
    """Python's own unpickler, whose memo is a dict; of code it knows torch's typed lists."""

    def find_class(self, module: str, name: str) -> Any:
        """The function of a typed list returns its argument."""
        return lambda value, *_: value

    def persistent_load(self, pid: Any) -> Any:
        """Refused.

        Raises:
            pickle.UnpicklingError: Always.
        """
        raise pickle.UnpicklingError(pid)


def unpickled(data: bytes) -> Any:
    """What Python reads in a pickle that our reader took, so that all it names are torch's typed lists."""
    return _Unpickler(io.BytesIO(data)).load()


def is_same(first: Any, second: Any, pairs: set[tuple[int, int]]) -> bool:
    """Whether two values are the same, with texts whose bytes aren't UTF-8 apart; each pair is compared once."""
    if type(first) is not type(second):
        return False
    if not isinstance(first, (list, tuple, dict)):
        return repr(first) == repr(second) or (isinstance(first, str) and "\ufffd" in first)
    if (id(first), id(second)) in pairs:
        return True
    pairs.add((id(first), id(second)))
    sides = [[*value, *value.values()] if isinstance(value, dict) else value for value in (first, second)]
    return len(sides[0]) == len(sides[1]) and all(is_same(a, b, pairs) for a, b in zip(*sides, strict=True))
