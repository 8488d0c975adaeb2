"""The cache folder: its location, its entries, and eviction.

    <key>.trace            an entry: a trace
    <key>.timeline         an entry: a timeline
    <key>.ranks            an entry: a summary, for views of many ranks
    <key>.processes        an entry: the processes of a file that holds several
    .<entry>.<random>.part an entry that is being written, or whose process was killed

An entry's modification time says when it was last used.

Files with other names are never touched. Several processes may use the folder at once: if one removes an entry, others
read the trace again; if several write an entry, they write the same.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import mmap
import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from platformdirs import user_cache_path

from ...filesystem import atomic_write, is_url
from ...names.regex import regex
from . import version
from .columns import Reader, reading
from .private_folders import is_mine, privacy_problem
from .trace_entry import source_of

if TYPE_CHECKING:
    from ...names.processes import Process
    from ...timeline.core.model import Timeline
    from ...trace import Trace
    from .columns import Read
    from .summary_entry import PackedSummary

Value = TypeVar("Value")

logger = logging.getLogger(__name__)

FOLDER_VARIABLE, SIZE_VARIABLE = "KINETOSCOPE_CACHE", "KINETOSCOPE_CACHE_SIZE"
OFF = "off"
LARGEST = 4 << 30
SHARE_OF_FREE_DISK = 20  # a twentieth
ABANDONED_AFTER_S = 3600
LOOKED_AT_EVERY_S = 10  # how often free space is checked while entries are written: a folder may have thousands
FEWEST_EVENTS = 20_000  # of a file on this disk: they are read in 0.1 s, and an entry is opened in 0.02 s

_ENTRY = regex(r"[0-9a-f]{40}\.(?:trace|timeline|ranks|processes)")
TRACE, TIMELINE, SUMMARY, PROCESSES = ".trace", ".timeline", ".ranks", ".processes"
_FORMATS = {
    TRACE: "trace_entry",
    TIMELINE: "timeline_entry",
    SUMMARY: "summary_entry",
    PROCESSES: "processes_entry",
}
_PART = regex(r"\.[0-9a-f]{40}\.(?:trace|timeline|ranks|processes)\.[0-9a-f]+\.part")
_SIZE = regex(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


class _NoRoom(Exception):
    """There is no room for an entry in the folder."""


@dataclass(frozen=True)
class CachedTrace:
    """One entry: the path of its trace, or None if it can't be read; its size; Unix time of its last use."""

    path: str | None
    bytes: int
    used: float


