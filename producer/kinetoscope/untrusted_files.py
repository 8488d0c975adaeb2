"""Files in folders that others may write to: links aren't followed, nothing is waited for, and no file is too large.

A run's folder may be shared, or come from somebody else. A named pipe in the place of a file would hold whoever opens
it, a link would lead to any other file, and a size is only what somebody wrote there.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path

MOST_JSON_BYTES = 32 << 20
"""How large a file may be of which all has to be read: `run.json` of a hundred thousand ranks is smaller."""

_PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def _open_regular(path: Path, flags: int) -> int:
    descriptor = os.open(path, flags | _PLAIN | _BINARY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no plain file")
    return descriptor


def open_plain(path: Path) -> BinaryIO:
    """Open a file to read it.

    Raises:
        OSError: It isn't there, can't be read, or is a link, a pipe or the like.
    """
    return os.fdopen(_open_regular(path, os.O_RDONLY), "rb")


def read_plain(path: Path, most_bytes: int = MOST_JSON_BYTES) -> bytes:
    """Return what a file holds.

    Raises:
        OSError: As `open_plain`, or it is larger than `most_bytes`.
    """
    with open_plain(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(f"{path} has more than {most_bytes >> 10} KiB")
    return data


def read_json(path: Path, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """The value of a JSON file; None if there is none or it isn't JSON."""
    try:
        return json.loads(read_plain(path, most_bytes))
    except (OSError, ValueError, RecursionError):
        return None


def append_plain(path: Path, data: bytes) -> None:
    """Write to the end of a file that is there.

    Raises:
        OSError: It isn't there, can't be written, or is a link, a pipe or the like.
    """
    with os.fdopen(_open_regular(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(data)


def touch_plain(path: Path) -> None:
    """Set a file's times to now.

    Raises:
        OSError: As `append_plain`.
    """
    if os.utime in os.supports_fd:
        descriptor = _open_regular(path, os.O_WRONLY)
        try:
            os.utime(descriptor)
        finally:
            os.close(descriptor)
    else:
        os.utime(path)


def is_below(path: Path, folder: Path) -> bool:
    """Whether a path lies in a folder, wherever links on its way lead; the last part may be a link itself."""
    try:
        return path.parent.resolve().is_relative_to(folder.resolve()) and path.name not in ("", ".", "..")
    except (OSError, ValueError, RuntimeError):  # a circle of links; no name
        return False


def make_folder_below(run: Path, *names: str) -> Path:
    """Make a folder in a run's folder, level by level, and follow no link on the way.

    Raises:
        OSError: It can't be made, or one of its levels is a link.
    """
    run.mkdir(parents=True, exist_ok=True)
    folder = run
    for name in names:
        folder /= name
        if not folder.is_dir():
            folder.mkdir(exist_ok=True)
        if folder.is_symlink():
            raise OSError(f"{folder} is a link, which Kinetoscope doesn't follow")
    return folder
