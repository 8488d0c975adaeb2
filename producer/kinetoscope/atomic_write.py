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

from .path_below import in_its_folder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .path_below import OpenFolder, PathBelow

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@dataclass
class AtomicFile:
    """A file that is being written.

    Args:
        folder: The folder that it is in.
        name: Its final name, which may change until the block ends.
        stream: Takes its bytes.
    """

    folder: OpenFolder
    name: str
    stream: BinaryIO

    def force_to_disk(self) -> None:
        """Flush to disk, so that the content survives a loss of power."""
        self.stream.flush()
        os.fsync(self.stream.fileno())


@contextmanager
def atomic_file(path: Path | PathBelow, *, owner: str = "") -> Iterator[AtomicFile]:
    """Return a file that gets its name at the end of the block; a symbolic link of that name is replaced, not followed.

    Args:
        path: The file.
        owner: The name of the file's only writer: an unfinished file of an earlier process with that name is removed.
            Without one, any process may write the file at any time.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    file = in_its_folder(path)
    with file.parent.open_folder() as folder, _hidden_file(folder, file.name, owner) as (hidden_name, stream):
        atomic = AtomicFile(folder, file.name, stream)
        with stream:
            yield atomic
        folder.replace(hidden_name, atomic.name)


@contextmanager
def _hidden_file(folder: OpenFolder, name: str, owner: str = "") -> Iterator[tuple[str, BinaryIO]]:
    """Return name and stream of a new hidden file; it is removed at the end of the block, unless it was renamed."""
    hidden_name = partial_name(name, owner or uuid.uuid4().hex)
    folder.unlink(hidden_name)
    try:
        yield hidden_name, os.fdopen(folder.open(hidden_name, _NEW), "wb")
    finally:
        folder.unlink(hidden_name)


def partial_name(name: str, owner: str) -> str:
    """Return the hidden name that a file has until it is complete."""
    return f".{name}.tmp-{owner}"


def replace_file(path: Path | PathBelow, data: bytes, *, forces_to_disk: bool = False) -> None:
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


def write_json(path: Path | PathBelow, value: Any) -> None:
    """Write a value as JSON, like `replace_file`.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    replace_file(path, json.dumps(value, default=str).encode("ascii"))


def create_file(path: Path | PathBelow, data: bytes) -> bool:
    """Create a file atomically unless it exists; return whether this call created it. Of concurrent calls, one does.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    file = in_its_folder(path)
    with file.parent.open_folder() as folder, _hidden_file(folder, file.name) as (hidden_name, stream):
        with stream:
            stream.write(data)
        try:
            folder.link(hidden_name, file.name)  # unlike a new file, it is never empty
        except FileExistsError:
            return False
        except OSError:  # a file system without hard links
            if folder.exists(file.name):
                return False
            folder.replace(hidden_name, file.name)
        return True


def link_file(source: Path, path: Path | PathBelow) -> None:
    """Make a hard link to a file, or a copy if links aren't possible; an older file of that name is replaced.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    file = in_its_folder(path)
    hidden_name = partial_name(file.name, uuid.uuid4().hex)
    with file.parent.open_folder() as folder:
        try:
            folder.link(source, hidden_name, is_here=False)
            folder.replace(hidden_name, file.name)
            return
        except OSError:
            pass
        finally:
            folder.unlink(hidden_name)  # if both are links to one file, renaming does nothing
    with source.open("rb") as original, atomic_file(file) as copy:
        shutil.copyfileobj(original, copy.stream)
