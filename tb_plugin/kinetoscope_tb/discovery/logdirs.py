"""The folders that are searched for traces."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..filesystem import is_url, last_part

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable


@dataclass(frozen=True)
class Logdir:
    """A folder (or one trace file) to list, and the name that its runs begin with."""

    path: str
    name: str = ""


def parse_logdirs(logdir: str | None, logdir_spec: str | None = None) -> tuple[Logdir, ...]:
    """The logdirs of TensorBoard's two flags, by TensorBoard's own rules.

    `--logdir` is one path. `--logdir_spec` is a comma list of `path` or `name:path`; a name is put before the names of
    its runs, and where several paths have none, the last part of the path is.
    """
    parts = [logdir] if logdir else [part for part in (logdir_spec or "").split(",") if part]
    pairs = [("", logdir)] if logdir else [_name_and_path(part) for part in parts]
    is_only_one = len(pairs) == 1
    return tuple(Logdir(absolute(path), name or ("" if is_only_one else last_part(path))) for name, path in pairs)


def _name_and_path(part: str) -> tuple[str, str]:
    name, colon, path = part.partition(":")
    is_path = not colon or part.startswith("/") or is_url(part) or os.path.splitdrive(part)[0]
    return ("", part) if is_path else (name, path)


def logdirs_of(paths: Iterable[str]) -> tuple[Logdir, ...]:
    """The logdirs of paths that the user gave; each folder, or folder of a file, has a name of its own.

    Files of one folder are one run. Where several folders have the same name, more of their paths tells them apart.
    """
    logdirs = {path: _folder_of(path) for path in map(absolute, paths)}
    names = _shortest_names(set(logdirs.values()))
    return tuple(Logdir(path, names[folder]) for path, folder in logdirs.items())


def _folder_of(path: str) -> str:
    """The path itself if it is a folder, else the folder of the file; of a URL by its name alone."""
    is_file = "." in last_part(path) if is_url(path) else os.path.isfile(path)  # noqa: PTH113  # paths are texts here
    plain = path.replace("\\", "/")
    return plain.rpartition("/")[0] if is_file else plain


def _shortest_names(folders: Collection[str]) -> dict[str, str]:
    """The last parts of each folder's path, as many as make the names differ; none if there is only one."""
    if len(folders) == 1:
        return dict.fromkeys(folders, "")
    parts = {folder: folder.split("/") for folder in folders}
    for count in range(1, max(map(len, parts.values())) + 1):
        names = {folder: "/".join(filter(None, path[-count:])) for folder, path in parts.items()}
        if len(set(names.values())) == len(names):
            break
    return names


def absolute(path: str) -> str:
    """The absolute path; for a URL, without a trailing slash."""
    return path.rstrip("/") if is_url(path) else os.path.abspath(os.path.expanduser(path))  # noqa: PTH100, PTH111
