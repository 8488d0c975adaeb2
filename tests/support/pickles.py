"""Hostile pickles: each opcode that imports, calls, builds or persists, and files that ask for more than they have."""

from __future__ import annotations

import pickle
import pickletools
import struct
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

OF_VALUES = {
    *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "DUP", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1"),
    *("BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "EMPTY_LIST"),
    *("EMPTY_DICT", "EMPTY_TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
    *("BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "MEMOIZE", "GLOBAL", "REDUCE"),
}
"""The opcodes that are read; GLOBAL names a function of torch's typed lists, and REDUCE calls none."""

REFUSED = [opcode for opcode in pickletools.opcodes if opcode.name not in OF_VALUES]
PROTOCOLS = (2, 4, 5)
_ARGUMENT = {
    "BININT1": b"\1",
    "INST": b"os\nsystem\n",
    "PERSID": b"1\n",
    "EXT1": b"\1",
    "EXT2": b"\1\0",
    "EXT4": b"\1\0\0\0",
    "INT": b"1\n",
    "LONG": b"1L\n",
    "FLOAT": b"1.0\n",
    "STRING": b"'a'\n",
    "UNICODE": b"a\n",
    "GET": b"0\n",
    "PUT": b"0\n",
    "BINSTRING": b"\1\0\0\0a",
    "SHORT_BINSTRING": b"\1a",
    "BINBYTES": b"\1\0\0\0a",
    "SHORT_BINBYTES": b"\1a",
    "BINBYTES8": b"\1\0\0\0\0\0\0\0a",
    "BYTEARRAY8": b"\1\0\0\0\0\0\0\0a",
}
_BEFORE = {
    "alone": b"",
    "a text": b"\x8c\1a",
    "two texts": b"\x8c\2os\x8c\6system",
    "a list": b"](K\1e",
    "a dict": b"}",
    "a mark and a text": b"(\x8c\1a",
    "a function": b"ctorch.jit._pickle\nbuild_intlist\n)",
    "a known dict": b"}(\x8c\6actionK\1\x8c\4sizeK\2u",
}
FUNCTIONS = (
    "os\nsystem",
    "builtins\neval",
    "posix\nsystem",
    "torch.jit._pickle\nbuild_intlists",
    "torch\n_utils",
    "\n",
    "a" * 200,
)
FUNCTIONS += ("torch.jit._pickle.build_intlist\n", "kinetoscope_tb\nread", "torch.jit._pickle\nrestore_type_tag2")


def text(value: str) -> bytes:
    """The opcode of a text."""
    return b"\x8c" + bytes([len(value)]) + value.encode()


def refused_opcodes() -> Iterator[tuple[str, bytes]]:
    """Every opcode that isn't one of values, behind values that it would take, in each protocol."""
    for opcode in REFUSED:
        for where, before in _BEFORE.items():
            code = opcode.code.encode("latin-1") + _ARGUMENT.get(opcode.name, b"")
            protocol = PROTOCOLS[len(where) % 3]
            yield f"{opcode.name} after {where}", b"\x80" + bytes([protocol]) + before + code + b"."


def functions() -> Iterator[tuple[str, bytes]]:
    """Functions that aren't torch's typed lists, called or not; and calls of what isn't a function."""
    for name in FUNCTIONS:
        for call in (b".", b")R.", b"(\x8c\1atR.", b"q\0h\0)R."):
            yield f"{name!r} {call!r}", b"\x80\2c" + name.encode() + b"\n" + call
    known = b"\x80\2ctorch.jit._pickle\nbuild_intlist\n"
    yield "a function as a value", known + b"."
    yield "a function in a list", b"\x80\2]" + known[2:] + b"a."
    yield "a function with no argument", known + b")R."
    yield "a function with a list for arguments", known + b"]R."
    yield "a call of a list", b"\x80\2]K\1\x85R."
    yield "a call of a text", b"\x80\2" + text("os.system") + b"K\1\x85R."


def too_large() -> Iterator[tuple[str, bytes]]:
    """Lengths, numbers of the memo, and depths beyond the file."""
    for number in (2**8, 2**16, 2**27, 2**30, 2**31 - 1, 2**31, 2**32 - 1):
        put, get = (code + struct.pack("<I", number) for code in (b"r", b"j"))
        yield f"LONG_BINPUT {number}", b"\x80\2N" + put + b"."
        yield f"LONG_BINGET {number}", b"\x80\2" + get + b"."
        yield f"LONG_BINPUT {number} of {number} more", b"\x80\2N" + put + get + b"\x86."
    doubling = b"".join(b"r" + struct.pack("<I", 2**n - 1) + b"\x94" for n in range(8, 32))
    yield "LONG_BINPUT at each end of the memo", b"\x80\4N" + doubling + b"."
    yield (
        "numbers far apart",
        b"\x80\4N" + b"".join(b"r" + struct.pack("<I", 4096 + 99991 * n) for n in range(9000)) + b".",
    )
    for opcode in (b"X", b"\x8b", b"\x8d", b"\x95", b"\x8c", b"\x8a"):
        width = {b"X": 4, b"\x8b": 4, b"\x8d": 8, b"\x95": 8}.get(opcode, 1)
        for size in sorted({255, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1}):
            if size < 2 ** (8 * width):
                yield f"{opcode!r} of {size} bytes", b"\x80\4" + opcode + size.to_bytes(width, "little") + b"abc."
    for name, opened in {"lists": b"](", "empty lists": b"]", "marks": b"(", "dicts": b"}(K\1"}.items():
        for deep in (100, 10**4, 10**6):
            yield f"{deep} {name}", b"\x80\4" + opened * deep + b"."
    closed = {
        "lists": (b"]", b"a"),
        "lists in lists": (b"](", b"e"),
        "tuples": (b")", b"\x85"),
        "dicts": (b"}K\1", b"s"),
    }
    for name, (begin, end) in closed.items():
        for deep in (62, 66, 1000, 10**6):
            nested = begin + end * deep if name == "tuples" else begin * (deep + 1) + end * deep
            yield f"{deep} closed {name}", b"\x80\4" + nested + b"."


def shared_values() -> Iterator[tuple[str, bytes]]:
    """Values that are inside each other, or inside many others."""
    for times in (8, 25, 60, 1000, 10**5):
        yield f"a tuple of itself {times} times", b"\x80\2)" + b"2\x86" * times + b"."
        yield f"a list of the last one twice {times} times", b"\x80\2]" + b"q\0]h\0ah\0a" * times + b"."
    yield "a list in itself", b"\x80\2]q\0h\0a."
    yield "a list in itself by APPENDS", b"\x80\2]q\0(h\0e."
    yield "a dict in itself", b"\x80\2}q\0K\1h\0s."
    yield "two lists in each other", b"\x80\2]q\0]q\1h\0a0h\0h\1a."
    yield "a dict in its list", b"\x80\2]q\0}q\1K\1h\0s0h\0h\1a."
    yield "a key that is a list", b"\x80\2}]K\1s."
    yield "a key that holds a list", b"\x80\2}]\x85K\1s."
    yield "a key that is a dict", b"\x80\2}}K\1s."
    yield "a list that grows in its tuple", b"\x80\2]q\0\x85h\0K\1a0."
    known = b"}q\0(" + b"".join(text(key) + b"K\1" for key in ("action", "size", "addr")) + b"u"
    yield "a known dict set twice", b"\x80\2" + known + text("frames") + b"h\0s."
    yield "a known dict in itself", b"\x80\2}q\0(" + text("action") + b"h\0" + text("size") + b"h\0u."
    frame = b"}(" + b"".join(text(key) + b"K\1" for key in ("filename", "line", "name")) + b"u"
    yield "frames in a list of frames", b"\x80\2](" + frame + b"e(" + frame + b"]" + frame + b"ae."
    yield "a thousand frames twice", b"\x80\2](" + frame * 1000 + b"e(" + frame * 1000 + b"e."


def out_of_order() -> Iterator[tuple[str, bytes]]:
    """Opcodes without the values that they take."""
    for opcode in pickletools.opcodes:
        if opcode.name in OF_VALUES:
            code = opcode.code.encode("latin-1")
            for where, before in {
                "alone": b"",
                "after a mark": b"(",
                "after a number": b"K\1",
                "after marks": b"](((",
            }.items():
                yield f"{opcode.name} {where}", b"\x80\2" + before + code + b"\0\0\0\0\0\0\0\0."
    yield "nothing", b""
    yield "no end", b"\x80\4N"
    yield "an odd number of keys", b"\x80\2}(K\1K\2K\3u."
    yield "a value behind its end", b"\x80\2N.N."
    yield "a protocol that is unknown", b"\x80\xffN."
    yield "a text that isn't UTF-8", b"\x80\4\x8c\3\xff\xfe\x80."


def hostile() -> dict[str, bytes]:
    """All of them by name."""
    return dict(chain(refused_opcodes(), functions(), too_large(), shared_values(), out_of_order()))


def typed_lists(value: dict[str, Any]) -> bytes:
    """A dict as torch's pickler in C++ writes it: protocol 2, lists of integers by a function."""
    items = b""
    for key, numbers in value.items():
        integers = b"".join(b"J" + struct.pack("<i", number) for number in numbers)
        built = b"ctorch.jit._pickle\nbuild_intlist\n](" + integers + b"e\x85R"
        items += b"X" + struct.pack("<I", len(key)) + key.encode() + built
    whole = b"ctorch.jit._pickle\nrestore_type_tag\n}(" + items + b"u" + b"X\x0f\0\0\0Dict[str, Tensor"[:20] + b"\x86R."
    return b"\x80\2" + whole


def truncated(data: bytes, count: int) -> Iterator[bytes]:
    """Files that end at places spread over a pickle."""
    for number in range(count):
        yield data[: 2 + number * (len(data) - 2) // count]


def dumped(value: Any, protocol: int) -> bytes:
    """A pickle of a value."""
    return pickle.dumps(value, protocol)
