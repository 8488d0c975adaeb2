"""Opens files in folders that others can write to, without ever blocking.

Opening a named pipe blocks until another process writes to it, perhaps forever, and a device may never end.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import IO

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotAFile(OSError):
    """A path of a pipe, a socket or a device."""


def open_regular(path: str) -> IO[bytes]:
    """Open a regular file, or a link to one.

    Raises:
        NotAFile: It is a pipe, a socket or a device.
        OSError: It can't be opened, or is a folder.
        ValueError: No file can have this name.
    """
    _check(path, os.stat(path).st_mode)  # noqa: PTH116  # paths are texts here
    handle = os.open(path, _FLAGS)  # non-blocking, because it may have been replaced meanwhile
    try:
        _check(path, os.fstat(handle).st_mode)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def check_replaceable(path: str) -> None:
    """Check that a path may be replaced by a file: it is a file or doesn't exist.

    Raises:
        NotAFile: It is a pipe, a socket or a device.
        OSError: It is a folder, or no file can have this name.
    """
    try:
        _check(path, os.stat(path).st_mode)  # noqa: PTH116  # as above
    except FileNotFoundError:
        return
    except ValueError as error:
        raise OSError(errno.EINVAL, "no file can have this name", path) from error


def _check(path: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), None)
    if kind is not None:
        raise NotAFile(errno.EINVAL, f"this is {kind}, not a file", path)
