"""Atomic writes: a file is written under a hidden name, then renamed, so that readers see all of it or nothing.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class AtomicFile:
    """A file that is being written.

    Args:
        path: Its final name, which may change until the block ends.
        stream: Takes its bytes.
    """

    path: Path
    stream: BinaryIO

    def force_to_disk(self) -> None:
        """Flush to disk, so that the content survives a loss of power."""
        self.stream.flush()
        os.fsync(self.stream.fileno())


@contextmanager
def atomic_file(path: Path, *, owner: str = "") -> Iterator[AtomicFile]:
    """Return a file that gets its name at the end of the block; a symbolic link of that name is replaced, not followed.

    Args:
        path: The file.
        owner: The name of the file's only writer: an unfinished file of an earlier process with that name is removed.
            Without one, any process may write the file at any time.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    hidden = partial_file(path, owner or uuid.uuid4().hex)
    hidden.unlink(missing_ok=True)
    try:
        with hidden.open("xb") as stream:
            file = AtomicFile(path, stream)
            yield file
        hidden.replace(file.path)
    finally:
        hidden.unlink(missing_ok=True)


def partial_file(path: Path, owner: str) -> Path:
    """Return the hidden path, next to the final one, that a file has until it is complete."""
    return path.with_name(f".{path.name}.tmp-{owner}")


def replace_file(path: Path, data: bytes, *, forces_to_disk: bool = False) -> None:
    """Write a file atomically.

    Args:
        path: The file.
        data: Its content.
        forces_to_disk: Whether it must survive a loss of power.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    with atomic_file(path) as file:
        file.stream.write(data)
        if forces_to_disk:
            file.force_to_disk()


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, like `replace_file`.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    replace_file(path, json.dumps(value, default=str).encode("ascii"))


def create_file(path: Path, data: bytes) -> bool:
    """Create a file atomically unless it exists; return whether this call created it. Of concurrent calls, one does.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    hidden = partial_file(path, uuid.uuid4().hex)
    try:
        with hidden.open("xb") as stream:
            stream.write(data)
        try:
            os.link(hidden, path)  # unlike a new file, it is never empty
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            if path.exists():
                return False
            hidden.replace(path)
        return True
    finally:
        hidden.unlink(missing_ok=True)


def link_file(source: Path, path: Path) -> None:
    """Make a hard link to a file, or a copy if links aren't possible; an older file of that name is replaced.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    hidden = partial_file(path, uuid.uuid4().hex)
    try:
        try:
            os.link(source, hidden)
        except OSError:
            shutil.copyfile(source, hidden)
        hidden.replace(path)
    finally:
        hidden.unlink(missing_ok=True)