class Cache:
    """The entries in one folder; the constructor doesn't access the disk.

    Args:
        folder: Created when the first entry is written.
        capacity_bytes: Size limit of all entries: by default 4 GiB, or a twentieth of the space that is free on the
            disk or used by entries, whichever is less.
    """

    def __init__(self, folder: Path, capacity_bytes: int | None = None) -> None:
        self.folder = folder
        self._capacity_bytes = capacity_bytes
        self._has_complained = False
        self._room_bytes, self._looked_at = 0, float("-inf")

    def open(self, path: str, stamp: Any) -> Trace | None:
        """The trace that was read from this path with this stamp; None if it must be read again."""
        trace: Trace | None = self._open(path, stamp, TRACE, _format_of(TRACE).read)
        return trace

    def holds(self, path: str, stamp: Any) -> bool:
        """Whether the trace that was read from this path with this stamp can be opened without reading the file."""
        with suppress(OSError, ValueError):
            return self._is_private() and (self.folder / _name(_source(path, stamp), TRACE)).is_file()
        return False

    def open_timeline(self, path: str, stamp: Any, trace: Trace) -> Timeline | None:
        """The timeline of the trace that was read from this path with this stamp; None if it must be computed."""
        read = _format_of(TIMELINE).read
        timeline: Timeline | None = self._open(path, stamp, TIMELINE, lambda reader: read(reader, trace))
        return timeline

    def open_summary(self, path: str, stamp: Any) -> PackedSummary | None:
        """The summary of the trace that was read from this path with this stamp; None if it must be computed."""
        summary: PackedSummary | None = self._open(path, stamp, SUMMARY, _format_of(SUMMARY).read)
        return summary

    def open_processes(self, path: str, stamp: Any) -> tuple[Process, ...] | None:
        """The processes that were found in this path with this stamp; None if that isn't known."""
        processes: tuple[Process, ...] | None = self._open(path, stamp, PROCESSES, _format_of(PROCESSES).read)
        return processes

    def write_processes(self, processes: Sequence[Process], path: str, stamp: Any) -> None:
        """Store the processes of a file; if that isn't possible, log it once and go on."""
        if may_cache(path):
            self._write_or_warn(path, stamp, PROCESSES, _format_of(PROCESSES).write, processes)

    def write(self, trace: Trace, path: str, stamp: Any) -> None:
        """Store a trace; if that isn't possible, log it once and go on."""
        self._write_or_warn(path, stamp, TRACE, _format_of(TRACE).write, trace)

    def write_timeline(self, timeline: Timeline, path: str, stamp: Any) -> None:
        """Store a timeline; if that isn't possible, log it once and go on."""
        self._write_or_warn(path, stamp, TIMELINE, _format_of(TIMELINE).write, timeline)

    def write_summary(self, summary: PackedSummary, path: str, stamp: Any) -> None:
        """Store a summary; if that isn't possible, log it once and go on."""
        self._write_or_warn(path, stamp, SUMMARY, _format_of(SUMMARY).write, summary)

    def _open(self, path: str, stamp: Any, kind: str, read_entry: Callable[[Reader], Value]) -> Value | None:
        try:
            source = _source(path, stamp)
            entry = self.folder / _name(source, kind)
            if not self._is_private():
                return None
            with _opened_alone(entry) as file:
                reader = Reader(*_reading(file, is_mapped=kind == TIMELINE), _format_of(kind).MAGIC)
                if reader.head.get("source") != source:
                    raise ValueError("it is of another file")
                value = read_entry(reader)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            logger.info("The cache entry of %s can't be used (%s); the file is read again.", path, error)
            return None
        with suppress(OSError):
            os.utime(entry)
        return value

    def _is_private(self) -> bool:
        """Whether only this user can write to the folder; the reason why not is logged once.

        Raises:
            OSError: There is no folder.
        """
        problem = privacy_problem(self.folder)
        if problem:
            self._warn(f"isn't used: {problem}")
        return not problem

    def problem(self) -> str:
        """Why the folder isn't used; empty if it is, or doesn't exist yet."""
        try:
            return privacy_problem(self.folder)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return error.strerror or str(error)

    def _warn(self, how: str) -> None:
        if not self._has_complained:
            self._has_complained = True
            logger.warning("The cache %s %s. Traces are read again.", self.folder, how)

    def _write_or_warn(
        self, path: str, stamp: Any, kind: str, write: Callable[[IO[bytes], Value, dict[str, Any]], None], value: Value
    ) -> None:
        try:
            source = _source(path, stamp)
            self._write(_name(source, kind), lambda file: write(file, value, source))
        except (OSError, ValueError, TypeError, RecursionError, MemoryError) as error:
            self._warn(f"can't be written ({getattr(error, 'strerror', None) or repr(error)})")

    def _write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._is_private():
            return
        with suppress(_NoRoom), atomic_write(str(self.folder / name), is_private=True) as file:
            write(file)
            if not self._makes_room_for(file.tell(), Path(file.name).name):
                raise _NoRoom

    def _makes_room_for(self, size: int, mine: str) -> bool:
        """Remove abandoned files, and entries in least-recently-used order; False if there can't be enough room.

        Files that others are writing, or abandoned recently, count as used space.
        """
        if size <= self._room_bytes and time.monotonic() < self._looked_at + LOOKED_AT_EVERY_S:
            self._room_bytes -= size
            return True
        capacity = self.capacity_bytes()
        if size > capacity:
            return False
        oldest_in_use = time.time() - ABANDONED_AFTER_S
        parts = [(part, info) for part, info in self._files(_PART) if part.name != mine]
        used_bytes = sum(info.st_size for part, info in parts if info.st_mtime >= oldest_in_use or not _remove(part))
        entries = sorted(self._files(_ENTRY), key=lambda file: file[1].st_mtime_ns)
        if used_bytes + size > capacity:
            return False
        used_bytes += sum(info.st_size for _, info in entries)
        for entry, info in entries:
            if used_bytes + size <= capacity:
                break
            used_bytes -= info.st_size * _remove(entry)
        self._room_bytes, self._looked_at = capacity - used_bytes - size, time.monotonic()
        return True

    def capacity_bytes(self) -> int:
        """Size limit of all entries."""
        if self._capacity_bytes is not None:
            return self._capacity_bytes
        there = next((folder for folder in (self.folder, *self.folder.parents) if folder.exists()), self.folder)
        used_bytes = sum(info.st_size for kind in (_ENTRY, _PART) for _, info in self._files(kind))
        return min(LARGEST, (shutil.disk_usage(there).free + used_bytes) // SHARE_OF_FREE_DISK)

    def unfinished_bytes(self) -> int:
        """Size of files that are being written, or were left over by a killed process."""
        return sum(info.st_size for _, info in self._files(_PART))

    def entries(self) -> list[CachedTrace]:
        """The entries, most recently used first."""
        traces = []
        for entry, info in self._files(_ENTRY):
            path = None
            with suppress(OSError, ValueError, LookupError), _opened_alone(entry) as file:
                path = str(source_of(*_reading(file), _format_of(entry.suffix).MAGIC)["path"])
            traces.append(CachedTrace(path, info.st_size, info.st_mtime))
        return sorted(traces, key=lambda trace: -trace.used)

    def clear(self) -> int:
        """Remove every entry and unfinished file; return the freed bytes."""
        return sum(info.st_size * _remove(path) for kind in (_ENTRY, _PART) for path, info in self._files(kind))

    def _files(self, kind: re.Pattern[str]) -> Iterator[tuple[Path, os.stat_result]]:
        """The files whose names are of that kind."""
        try:
            if not self._is_private():
                return
            with os.scandir(self.folder) as scan:
                files = [item.name for item in scan if item.is_file(follow_symlinks=False)]
        except OSError:  # the folder doesn't exist yet, or can't be listed
            return
        for name in filter(kind.fullmatch, files):
            with suppress(OSError):  # it was removed in the meantime
                yield self.folder / name, (self.folder / name).lstat()


@contextmanager
def _opened_alone(entry: Path) -> Iterator[IO[bytes]]:
    """An entry, opened for reading.

    Raises:
        OSError: It doesn't exist, or is a link, not a file, or another user's.
    """
    flags = sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
    with os.fdopen(os.open(entry, os.O_RDONLY | flags), "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or not is_mine(info):
            raise PermissionError(errno.EACCES, "It is no file of this user", str(entry))
        yield file


def _reading(file: IO[bytes], *, is_mapped: bool = False) -> tuple[Read, int]:
    """A function that reads parts of a file, and its size; if mapped, parts are views."""
    size = os.fstat(file.fileno()).st_size
    if is_mapped and size:
        return reading(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))), size

    def read(start: int, count: int) -> bytes:
        file.seek(start)
        return file.read(count)

    return read, size


