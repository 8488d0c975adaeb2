"""Safe access to files in folders that others may write to: no links, no blocking, and limited sizes.

A run's folder may be shared, or come from another user. A named pipe in place of a file would block a reader, a link
could lead to any other file, and a file may have any size.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING, Any, BinaryIO

from .path_below import in_its_folder

if TYPE_CHECKING:
    from pathlib import Path

    from .path_below import PathBelow

MOST_JSON_BYTES = 32 << 20
"""The maximum size of a file that is read as a whole: the `run.json` of a hundred thousand ranks is smaller."""


def _open_regular(path: Path | PathBelow, flags: int) -> int:
    file = in_its_folder(path)
    with file.parent.open_folder() as folder:
        descriptor = folder.open(file.name, flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} isn't a plain file")
    return descriptor


def open_plain(path: Path | PathBelow) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: It doesn't exist, can't be read, or is a link, a pipe or the like.
    """
    return os.fdopen(_open_regular(path, os.O_RDONLY), "rb")


def read_plain(path: Path | PathBelow, most_bytes: int = MOST_JSON_BYTES) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: As for `open_plain`, or it is larger than `most_bytes`.
    """
    with open_plain(path) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise OSError(f"{path} has more than {most_bytes >> 10} KiB")
    return data


def read_json(path: Path | PathBelow, most_bytes: int = MOST_JSON_BYTES) -> Any:
    """Return the value of a JSON file; None if it doesn't exist or isn't JSON."""
    try:
        return json.loads(read_plain(path, most_bytes))
    except (OSError, ValueError, RecursionError):
        return None


def append_plain(path: Path | PathBelow, data: bytes) -> None:
    """Append to an existing file.

    Raises:
        OSError: It doesn't exist, can't be written, or is a link, a pipe or the like.
    """
    with os.fdopen(_open_regular(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(data)


def touch_plain(path: Path | PathBelow) -> None:
    """Set a file's times to now.

    Raises:
        OSError: As for `append_plain`.
    """
    descriptor = _open_regular(path, os.O_WRONLY)
    try:
        os.utime(descriptor if os.utime in os.supports_fd else str(path))
    finally:
        os.close(descriptor)
