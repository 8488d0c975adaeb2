"""Files as bytes, from this disk or from anywhere else that fsspec reaches.

What the bytes mean, whether they are compressed and what is wrong with them is the reader's business.
"""

from __future__ import annotations

from typing import IO

from .errors import TraceError


class StoredFile:
    """A file that is read from front to back.

    Attributes:
        path: The path or URL as the user gave it.
        size_bytes: Its size, or None if the storage doesn't say.
        read_bytes: How much of it was read so far.

    Raises:
        TraceError: It can't be opened; while it is read: it can't be read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.read_bytes = 0
        self._file = self._opened()
        self.size_bytes = self._size()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def read(self, at_most: int) -> bytes:
        """The next bytes; fewer than asked for only at the end of the file."""
        try:
            data = self._file.read(at_most)
        except (OSError, ValueError) as error:
            raise TraceError(self.path, f"the file can't be read: {_words(error)}.") from error
        self.read_bytes += len(data)
        return bytes(data)

    def _opened(self) -> IO[bytes]:
        try:
            if "://" in self.path:
                import fsspec  # imports slowly, and few files are remote

                opened: IO[bytes] = fsspec.open(self.path, "rb").open()
                return opened
            return open(self.path, "rb")  # noqa: PTH123  # closed by close()
        except FileNotFoundError:
            raise TraceError(self.path, "there is no such file. It may have been moved or deleted.") from None
        except IsADirectoryError:
            raise TraceError(self.path, "this is a folder, not a trace file.") from None
        except (OSError, ValueError, ImportError) as error:  # fsspec: unknown protocols, missing packages
            raise TraceError(self.path, f"the file can't be opened: {_words(error)}.") from error

    def _size(self) -> int | None:
        try:
            self._file.seek(0, 2)
            size = self._file.tell()
            self._file.seek(0)
        except (OSError, ValueError):
            return None
        return size


def _words(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).rstrip(".")
