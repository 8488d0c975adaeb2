"""The folder of unfinished recordings: private to this user, on this machine.

    {temporary folder}/kinetoscope-{uid}/     the root; `KINETOSCOPE_SCRATCH` names another one
        {pid}-{random}/                       one process's spool, see `spool`

The files of a spool say what to write where, and `recover` follows them. So a spool is always a folder in this user's
own root. No one else may enter the root: it is created with mode 0700, and before each use it is checked that it is a
folder, not a link, belongs to this user and has no permissions for others.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_LOG = logging.getLogger("kinetoscope")

VARIABLE = "KINETOSCOPE_SCRATCH"
"""The environment variable that names the root."""

_PREFIX = "kinetoscope-"
_TRIES = 5


class NotPrivate(OSError):
    """A folder that others may write to, or that isn't this user's."""


def scratch_root() -> Path:
    """Return the root, which may not exist."""
    path = os.environ.get(VARIABLE)
    if path:
        return Path(path).absolute()
    uid = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir(), f"{_PREFIX}{uid}").absolute()


def check_private(folder: Path) -> None:
    """Check that only this user can write to a folder.

    Raises:
        NotPrivate: Others can.
        OSError: There is no such folder.
    """
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode):
        raise NotPrivate(f"{folder} isn't a folder")
    if hasattr(os, "getuid"):  # on other systems, a user's temporary folder is private
        if info.st_uid != os.getuid():
            raise NotPrivate(f"{folder} belongs to user {info.st_uid}, not to you")
        if info.st_mode & 0o077:
            raise NotPrivate(f"others may enter {folder}: its mode is {stat.S_IMODE(info.st_mode):04o}, not 0700")


def make_private(folder: Path) -> None:
    """Create a folder that only this user may enter, unless it exists.

    Raises:
        NotPrivate: It exists, and others may write to it.
        OSError: It can't be created.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    check_private(folder)


def make_spool_folder() -> Path:
    """Create a folder for a new spool. If the root is unusable, create another root with a random name.

    Raises:
        OSError: No folder can be created.
    """
    root = scratch_root()
    problem = ""
    for _ in range(_TRIES):
        try:
            root.parent.mkdir(parents=True, exist_ok=True)
            make_private(root)
            return Path(tempfile.mkdtemp(dir=root, prefix=f"{os.getpid()}-"))
        except FileNotFoundError as error:  # another process has just removed its last spool, and the root with it
            problem = str(error)
        except OSError as error:
            problem = str(error)
            break
    other = tempfile.mkdtemp(prefix=_PREFIX)
    advice = f"`{VARIABLE}={other} kinetoscope recover` finds them there"
    _LOG.warning("%s. Unfinished recordings are in %s; %s.", problem, other, advice)
    spool = Path(tempfile.mkdtemp(dir=other, prefix=f"{os.getpid()}-"))
    for folder in (spool.parent, spool):
        _check_disk(folder)
    return spool


def process_of_spool(folder: Path) -> int | None:
    """Return the id of the process that created a spool's folder; None if its name doesn't have it."""
    number, dash, _ = folder.name.partition("-")
    return int(number) if dash and number.isascii() and number.isdecimal() else None


def _check_disk(folder: Path) -> None:
    """Check that a new folder is private, which it isn't on a file system without permissions.

    Raises:
        NotPrivate: It isn't.
    """
    try:
        check_private(folder)
    except NotPrivate as error:
        advice = f"set {VARIABLE} to a folder on a file system with permissions"
        raise NotPrivate(f"there is no private folder for recordings: {error}; {advice}") from error


def spool_folders() -> list[Path]:
    """Return the folders of this user's spools.

    Raises:
        NotPrivate: Others may write to the root.
        OSError: The root can't be read.
    """
    root = scratch_root()
    try:
        check_private(root)
        folders = sorted(root.iterdir())
    except FileNotFoundError:
        return []
    return [folder for folder in folders if _is_private(folder)]


def _is_private(folder: Path) -> bool:
    try:
        check_private(folder)
    except OSError:
        return False
    return True


def remove_empty_root(root: Path) -> None:
    """Remove a root that has no spool and isn't the user's choice."""
    if not os.environ.get(VARIABLE) and root.name.startswith(_PREFIX):
        with suppress(OSError):  # it has a spool, or doesn't exist
            root.rmdir()