def _format_of(kind: str) -> Any:
    """The module that writes and reads entries of a kind; two of them import what only a timeline or a run needs."""
    return import_module(f".{_FORMATS[kind]}", __package__)


def configured_cache() -> Cache | None:
    """The cache that the environment configures; None if it is off.

    KINETOSCOPE_CACHE is its folder, or `off`; KINETOSCOPE_CACHE_SIZE is its size limit, such as 500M or 20G.
    """
    setting = os.environ.get(FOLDER_VARIABLE, "")
    if setting.lower() == OFF:
        return None
    try:
        folder = Path(setting).expanduser().absolute() if setting else _default_folder()
    except RuntimeError:  # the user has no home folder
        return None
    return Cache(folder, _size(os.environ.get(SIZE_VARIABLE, ""))) if folder.is_absolute() else None


def _default_folder() -> Path:
    """The system's folder for a user's caches; a relative path if the user has no home folder."""
    return user_cache_path("kinetoscope", appauthor=False, opinion=False)


def is_worth_caching(trace: Trace, path: str) -> bool:
    """Whether opening an entry is faster than reading the file; it isn't for a small local one."""
    return may_cache(path) if is_url(path) else trace.meta.events >= FEWEST_EVENTS


def may_cache(path: str) -> bool:
    """Whether an entry may contain the path of its file.

    A URL with a signature or a password is no stable key, and must not be written to disk.
    """
    if not is_url(path):
        return True
    address = urlsplit(path)
    return not address.query and not address.password


def _size(text: str) -> int | None:
    """Parse a size in bytes; None, with a log line, if it is invalid."""
    if not text.strip():
        return None
    match = _SIZE.fullmatch(text.strip())
    if not match:
        logger.warning("%s=%r isn't a size such as 500M or 20G. The default is used.", SIZE_VARIABLE, text)
        return None
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


def _source(path: str, stamp: Any) -> dict[str, Any]:
    """The source of an entry, as it is after a round trip through JSON."""
    source = {"path": path, "stamp": stamp, "version": version.sources_version()}
    as_stored: dict[str, Any] = json.loads(json.dumps(source, default=str))
    return as_stored


def _name(source: Mapping[str, Any], kind: str) -> str:
    return hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()[:40] + kind


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:  # another process removed it first, or still reads it (on Windows)
        return False
    return True
