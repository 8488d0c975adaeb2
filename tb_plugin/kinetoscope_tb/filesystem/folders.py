"""The folders and files under a path: names, sizes and stamps; no file is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from .urls import FLAT, file_system, is_url, kind_of, last_part, words

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

MOST_FOLDERS = 2000  # of a remote place that is listed folder by folder

_TIMES = ("mtime", "LastModified", "last_modified", "Last-Modified", "updated", "created")
_STAMPS = ("ETag", "etag", *_TIMES)

Predicate = Callable[[str], bool]


@dataclass(frozen=True)
class Entry:
    """A file.

    Args:
        name: Its name, without folders.
        path: What to open.
        bytes: Its size; None if the storage doesn't report it, or if it is a pipe or a device.
        stamp: Changes whenever the file does.
        modified_ns: When it was last changed, in ns since 1970; 0 if the storage doesn't report it.
    """

    name: str
    path: str
    bytes: int | None
    stamp: Any
    modified_ns: int = 0


@dataclass(frozen=True)
class Folder:
    """A folder: its name relative to the root, the selected files, and why some are missing."""

    name: str
    entries: tuple[Entry, ...] = ()
    problem: str = ""


def folders(path: str, selects: Predicate) -> Iterator[Folder]:
    """Every folder under a path with the files whose names are selected; nothing hidden.

    Links are followed, and each folder is entered once. A folder that can't be listed has a problem.
    """
    if not is_url(path):
        yield from _local_folders(path, selects)
        return
    try:
        files, root = file_system(path)
        yield from (_flat_folders if kind_of(path) in FLAT else _remote_folders)(files, root, path, selects)
    except Exception as error:  # noqa: BLE001  # each library has errors of its own
        yield Folder("", problem=words(error, path))


def entry_at(path: str) -> Entry | None:
    """The file at exactly this path; None if there is none, or a folder."""
    if is_url(path):
        return _remote_entry_at(path)
    try:
        info = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):  # no file can have a name with a zero byte
        return None
    return None if stat.S_ISDIR(info.st_mode) else _entry(last_part(path), path, info)


# ---- this disk


def exists(path: str) -> bool:
    """Whether a local path is that of a file or a folder; true of names that none can have, which listing explains."""
    try:
        os.stat(path)  # noqa: PTH116
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return True


def dangling_link(path: str) -> str | None:
    """The link on the way to a local path that leads to nothing; None if there is none."""
    links = (part for part in map(str, (Path(path), *Path(path).parents)) if os.path.islink(part))  # noqa: PTH114
    return next((link for link in links if not exists(link)), None)


def names_in(folder: str, most: int = 1000) -> list[str]:
    """The first names in a local folder; none if it can't be listed."""
    try:
        with os.scandir(folder) as scan:
            return [item.name for item in islice(scan, most)]
    except (OSError, ValueError):
        return []


def _local_folders(root: str, selects: Predicate) -> Iterator[Folder]:
    stack, seen_folders = [("", root)], _identities(root)
    while stack:
        name, path = stack.pop()
        try:
            with os.scandir(path) as scan:
                items = sorted(scan, key=lambda item: (item.is_symlink(), item.name))
        except OSError as error:
            yield Folder(name, problem=words(error))
            continue
        except ValueError:  # a zero byte, or half a surrogate pair
            yield Folder(name, problem="no folder can have this name")
            continue
        entries = []
        for item in items:
            if item.name.startswith("."):
                continue
            try:
                if item.is_dir():
                    identity = _identity(item.path, item.stat())
                    if identity not in seen_folders:
                        seen_folders.add(identity)
                        stack.append((f"{name}/{item.name}".lstrip("/"), item.path))
                elif selects(item.name):
                    entries.append(_entry(item.name, item.path, item.stat()))
            except OSError:  # a dangling link, or a file that was deleted in the meantime
                continue
        yield Folder(name, tuple(entries))


def _identities(root: str) -> set[object]:
    """The identity of the folder where a listing begins; none if it can't be listed."""
    try:
        return {_identity(root, os.stat(root))}  # noqa: PTH116
    except (OSError, ValueError):
        return set()


def _identity(path: str, info: os.stat_result) -> object:
    """An identity of a folder, the same for every path to it."""
    return (info.st_dev, info.st_ino) if info.st_ino else path


def _entry(name: str, path: str, info: os.stat_result) -> Entry:
    size = info.st_size if stat.S_ISREG(info.st_mode) else None  # a pipe or a device has none
    return Entry(name, path, size, local_stamp(info), info.st_mtime_ns)


