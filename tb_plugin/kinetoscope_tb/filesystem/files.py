"""Files as bytes, and how a memory snapshot begins."""

from __future__ import annotations

import os
from typing import IO

from ..errors import TraceError
from ..names.regex import regex
from .prefetch import PrefetchedFile, remote_bytes
from .regular_files import NotAFile, open_regular
from .urls import is_gone, is_url, words

_PAGE = regex(rb"\s*<")
_VIEWER = b"MemoryViz.js"
_PROTOCOLS = (2, 3, 4, 5)
_SEARCHED = 1 << 12


class StoredFile:
    """A file that is read from front to back.

    Args:
        path: The path or URL as the user gave it.
        start: The offset to begin at.

    Attributes:
        size_bytes: The file's size, or None if the storage doesn't report it.
        read_bytes: How much of it was read so far.

    Raises:
        TraceError: It can't be opened; while it is read: it can't be read, or it changes.
    """

    def __init__(self, path: str, start: int = 0) -> None:
        self.path = path
        self.read_bytes = 0
        self._file: IO[bytes] | PrefetchedFile
        try:
            self._file = PrefetchedFile(path, start) if is_url(path) else _local(path, start)
            self.size_bytes = self._file.size if isinstance(self._file, PrefetchedFile) else _size(self._file)
        except Exception as error:  # each library has errors of its own
            raise _unusable(path, error, "opened") from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, at_most: int) -> bytes:
        """The next bytes; fewer than requested only at the end of the file."""
        try:
            data = self._file.read(at_most)
        except Exception as error:  # as above
            raise _unusable(self.path, error, "read") from error
        self.read_bytes += len(data)
        return data


def stored_bytes(path: str, start: int, count: int, *, tries: int | None = None) -> bytes:
    """A part of a file; less than requested only at its end.

    Args:
        tries: Number of attempts for a remote file; by default as for a whole file.

    Raises:
        TraceError: It can't be read.
    """
    try:
        if is_url(path):
            return remote_bytes(path, start, count, tries)
        with _local(path, start) as file:
            return file.read(count)
    except Exception as error:  # as above
        raise _unusable(path, error, "read") from error


def file_identity(path: str) -> tuple[int, int] | None:
    """An identity that stays while a file grows, and differs after it is replaced; None for remote or missing files."""
    if is_url(path):
        return None
    try:
        info = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return info.st_dev, info.st_ino


def _local(path: str, start: int) -> IO[bytes]:
    file = open_regular(path)
    if start:
        file.seek(start)
    return file


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _unusable(path: str, error: Exception, what: str) -> TraceError:
    if isinstance(error, TraceError):
        return error
    if is_gone(error):
        return TraceError(path, "there is no such file. It may have been moved or deleted.")
    if isinstance(error, IsADirectoryError):
        return TraceError(path, "this is a folder, not a trace file.")
    if isinstance(error, NotAFile):
        return TraceError(path, f"{error.strerror}. Write its content into a file first.")
    if isinstance(error, UnicodeError) or "\0" in path:
        return TraceError(path, "no file can have this name.")
    return TraceError(path, f"the file can't be {what}: {words(error, path)}.")


def begins_snapshot(start: bytes) -> bool:
    """Whether a text that begins like this is a memory snapshot."""
    is_pickle = len(start) > 1 and start[0] == 0x80 and start[1] in _PROTOCOLS
    is_dict = any(key in start[:64] for key in (b"segments", b"device_traces"))
    return begins_page(start) or (is_pickle and (is_dict or b"total_size" in start[:_SEARCHED]))


def begins_speedscope(start: bytes) -> bool:
    """Whether a text that begins like this is a file of speedscope: it names the schema of these."""
    return start.lstrip()[:1] == b"{" and b"speedscope.app/file-format-schema.json" in start[:_SEARCHED]


def begins_page(start: bytes) -> bool:
    """Whether it is a page that `torch.cuda._memory_viz` wrote, with a snapshot in base64."""
    return _PAGE.match(start) is not None and _VIEWER in start[:_SEARCHED]
