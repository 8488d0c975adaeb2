"""Texts that aren't UTF-8.

A whole file may be UTF-16 or UTF-32: its byte order mark shows it, or the zero byte next to its first bracket.
Otherwise it is UTF-8, in which single texts may have another encoding: torch up to 2.5 wrote in the encoding of the
locale, on Windows mostly cp1252, and kineto before 7ae1ce85 wrote names from freed memory (kineto#80).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator

from ...names.regex import regex
from ...trace.model import Diagnostic

_BYTE_ORDER_MARKS = {  # UTF-32 first: its mark begins like that of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
_BRACKETS = b"{["
# Letters and the signs that occur in words: a text with any other byte was damaged, not written on Windows.
_WRITTEN = frozenset((set(range(0xC0, 0xFF)) - {0xD7, 0xF7}) | set(b"\x80\x84\x91\x92\x93\x94\x95\x96\x97\x99")) | {
    *b"\xa7\xa9\xab\xae\xb0\xb1\xb2\xb3\xb5\xb7\xbb"
}


_HALVES = regex("[\ud800-\udfff]")


def whole_characters(text: str) -> str:
    """The text with U+FFFD for each lone surrogate: JSON can escape one, no encoding can represent it."""
    return text if text.isascii() else _HALVES.sub("\N{REPLACEMENT CHARACTER}", text)


def in_utf8(blocks: Iterable[bytes], diagnostics: list[Diagnostic]) -> Iterator[bytes]:
    """The blocks as UTF-8; conversions are added to the diagnostics. Offsets refer to this text."""
    blocks = iter(blocks)
    first = next(blocks, b"")
    encoding = _encoding(first)
    if first.startswith(codecs.BOM_UTF8):
        words = "The file begins with a byte order mark, which JSON doesn't allow; other tools may refuse it."
        diagnostics.append(Diagnostic("byte_order_mark", 1, words, 0, level="note"))
    if encoding is None:
        yield first
        yield from blocks
        return
    words = f"The file is {encoding} text, which JSON doesn't allow; it was converted. Other tools may refuse it."
    diagnostics.append(Diagnostic("converted_encoding", 1, words, level="note"))
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    yield decoder.decode(first).encode()
    for block in blocks:
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


def _encoding(start: bytes) -> str | None:
    """The encoding that the first bytes show; None for UTF-8."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if start.startswith(mark):
            return encoding
    if len(start) > 3 and start[0] in _BRACKETS and start[1] == 0 and start[3] == 0:
        return "UTF-16-LE" if start[2] else "UTF-32-LE"
    if len(start) > 3 and start[0] == 0 and start[1] in _BRACKETS and start[2] == 0:
        return "UTF-16-BE"
    return None


def is_cp1252(text: bytes) -> bool:
    """Whether a text that isn't UTF-8 was written on Windows: all its letters make sense there, and none in UTF-8."""
    text = text.strip(b'"')
    odd = [byte for byte in text if byte >= 0x80]
    if not odd or 2 * len(odd) > len(text) or not _WRITTEN.issuperset(odd):
        return False
    try:
        text.decode()
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data" and error.end == len(text)
        return not is_cut and not any(ord(c) >= 0x80 for c in text.decode("utf-8", "ignore"))
    return False


def decode(text: bytes) -> str:
    """The text: UTF-8, or cp1252 if it makes sense as such, or UTF-8 with what is damaged replaced."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        return text.decode("cp1252" if is_cp1252(text) else "utf-8", "replace")
