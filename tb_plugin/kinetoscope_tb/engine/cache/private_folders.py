"""Folders that only this user can write to, since files in them are read back."""

from __future__ import annotations

import os
import stat
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
