"""A trace file as blocks of decompressed UTF-8 text.

The first bytes of a file determine its format, never its name. Damaged compressed data is read as far as possible.
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from types import TracebackType
from typing import Any

import zstandard

from ...errors import NotATrace
from ...filesystem import StoredFile, begins_speedscope
from ...names import text
from ...trace.model import Diagnostic
from . import gunzip
from .encodings import in_utf8
from .speedscope import calls_as_events

_AT_ONCE = 1 << 16  # decompressed at once: damage may cost this much text in addition
_MOST_XZ_BYTES = 1 << 28
_MOST_EXPANSION, _EXPANDS_FROM = 500, 1 << 30  # traces of 150 bytes an event expand 10 to 50 times; gzip at most 1,032
_DAMAGED_COMPRESSION = "damaged_compression"
_ZIP = b"PK\x03\x04"
_COMPRESSIONS: dict[
    bytes, tuple[str, Callable[[Any], Any]]
] = {  # by the first bytes: a name, and the function that opens such a file
    b"\x28\xb5\x2f\xfd": (
        "zstd",
        lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
    ),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zX": ("xz", lambda file: _XzFile(file)),
}
_SUFFIXES = {
    "gzip": (".gz", ".gzip"),
    "zstd": (".zst", ".zstd"),
    "bzip2": (".bz2",),
    "xz": (".xz",),
    "plain": (".json",),
}
_DAMAGED = (lzma.LZMAError, EOFError, OSError, zstandard.ZstdError)  # what the others raise for damaged data


class Source:
    """An open trace file.

    Attributes:
        path: The path or URL as the user gave it.
        file: The stored file; it counts the bytes read.
        diagnostics: What was wrong with the file as such: its name, its compression, its encoding.

    Args:
        path: The path or URL as the user gave it.
        block_bytes: Approximate size of a block of text.
        on_read: Called with the stored file whenever some of it was read, even without a new block of text; it may
            raise.

    Raises:
        TraceError: The file can't be opened; while it is read: it can't be read.
        NotATrace: The file is empty, an archive, or expands to far more than a trace does.
    """

    def __init__(self, path: str, block_bytes: int, on_read: Callable[[StoredFile], None] = lambda _: None) -> None:
        self.path = path
        self.block_bytes = block_bytes
        self._on_read = on_read
        self.diagnostics: list[Diagnostic] = []
        self.file = StoredFile(path)

    def __enter__(self) -> Iterator[bytes]:
        return self.blocks()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.file.close()

    def blocks(self) -> Iterator[bytes]:
        """The decompressed text, in blocks of about `block_bytes`."""
        blocks = in_utf8(self._limit_expansion(self._gather(self._decompress())), self.diagnostics)
        first = next(blocks, b"")
        if not begins_speedscope(first):
            yield first
            yield from blocks
            return
        yield from calls_as_events(chain([first], blocks), self.path, self.diagnostics)

    def _read(self, at_most: int) -> bytes:
        self._on_read(self.file)
        return self.file.read(at_most)

    def _gather(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The pieces joined to blocks, none of them empty."""
        pending: list[bytes] = []
        waiting_bytes = 0
        for piece in pieces:
            if piece:
                pending.append(piece)
                waiting_bytes += len(piece)
            if waiting_bytes >= self.block_bytes:
                yield b"".join(pending)
                pending, waiting_bytes = [], 0
        if pending:
            yield b"".join(pending)

    def _limit_expansion(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The blocks, unless a small file never ends."""
        expanded_bytes = 0
        for block in blocks:
            expanded_bytes += len(block)
            if expanded_bytes > max(_EXPANDS_FROM, _MOST_EXPANSION * self.file.read_bytes):
                sizes = f"{text.file_size(self.file.read_bytes)} expand to {text.file_size(expanded_bytes)}"
                raise NotATrace(
                    self.path,
                    f"its first {sizes}, more than {_MOST_EXPANSION} times as much: no trace does. "
                    "To read it all the same, decompress it first.",
                )
            yield block

    def _decompress(self) -> Iterator[bytes]:
        start = self._read(4)
        if not start:
            raise NotATrace(
                self.path, "the file is empty (0 bytes). The recording was stopped before it wrote anything."
            )
        if start == _ZIP:
            raise NotATrace(self.path, "it is a zip archive; unpack it first.")
        compression = next(
            (decompressor for magic, decompressor in _COMPRESSIONS.items() if start.startswith(magic)), None
        )
        if start.startswith(gunzip.MAGIC):
            self._look_at_name("gzip")
            yield from self._not_empty("gzip", self._gunzipped_twice(start))
        elif compression:
            self._look_at_name(compression[0])
            file = compression[1](_Beginning(start, self._read))
            yield from self._not_empty(compression[0], self._by_library(compression[0], file))
        else:
            self._look_at_name("plain")
            yield start + self._read(max(0, self.block_bytes - len(start)))
            while block := self._read(self.block_bytes):
                yield block

    def _not_empty(self, name: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """The pieces of decompressed data.

        Raises:
            NotATrace: There is nothing in them.
        """
        size = 0
        for piece in pieces:
            size += len(piece)
            yield piece
        if not size:
            is_cut = any(diagnostic.rule == _DAMAGED_COMPRESSION for diagnostic in self.diagnostics)
            what = "is damaged or ends before any text" if is_cut else "holds no text"
            raise NotATrace(self.path, f"its {name} data {what}. Copy the file again, or record the trace again.")

    def _look_at_name(self, compression: str) -> None:
        path = self.path.lower()
        all_suffixes = tuple(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
        if path.endswith(all_suffixes) and not path.endswith(_SUFFIXES[compression]):
            is_what = "not compressed" if compression == "plain" else f"compressed with {compression}"
            words = f"The file is {is_what}, unlike its name; other tools may refuse it until it is renamed."
            self.diagnostics.append(Diagnostic("wrong_suffix", 1, words, level="note"))
        if path.endswith(".tmp"):  # kineto efcc5103 renames a file when it is complete
            words = "The name ends in .tmp: the writer hasn't finished the file, so its end may be missing."
            self.diagnostics.append(Diagnostic("unfinished_file", 1, words))

    def _gunzipped_twice(self, start: bytes) -> Iterator[bytes]:
        """The text; if that is gzip data again, its text."""
        pieces = self._gunzip(self._read, start)
        first_piece = next(pieces, b"")
        if not first_piece.startswith(gunzip.MAGIC):
            yield first_piece
            yield from pieces
            return
        words = "The file is compressed twice with gzip; other tools may refuse it until it is decompressed once."
        self.diagnostics.append(Diagnostic("wrong_suffix", 1, words, level="note"))
        yield from self._gunzip(lambda _: next(pieces, b""), first_piece)

    def _gunzip(self, read: Callable[[int], bytes], start: bytes) -> Iterator[bytes]:
        damage = gunzip.GzipDamage()
        yield from gunzip.inflate(read, start, damage)
        if damage.wrong_trailers:
            words = (
                f"The gzip data was decompressed to its end, but its {damage.first_wrong} of the compressed file is "
                "wrong: some of the text may be damaged. Copy the file again, or record again."
            )
            self.diagnostics.append(Diagnostic("wrong_checksum", damage.wrong_trailers, words))
        if damage.problem:
            self._note_damage("gzip", damage.problem, damage.offset)

    def _by_library(self, name: str, file: Any) -> Iterator[bytes]:
        try:
            while piece := file.read1(_AT_ONCE):
                yield piece
        except _DAMAGED as error:
            self._note_damage(name, f"is damaged ({error}) at about byte {self.file.read_bytes}", self.file.read_bytes)

    def _note_damage(self, name: str, problem: str, offset: int) -> None:
        size = self.file.size_bytes
        rest = f"{text.percent((size - offset) / size)} of the file" if size and size > offset else "an unknown part"
        consequence = (
            f"The {name} data {problem} of the compressed file: the data after it, {rest}, is lost. Copy the file "
            "again, or record again and let the job finish writing."
        )
        self.diagnostics.append(Diagnostic(_DAMAGED_COMPRESSION, 1, consequence, level="loss"))


class _XzFile:
    """A file of xz streams, each with a dictionary of limited size; `xz -9` needs 65 MiB."""

    def __init__(self, file: _Beginning) -> None:
        self._file = file
        self._stream = lzma.LZMADecompressor(memlimit=_MOST_XZ_BYTES)

    def read1(self, at_most: int) -> bytes:
        """Some of the text; empty at its end."""
        while True:
            data = b""
            if self._stream.eof:
                data = self._next_stream()
                if not data:
                    return b""
                self._stream = lzma.LZMADecompressor(memlimit=_MOST_XZ_BYTES)
            elif self._stream.needs_input and not (data := self._file.read()):
                raise EOFError("has no end")
            if text := self._stream.decompress(data, at_most):
                return text

    def _next_stream(self) -> bytes:
        """The beginning of the next stream, behind padding; empty if there is none."""
        data = self._stream.unused_data
        while not (begin := data.lstrip(b"\0")) and (data := self._file.read()):
            pass
        return begin


class _Beginning:
    """A stored file whose first bytes were read already."""

    def __init__(self, start: bytes, read: Callable[[int], bytes]) -> None:
        self._start, self._read = start, read

    def read(self, at_most: int = _AT_ONCE) -> bytes:
        """The next bytes."""
        start, self._start = self._start, b""
        return start or self._read(at_most)

    def seekable(self) -> bool:
        """No: it is read from front to back."""
        return False
