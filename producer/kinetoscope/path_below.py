"""Paths below a folder that others may write to, such as a run's: no folder on the way may be a link.

Between a check and a use, another user could replace a folder by a link, and the file would land elsewhere. So each use
opens the folders level by level (`openat` with `O_NOFOLLOW`), and then names the file relative to the last one.
Systems without these calls, such as Windows, check each level by its path instead. The root itself may be a link: it is
the user's choice.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import errno
import fnmatch
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HAS_OPENAT = {os.open, os.mkdir, os.rename, os.unlink, os.link, os.stat} <= os.supports_dir_fd
_TO_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_PLAIN = _NO_LINK | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


class LeadsOutside(OSError):
    """A path that leads out of its root, by its names or by a link."""


class OpenFolder:
    """An open folder. Its methods name files in it, and follow no link in the place of such a file.

    Args:
        path: Its path.
        descriptor: What it is open as; None where files are named by their paths.
    """

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        self.path, self._descriptor = path, descriptor

    def _at(self, name: str) -> str:
        return name if self._descriptor is not None else str(self.path / name)

    def open(self, name: str, flags: int) -> int:
        """Open a file like `os.open`, without waiting for a pipe; return its descriptor."""
        return os.open(self._at(name), flags | _PLAIN, 0o666, dir_fd=self._descriptor)

    def stat(self, name: str) -> os.stat_result:
        """Return a file's status."""
        return os.stat(self._at(name), dir_fd=self._descriptor, follow_symlinks=False)

    def exists(self, name: str) -> bool:
        """Whether something has the name."""
        try:
            self.stat(name)
        except OSError:
            return False
        return True

    def names(self) -> list[str]:
        """Return the names of what is in the folder."""
        if self._descriptor is None:
            return [path.name for path in self.path.iterdir()]
        readable = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._descriptor)
        try:
            return os.listdir(readable)  # noqa: PTH208  a descriptor
        finally:
            os.close(readable)

    def make_folder(self, name: str, mode: int = 0o777) -> None:
        """Create a folder unless it exists."""
        with suppress(FileExistsError):
            os.mkdir(self._at(name), mode, dir_fd=self._descriptor)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._at(name), dir_fd=self._descriptor)

    def replace(self, name: str, new_name: str) -> None:
        """Rename a file; an older one of the new name is replaced."""
        os.replace(self._at(name), self._at(new_name), src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)

    def link(self, source: str | Path, name: str, *, is_here: bool = True) -> None:
        """Make a hard link to a file, which is in this folder too unless `is_here` says that `source` is a path."""
        from_fd = self._descriptor if is_here else None
        follows = os.link not in os.supports_follow_symlinks
        path = self._at(str(source)) if is_here else source
        os.link(path, self._at(name), src_dir_fd=from_fd, dst_dir_fd=self._descriptor, follow_symlinks=follows)

    def unlink(self, name: str) -> None:
        """Remove a file if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(self._at(name), dir_fd=self._descriptor)


class PathBelow:
    """A path below a folder.

    Args:
        root: The folder.
        names: The names of the levels below it, such as `".work", "status", "rank0.json"`.

    Raises:
        LeadsOutside: A name isn't one of a level.
    """

    __slots__ = ("names", "root")

    def __init__(self, root: Path, *names: str) -> None:
        for name in names:
            file_name = os.path.basename(name)  # noqa: PTH119  a Path takes ten times as long, and this runs in each poll
            if name in ("", ".", "..") or "\0" in name or file_name != name:
                raise LeadsOutside(f"{'/'.join(names)} leads out of {root}")
        self.root, self.names = root, names

    @classmethod
    def of(cls, path: Path, root: Path) -> PathBelow:
        """Make one of a path that begins with its root's.

        Raises:
            LeadsOutside: It doesn't, or leads up.
        """
        if not path.is_relative_to(root) or path == root:
            raise LeadsOutside(f"{path} leads out of {root}")
        return cls(root, *path.relative_to(root).parts)

    @property
    def path(self) -> Path:
        """The whole path."""
        return self.root.joinpath(*self.names)

    @property
    def name(self) -> str:
        """The name of the last level."""
        return self.names[-1]

    @property
    def parent(self) -> PathBelow:
        """The folder that it is in."""
        return PathBelow(self.root, *self.names[:-1])

    def __truediv__(self, name: str) -> PathBelow:
        return PathBelow(self.root, *self.names, name)

    def __str__(self) -> str:
        return str(self.path)

    def with_name(self, name: str) -> PathBelow:
        """Return the path of another file in the same folder."""
        return self.parent / name

    @contextmanager
    def open_folder(self, *, creates: bool = False) -> Iterator[OpenFolder]:
        """Open it as a folder.

        Args:
            creates: Whether to create levels that don't exist.

        Raises:
            OSError: A level doesn't exist, is a link, or the system doesn't allow it; or the block raised it.
        """
        if not self.names:  # there is no level to replace
            yield OpenFolder(self.root)
            return
        descriptor = None
        if _HAS_OPENAT:
            descriptor = self._open_levels(creates=creates)
        else:
            self._check_levels(creates=creates)
        try:
            yield OpenFolder(self.path, descriptor)
        except OSError as error:
            if descriptor is not None and isinstance(error.filename, str):
                error.filename = str(self.path / error.filename)
            raise
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _open_levels(self, *, creates: bool) -> int:
        descriptor = os.open(self.root, _TO_SEARCH)
        for number, name in enumerate(self.names, start=1):
            above = descriptor
            try:
                descriptor = _open_level(name, above, creates=creates)
            except OSError as error:
                path = self.root.joinpath(*self.names[:number])
                is_link = error.errno in (errno.ELOOP, errno.ENOTDIR) and path.is_symlink()
                raise _link_error(path) if is_link else OSError(error.errno, error.strerror, str(path)) from None
            finally:
                os.close(above)
        return descriptor

    def _check_levels(self, *, creates: bool) -> None:
        for number in range(1, len(self.names) + 1):
            path = self.root.joinpath(*self.names[:number])
            if creates and not path.is_dir():
                path.mkdir(exist_ok=True)
            if path.is_symlink():
                raise _link_error(path)

    def make(self) -> None:
        """Create it as a folder, with its root and all levels, unless it exists.

        Raises:
            OSError: It can't be created, or one of its levels is a link.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with self.open_folder(creates=True):
            pass

    def children(self, pattern: str) -> list[PathBelow]:
        """Return the files in it whose names match a pattern, in order; none if it can't be listed."""
        try:
            with self.open_folder() as folder:
                return [self / name for name in sorted(fnmatch.filter(folder.names(), pattern))]
        except OSError:
            return []

    def stat(self) -> os.stat_result:
        """Return its status.

        Raises:
            OSError: It doesn't exist, or a level above it is a link.
        """
        with self.parent.open_folder() as folder:
            return folder.stat(self.name)

    def exists(self) -> bool:
        """Whether it exists."""
        try:
            self.stat()
        except OSError:
            return False
        return True

    def replace(self, name: str) -> None:
        """Rename it within its folder; an older file of that name is replaced.

        Raises:
            OSError: It doesn't exist, a level above it is a link, or the folder doesn't allow it.
        """
        with self.parent.open_folder() as folder:
            folder.replace(self.name, name)

    def unlink(self) -> None:
        """Remove it if it exists.

        Raises:
            OSError: It can't be removed, or a level above it is a link.
        """
        with suppress(FileNotFoundError), self.parent.open_folder() as folder:
            folder.unlink(self.name)


def _open_level(name: str, above: int, *, creates: bool) -> int:
    try:
        return os.open(name, _TO_SEARCH | _NO_LINK, dir_fd=above)
    except FileNotFoundError:
        if not creates:
            raise
        with suppress(FileExistsError):  # another process was faster
            os.mkdir(name, dir_fd=above)
        return os.open(name, _TO_SEARCH | _NO_LINK, dir_fd=above)


def _link_error(path: Path) -> LeadsOutside:
    return LeadsOutside(f"{path} is a link, which Kinetoscope doesn't follow")


def in_its_folder(path: Path | PathBelow) -> PathBelow:
    """Return a path below its own folder, which is trusted; a path below another folder as it is."""
    return path if isinstance(path, PathBelow) else PathBelow(path.parent, path.name)
