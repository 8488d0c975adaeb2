"""gzip data, inflated member after member (RFC 1952).

The checksum and the length after each member are compared here, after its text was passed on: isal would raise instead,
and lose the text that it has buffered.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from isal import igzip_lib

MAGIC = b"\x1f\x8b"

_READ_BYTES = 1 << 16  # of compressed data
_TEXT_BYTES = 1 << 17  # inflated at once: damage may cost this much text in addition
_FIRST_BYTES, _GROWTH = 1 << 9, 8  # a short member must not copy data of the next ones
_FIXED_HEADER, _TRAILER = 10, struct.Struct("<II")
_HAS_HEADER_CHECKSUM, _HAS_EXTRA, _HAS_NAME, _HAS_COMMENT = 2, 4, 8, 16
_DEFLATE = 8


@dataclass
class GzipDamage:
    """What is wrong with gzip data; offsets refer to the compressed file.

    Attributes:
        problem: Why the data after this point couldn't be inflated, and where; empty if all was.
        wrong_trailers: Number of members whose checksum or length doesn't match their trailer.
        first_wrong: What is wrong with the first of them, and where.
        offset: How many bytes were consumed before the problem.
    """

    problem: str = ""
    wrong_trailers: int = 0
    first_wrong: str = ""
    offset: int = field(default=0, compare=False)


class _Compressed:
    """Compressed data from front to back."""

    def __init__(self, read: Callable[[int], bytes], start: bytes) -> None:
        self._read = read
        self._data, self._at, self._end = start, 0, len(start)

    @property
    def offset(self) -> int:
        """How many bytes were consumed."""
        return self._end - len(self._data) + self._at

    def _fill(self) -> bool:
        """Read more if nothing is left; False at the end of the file."""
        if self._at == len(self._data):
            self._data, self._at = self._read(_READ_BYTES), 0
            self._end += len(self._data)
        return self._at < len(self._data)

    def take(self, at_most: int) -> bytes:
        """The next bytes; none only at the end of the file."""
        self._fill()
        part = self._data[self._at : self._at + at_most]
        self._at += len(part)
        return part

    def give_back(self, count: int) -> None:
        """Return the last bytes to the input."""
        self._at -= count

    def exactly(self, count: int) -> bytes | None:
        """Exactly this many bytes; None if there are fewer."""
        parts = []
        while count and (part := self.take(count)):
            parts.append(part)
            count -= len(part)
        return None if count else b"".join(parts)

    def skip_zeros(self) -> bool:
        """Skip padding; False at the end of the file."""
        while self._fill():
            rest = len(self._data[self._at :].lstrip(b"\0"))
            self._at = len(self._data) - rest
            if rest:
                return True
        return False

    def skip_text(self) -> bool:
        """Skip to after the next zero byte; False if there is none."""
        while self._fill():
            zero = self._data.find(b"\0", self._at)
            self._at = zero + 1 if zero >= 0 else len(self._data)
            if zero >= 0:
                return True
        return False


def inflate(read: Callable[[int], bytes], start: bytes, damage: GzipDamage) -> Iterator[bytes]:
    """The text of all members in pieces. Zeros between members are padding.

    Args:
        read: Returns the next bytes of the file.
        start: Its first bytes, which were read already.
        damage: Collects what is wrong.
    """
    source = _Compressed(read, start)
    while True:
        at = source.offset
        damage.problem = _skip_header(source, at)
        if not damage.problem:
            yield from _member(source, damage)
        damage.offset = source.offset
        if damage.problem or not source.skip_zeros():
            return


def _skip_header(source: _Compressed, at: int) -> str:
    """Skip a member's header; return what is wrong with it."""
    cut_off = f"ends at byte {at}, inside the header of its {'first' if at == 0 else 'next'} member"
    magic = source.exactly(len(MAGIC))
    if magic is not None and magic != MAGIC:
        return f"ends at byte {at}: what follows isn't gzip"
    header = source.exactly(_FIXED_HEADER - len(MAGIC))
    if header is None:
        return cut_off
    method, flags = header[0], header[1]
    if method != _DEFLATE:
        return f"is damaged at byte {at}: unknown compression method ({method})"
    is_whole = True
    if flags & _HAS_EXTRA:
        length = source.exactly(2)
        is_whole = length is not None and source.exactly(int.from_bytes(length, "little")) is not None
    for flag in (_HAS_NAME, _HAS_COMMENT):
        is_whole = is_whole and (not flags & flag or source.skip_text())
    if flags & _HAS_HEADER_CHECKSUM:
        is_whole = is_whole and source.exactly(2) is not None
    return "" if is_whole else cut_off


def _member(source: _Compressed, damage: GzipDamage) -> Iterator[bytes]:
    """The text of the member whose header was read."""
    inflater = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP_NO_HDR)
    length, piece_bytes = 0, _FIRST_BYTES
    while not inflater.eof:
        piece = b""
        if inflater.needs_input:
            piece = source.take(piece_bytes)
            piece_bytes = min(_GROWTH * piece_bytes, _READ_BYTES)
            if not piece:
                damage.problem = f"ends too early, at byte {source.offset}"
                return
        try:
            text = inflater.decompress(piece, _TEXT_BYTES)
        except igzip_lib.IsalError as error:  # type: ignore[misc]  # an exception, although its stub doesn't declare it
            damage.problem = f"is damaged before byte {source.offset} ({error})"
            return
        length += len(text)
        yield text
    source.give_back(len(inflater.unused_data))
    _compare_trailer(source, damage, inflater.crc, length)


def _compare_trailer(source: _Compressed, damage: GzipDamage, checksum: int, length: int) -> None:
    at = source.offset
    trailer = source.exactly(_TRAILER.size)
    if trailer is None:
        damage.problem = f"ends too early, inside the checksum at byte {at}"
        return
    stored_checksum, stored_length = _TRAILER.unpack(trailer)
    wrong = [
        words
        for words, is_wrong in (
            (f"checksum (CRC-32) at byte {at}", stored_checksum != checksum),
            (f"length at byte {at + 4}", stored_length != length & 0xFFFFFFFF),
        )
        if is_wrong
    ]
    if wrong:
        damage.wrong_trailers += 1
        damage.first_wrong = damage.first_wrong or " and the ".join(wrong)
