"""A trace file as blocks of decompressed UTF-8 text.

What a file is, its first bytes say, never its name. Damaged compression gives what can still be had.
"""

from __future__ import annotations

import bz2
import lzma
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import zstandard
from isal import igzip_lib, isal_zlib

from ..errors import NotATrace
from ..storage import StoredFile
from ..trace.model import Finding
from .encodings import in_utf8

_AT_ONCE = 1 << 16  # how much is decompressed in one go: so much of damaged data may be lost besides
_GZIP = b"\x1f\x8b"
_ZIP = b"PK\x03\x04"
_COMPRESSIONS: dict[
    bytes, tuple[str, Callable[[Any], Any]]
] = {  # by the first bytes: a name, and what opens a file of it
    b"\x28\xb5\x2f\xfd": (
        "zstd",
        lambda file: zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True),
    ),
    b"BZh": ("bzip2", bz2.BZ2File),
    b"\xfd7zX": ("xz", lzma.LZMAFile),
}
_SUFFIXES = {
    "gzip": (".gz", ".gzip"),
    "zstd": (".zst", ".zstd"),
    "bzip2": (".bz2",),
    "xz": (".xz",),
    "plain": (".json",),
}
_DAMAGED = (lzma.LZMAError, EOFError, OSError, zstandard.ZstdError)  # what the others say of damaged data


class Source:
    """An open trace file.

    Attributes:
        path: The path or URL as the user gave it.
        file: The file as it is stored; it counts what was read.
        findings: What was wrong with the file as such: its name, its compression, its encoding.

    Raises:
        TraceError: The file can't be opened; while it is read: it can't be read.
        NotATrace: The file is empty, or an archive.
    """

    def __init__(self, path: str, block_bytes: int) -> None:
        self.path = path
        self.block_bytes = block_bytes
        self.findings: list[Finding] = []
        self.file = StoredFile(path)

    def __enter__(self) -> Iterator[bytes]:
        return self.blocks()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.file.close()

    def blocks(self) -> Iterator[bytes]:
        """The decompressed text, in blocks of about `block_bytes`."""
        return in_utf8(self._decompressed(), self.findings)

    def _decompressed(self) -> Iterator[bytes]:
        start = self.file.read(4)
        if not start:
            raise NotATrace(
                self.path, "the file is empty (0 bytes). The recording was stopped before it wrote anything."
            )
        if start == _ZIP:
            raise NotATrace(self.path, "it is a zip archive; unpack it first.")
        opened = next((found for magic, found in _COMPRESSIONS.items() if start.startswith(magic)), None)
        if start.startswith(_GZIP):
            self._look_at_name("gzip")
            yield from self._gunzipped(start)
        elif opened:
            self._look_at_name(opened[0])
            yield from self._by_library(opened[0], opened[1](_Beginning(start, self.file)))
        else:
            self._look_at_name("plain")
            yield start + self.file.read(self.block_bytes)
            while block := self.file.read(self.block_bytes):
                yield block

    def _look_at_name(self, compression: str) -> None:
        path = self.path.lower()
        known = tuple(suffix for suffixes in _SUFFIXES.values() for suffix in suffixes)
        if path.endswith(known) and not path.endswith(_SUFFIXES[compression]):
            is_what = "not compressed" if compression == "plain" else f"compressed with {compression}"
            words = f"The file is {is_what}, which its name doesn't say; other tools may refuse it until it is renamed."
            self.findings.append(Finding("wrong_suffix", 1, words, level="note"))
        if path.endswith(".tmp"):  # kineto efcc5103 renames a file when it is complete
            words = "The name ends in .tmp: whoever wrote the file had not finished it, so its end may be missing."
            self.findings.append(Finding("unfinished_file", 1, words))

    def _gunzipped(self, start: bytes) -> Iterator[bytes]:
        """Inflate member after member; zeros between and after them are padding."""
        inflater = isal_zlib.decompressobj(wbits=31)
        waiting: list[bytes] = []
        problem = None
        compressed = start + self.file.read(_AT_ONCE)
        while compressed:
            try:
                waiting.append(inflater.decompress(compressed))
            except igzip_lib.IsalError as error:  # type: ignore[misc]  # an exception, whatever its stub says
                problem = f"is damaged ({error})"
                break
            if sum(map(len, waiting)) >= self.block_bytes:
                yield b"".join(waiting)
                waiting = []
            compressed = inflater.unused_data.lstrip(b"\0") or self.file.read(_AT_ONCE).lstrip(
                b"\0" if inflater.eof else b""
            )
            if inflater.eof and compressed:
                inflater = isal_zlib.decompressobj(wbits=31)
        if not problem and not inflater.eof:
            problem = "ends too early"
        if problem:
            self._note_damage("gzip", problem)
        yield b"".join(waiting)

    def _by_library(self, name: str, file: Any) -> Iterator[bytes]:
        waiting: list[bytes] = []
        while True:
            try:
                part = file.read1(_AT_ONCE)
            except _DAMAGED as error:
                self._note_damage(name, f"is damaged ({error})")
                part = b""
            waiting.append(part)
            if not part or sum(map(len, waiting)) >= self.block_bytes:
                yield b"".join(waiting)
                waiting = []
            if not part:
                return

    def _note_damage(self, name: str, problem: str) -> None:
        consequence = (
            f"The {name} data {problem} at about byte {self.file.read_bytes} of the compressed file: what was packed "
            "behind it is lost. Copy the file again, or record again and let the job finish writing."
        )
        self.findings.append(Finding("damaged_compression", 1, consequence, level="loss"))


class _Beginning:
    """A stored file whose first bytes were read already."""

    def __init__(self, start: bytes, file: StoredFile) -> None:
        self._start, self._file = start, file

    def read(self, at_most: int = _AT_ONCE) -> bytes:
        """The next bytes."""
        start, self._start = self._start, b""
        return start or self._file.read(at_most)

    def seekable(self) -> bool:
        """No: it is read from front to back."""
        return False