def local_stamp(info: os.stat_result) -> tuple[int, int, int, int]:
    """A stamp that changes whenever a local file does, even if its size and times are set to those of another file.

    `cp -p` and `rsync -t` set the modification time (mtime), but the change time (ctime) can't be set. Windows reports
    change time and inode only for opened files.
    """
    has_inode = os.name != "nt"
    number, change_ns = (info.st_ino, info.st_ctime_ns) if has_inode else (0, 0)
    return info.st_size, number, change_ns, info.st_mtime_ns


# ---- elsewhere


def _flat_folders(files: AbstractFileSystem, root: str, url: str, selects: Predicate) -> Iterator[Folder]:
    """All files under a prefix, in one request."""
    files.invalidate_cache(root)
    by_folder: dict[str, list[Entry]] = {}
    entries = files.find(root, detail=True)
    if not entries and not files.exists(root):
        raise FileNotFoundError(url)
    start = len(root.rstrip("/")) + 1
    for key, info in entries.items():
        folder, _, name = key[start:].rpartition("/")
        is_hidden = any(part.startswith(".") for part in key[start:].split("/"))
        if selects(name) and not is_hidden and info["type"] == "file":
            by_folder.setdefault(folder, []).append(_remote_entry(f"{url.rstrip('/')}/{key[start:]}", name, info))
    for folder in sorted(by_folder):
        yield Folder(folder, tuple(by_folder[folder]))


def _remote_folders(files: AbstractFileSystem, root: str, url: str, selects: Predicate) -> Iterator[Folder]:
    stack, seen_folders = [("", root)], {root.rstrip("/")}
    while stack:
        name, path = stack.pop()
        if len(seen_folders) > MOST_FOLDERS:
            yield Folder(name, problem=f"there are more than {MOST_FOLDERS} folders; choose one with fewer")
            return
        try:
            # A web server answers with a page of links, and only for a folder.
            items = files.ls(path if kind_of(url) != "http" else f"{path.rstrip('/')}/", detail=True)
        except Exception as error:  # noqa: BLE001  # each library has errors of its own
            yield Folder(name, problem=words(error, url))
            continue
        entries = []
        for item in sorted(items, key=lambda item: str(item["name"])):
            key = item["name"].rstrip("/")
            part = unquote(last_part(key)) if kind_of(url) == "http" else last_part(key)
            if part.startswith(".") or key in seen_folders:
                continue
            if item["type"] == "directory":
                seen_folders.add(key)
                stack.append((f"{name}/{part}".lstrip("/"), key))
            elif selects(part):
                entries += _entries_of(files, item, key, part, url)
        yield Folder(name, tuple(entries))


def _entries_of(files: AbstractFileSystem, item: dict[str, Any], key: str, name: str, url: str) -> list[Entry]:
    """The file as an entry; a page of links has no sizes. None if it was deleted in the meantime."""
    path = key if kind_of(url) == "http" else f"{url.partition('://')[0]}://{key}"
    if item.get("size") is not None:
        return [_remote_entry(path, name, item)]
    try:
        return [_remote_entry(path, name, files.info(key))]
    except OSError:
        return []


def _remote_entry_at(url: str) -> Entry | None:
    try:
        files, key = file_system(url)
        files.invalidate_cache(key)
        info = files.info(key)
    except Exception:  # noqa: BLE001  # listing it as a folder reports what is wrong
        return None
    is_page = kind_of(url) == "http" and (url.endswith("/") or info.get("mimetype") == "text/html")
    return None if info["type"] != "file" or is_page else _remote_entry(url, last_part(url), info)


def _remote_entry(path: str, name: str, info: dict[str, Any]) -> Entry:
    return Entry(name, path, info.get("size"), remote_stamp(info), _modified_ns(info))


def _modified_ns(info: dict[str, Any]) -> int:
    """The modification time that a storage reports: as a date, as ISO 8601, as HTTP writes it, or in seconds."""
    value = next((info[key] for key in _TIMES if key in info), None)
    try:
        if isinstance(value, str):
            value = (
                datetime.fromisoformat(value.replace("Z", "+00:00"))
                if "T" in value[:11]
                else parsedate_to_datetime(value)
            )
        seconds = value.timestamp() if isinstance(value, datetime) else float(value or 0)
        return int(seconds * 1e9)
    except (TypeError, ValueError, OverflowError):  # whatever a server sends
        return 0


def remote_stamp(info: dict[str, Any]) -> tuple[int | None, str]:
    """A stamp that changes whenever a remote file does, as far as its storage reports it."""
    return info.get("size"), str(next((info[key] for key in _STAMPS if key in info), ""))
