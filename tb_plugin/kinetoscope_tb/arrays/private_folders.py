"""Folders in which nobody but this user can put anything: what lies there is read back, and compiled code even run."""

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
    """Why others could put something into a folder; empty if they can't.

    Raises:
        OSError: There is no such folder, or it can't be looked at.
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
    """Whether a file belongs to this process's user; True where files don't say."""
    return not hasattr(os, "geteuid") or info.st_uid == os.geteuid()


@lru_cache(maxsize=1)
def temporary_folder() -> Path | None:
    """This user's folder among the temporary files: the same one next time, unless another user has its name.

    Where that is so, it is a new one, which goes with the process. None if nothing can be written there.
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
