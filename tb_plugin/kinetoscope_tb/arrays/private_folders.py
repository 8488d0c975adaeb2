"""Folders that only this user can write to, since files in them are read back and compiled code is even run."""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def privacy_problem(folder: Path) -> str:
    """Why others could write to a folder; empty if they can't.

    Raises:
        OSError: The folder doesn't exist, or isn't accessible.
    """
    info = folder.lstat()
    if not hasattr(os, "geteuid"):  # Windows: a user's folders are the user's
        return ""
    if stat.S_ISLNK(info.st_mode):
        if not is_mine(info):
            return "it is a link that another user made"
        info = folder.stat()
    if not stat.S_ISDIR(info.st_mode):
        return "it isn't a folder"
    if not is_mine(info):
        return f"it belongs to another user (number {info.st_uid})"
    if info.st_mode & _WRITABLE_BY_OTHERS:
        return f"others may write to it; chmod go-w {folder} makes it yours alone"
    return ""


def is_mine(info: os.stat_result) -> bool:
    """Whether a file belongs to this process's user; True where files have no owner."""
    return not hasattr(os, "geteuid") or info.st_uid == os.geteuid()


@lru_cache(maxsize=1)
def temporary_folder() -> Path | None:
    """This user's folder in the temporary folder: the same one in each process, unless another user took its name.

    Then it is a new one that is removed with the process. None if the temporary folder isn't writable.
    """
    try:
        parent = Path(tempfile.gettempdir())
    except OSError:
        return None
    number = f"-{os.geteuid()}" if hasattr(os, "geteuid") else ""
    folder = parent / f"kinetoscope{number}"
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        if not privacy_problem(folder) and os.access(folder, os.W_OK | os.X_OK):
            return folder
    with suppress(OSError):
        fresh = Path(tempfile.mkdtemp(prefix="kinetoscope-"))
        atexit.register(shutil.rmtree, fresh, ignore_errors=True)
        return fresh
    return None
