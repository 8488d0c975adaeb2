"""Opens files that anybody may have put there, and never waits for one.

Opening a named pipe waits until somebody writes to it, for ever if nobody does, and a device may never end.
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
    """A path that leads to a pipe, a socket or a device."""


def open_regular(path: str) -> IO[bytes]:
    """Open a regular file, or one that a link leads to.

    Raises:
        NotAFile: It is a pipe, a socket or a device.
        OSError: It can't be opened, or is a folder.
        ValueError: No file can have this name.
    """
    _check(path, os.stat(path).st_mode)  # noqa: PTH116  # paths are texts here
    handle = os.open(path, _FLAGS)  # without waiting, since it may be another by now
    try:
        _check(path, os.fstat(handle).st_mode)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def check_replaceable(path: str) -> None:
    """Let a file be written in place of what has this path: only of a file, or of nothing.

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
