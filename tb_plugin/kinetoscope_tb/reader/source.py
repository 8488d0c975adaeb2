"""A trace file as blocks of decompressed text.

What a file is, its first bytes say, never its name. Damaged compression gives what can still be had.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from isal import igzip_lib, isal_zlib

from ..errors import NotATrace
from ..storage import StoredFile
from ..trace.model import Finding

_GZIP = b"\x1f\x8b"
_COMPRESSED_AT_ONCE = 1 << 16
_OTHERS = {
    b"\x28\xb5\x2f\xfd": "it is compressed with zstd; decompress it with `unzstd` first.",
    b"PK\x03\x04": "it is a zip archive; unpack it first.",
    b"BZh": "it is compressed with bzip2; decompress it with `bunzip2` first.",
    b"\xfd7zX": "it is compressed with xz; decompress it with `unxz` first.",
    b"\xff\xfe": "it is UTF-16 text; convert it to UTF-8 first.",
    b"\xfe\xff": "it is UTF-16 text; convert it to UTF-8 first.",
}


class Source:
    """An open trace file.

    Attributes:
        path: The path or URL as the user gave it.
        file: The file as it is stored; it counts what was read.
        findings: What was wrong with the compression.

    Raises:
        TraceError: The file can't be opened; while it is read: it can't be read.
        NotATrace: The file is empty, or compressed in another way than by gzip.
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
        start = self.file.read(4)
        if not start:
            raise NotATrace(
                self.path, "the file is empty (0 bytes). The recording was stopped before it wrote anything."
            )
        for magic, problem in _OTHERS.items():
            if start.startswith(magic):
                raise NotATrace(self.path, problem)
        if start.startswith(_GZIP):
            yield from self._gunzipped(start)
            return
        yield start + self.file.read(self.block_bytes)
        while block := self.file.read(self.block_bytes):
            yield block

    def _gunzipped(self, start: bytes) -> Iterator[bytes]:
        """Inflate member after member; zeros between and after them are padding."""
        inflater = isal_zlib.decompressobj(wbits=31)
        waiting: list[bytes] = []
        problem = None
        compressed = start + self.file.read(_COMPRESSED_AT_ONCE)
        while compressed:
            try:
                waiting.append(inflater.decompress(compressed))
            except igzip_lib.IsalError as error:  # type: ignore[misc]  # an exception, whatever its stub says
                problem = f"The gzip data is damaged ({error})"
                break
            if sum(map(len, waiting)) >= self.block_bytes:
                yield b"".join(waiting)
                waiting = []
            compressed = inflater.unused_data.lstrip(b"\0") or self.file.read(_COMPRESSED_AT_ONCE).lstrip(
                b"\0" if inflater.eof else b""
            )
            if inflater.eof and compressed:
                inflater = isal_zlib.decompressobj(wbits=31)
        if not problem and not inflater.eof:
            problem = "The gzip data ends too early"
        if problem:
            self._note(problem)
        yield b"".join(waiting)

    def _note(self, problem: str) -> None:
        consequence = (
            f"{problem} at about byte {self.file.read_bytes} of the compressed file: what was packed behind it is "
            "lost. Copy the file again, or record again and let the job finish writing."
        )
        self.findings.append(Finding("damaged_gzip", 1, consequence, level="loss"))
