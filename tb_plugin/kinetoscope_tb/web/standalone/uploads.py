"""Files that came as bytes, not as a path, in a private folder until the server ends."""

from __future__ import annotations

import itertools
import re
import shutil
from pathlib import Path
from typing import IO

from ...errors import RequestError
from ...names.text import file_size

_BLOCK = 1 << 20
_LONGEST_NAME = 120  # characters
_SPARE = 2  # at most this part of what is free on the disk is used


class TooLarge(RequestError):
    """More bytes than are accepted."""

    status = 413


class Uploads:
    """Files in a folder.

    Args:
        folder: A folder that only this user can open.
        most_bytes: The limit of one file.
    """

    def __init__(self, folder: str, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._folder = folder
        self._numbers = itertools.count(1)

    def path(self, name: str, run: str = "") -> Path:
        """A path in a new folder for a file of this name, which may come from anywhere: it never leads out of it.

        Args:
            name: The name.
            run: The name of the new folder; by default a number.
        """
        folder = Path(self._folder, run or str(next(self._numbers)))
        folder.mkdir(mode=0o700)
        return folder / _plain_name(name)

    def save(self, stream: IO[bytes], name: str, run: str = "") -> Path:
        """Write what a stream has to a new file, and return its path.

        Args:
            stream: What is read to its end.
            name: The file's name, from anywhere.
            run: The name of the file's folder; by default a number.

        Raises:
            TooLarge: It is more than `most_bytes`, or more than half of what is free on the disk.
        """
        path = self.path(name, run)
        free = shutil.disk_usage(path.parent).free // _SPARE
        try:
            with path.open("xb") as file:
                while block := stream.read(_BLOCK):
                    if file.tell() + len(block) > min(self.most_bytes, free):
                        raise _refusal(name, self.most_bytes, free)
                    file.write(block)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return path


def _refusal(name: str, most_bytes: int, free: int) -> TooLarge:
    if free < most_bytes:
        return TooLarge(f"{name} is larger than {file_size(free)}, half of what is free in the temporary folder.")
    return TooLarge(f"{name} is larger than {file_size(most_bytes)}. --most-bytes allows more.")


def _plain_name(name: str) -> str:
    """A file name with nothing in it that a file system could take for something else."""
    last = re.split(r"[/\\]", name)[-1]
    return re.sub(r"[^\w.+@-]", "_", last, flags=re.ASCII).strip(".")[-_LONGEST_NAME:] or "trace"
