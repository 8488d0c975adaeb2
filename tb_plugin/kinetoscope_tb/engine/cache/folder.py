"""The cache folder: where it is, what lies in it, and what must go.

    <key>.trace            an entry: a trace
    <key>.timeline         an entry: a timeline
    <key>.ranks            an entry: a summary, for views of many ranks
    .<entry>.<random>.part an entry that is being written, or whose process was killed

An entry's modification time says when it was last used.

Files with other names are not ours and are never touched. Several processes may work here at once: an entry that
another process removes is read anew, one that another process writes too is replaced by the same.
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from ...arrays.private_folders import is_mine, privacy_problem
from ...filesystem import atomic_write, is_url

if TYPE_CHECKING:
    from ...timeline import Timeline
    from ...trace import Trace
    from .columns import Read, Reader
    from .summary_entry import PackedSummary

Value = TypeVar("Value")

logger = logging.getLogger(__name__)

FOLDER_VARIABLE, SIZE_VARIABLE = "KINETOSCOPE_CACHE", "KINETOSCOPE_CACHE_SIZE"
OFF = "off"
LARGEST = 4 << 30
SHARE_OF_FREE_DISK = 20  # one part in
ABANDONED_AFTER_S = 3600
LOOKED_AT_EVERY_S = 10  # so often, while entries are written, how much room there is: a folder may hold thousands
FEWEST_EVENTS = 20_000  # of a file on this disk: they are read in 0.1 s, and an entry is opened in 0.02 s

_ENTRY = re.compile(r"[0-9a-f]{40}\.(?:trace|timeline|ranks)")
TRACE, TIMELINE, SUMMARY = ".trace", ".timeline", ".ranks"
_PART = re.compile(r"\.[0-9a-f]{40}\.(?:trace|timeline|ranks)\.[0-9a-f]+\.part")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


class _NoRoom(Exception):
    """An entry that has no room in the folder."""


@dataclass(frozen=True)
class CachedTrace:
    """One entry: the trace file that it is of, or None if it can't be read; its size; Unix time of its last use."""

    path: str | None
    bytes: int
    used: float


class Cache:
    """The entries in one folder; making one touches no disk.

    Args:
        folder: Made when the first entry is written.
        capacity_bytes: How much all entries may take: if not given, 4 GiB or the twentieth part of what is free on that
            disk and taken by entries, whichever is less.
    """

    def __init__(self, folder: Path, capacity_bytes: int | None = None) -> None:
        self.folder = folder
        self._capacity_bytes = capacity_bytes
        self._has_complained = False
        self._room_bytes, self._looked_at = 0, float("-inf")

    def open(self, path: str, stamp: Any) -> Trace | None:
        """The trace that was read from this path when it had this stamp; None if it must be read anew."""
        from .trace_entry import opened

        return self._opened(path, stamp, TRACE, opened)

    def open_timeline(self, path: str, stamp: Any, trace: Trace) -> Timeline | None:
        """The timeline of the trace that was read from this path when it had this stamp; None if it must be made."""
        from .timeline_entry import opened

        return self._opened(path, stamp, TIMELINE, lambda reader: opened(reader, trace))

    def open_summary(self, path: str, stamp: Any) -> PackedSummary | None:
        """The summary of the trace that was read from this path when it had this stamp; None if it must be made."""
        from .summary_entry import opened

        return self._opened(path, stamp, SUMMARY, opened)

    def write(self, trace: Trace, path: str, stamp: Any) -> None:
        """Keep a trace; if that isn't possible, say so once and go on."""
        from .trace_entry import write

        self._write_or_complain(path, stamp, TRACE, write, trace)

    def write_timeline(self, timeline: Timeline, path: str, stamp: Any) -> None:
        """Keep a timeline; if that isn't possible, say so once and go on."""
        from .timeline_entry import write

        self._write_or_complain(path, stamp, TIMELINE, write, timeline)

    def write_summary(self, summary: PackedSummary, path: str, stamp: Any) -> None:
        """Keep a summary; if that isn't possible, say so once and go on."""
        from .summary_entry import write

        self._write_or_complain(path, stamp, SUMMARY, write, summary)

    def _opened(self, path: str, stamp: Any, kind: str, opened: Callable[[Reader], Value]) -> Value | None:
        from .columns import Reader

        try:
            source = _source(path, stamp)
            entry = self.folder / _name(source, kind)
            if not self._is_private():
                return None
            with _opened_alone(entry) as file:
                reader = Reader(*_reading(file, is_mapped=kind == TIMELINE), _magic_of(kind))
                if reader.head.get("source") != source:
                    raise ValueError("it is of another file")
                value = opened(reader)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            logger.info("The cached form of %s can't be used (%s); it is made anew.", path, error)
            return None
        with suppress(OSError):
            os.utime(entry)
        return value

    def _is_private(self) -> bool:
        """Whether nobody else can put entries into the folder; why they can is said once.

        Raises:
            OSError: There is no folder.
        """
        problem = privacy_problem(self.folder)
        if problem:
            self._complain(f"isn't used: {problem}")
        return not problem

    def problem(self) -> str:
        """Why the folder isn't used; empty if it is, or if there is none yet."""
        try:
            return privacy_problem(self.folder)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return error.strerror or str(error)

    def _complain(self, how: str) -> None:
        if not self._has_complained:
            self._has_complained = True
            logger.warning("The cache %s %s. Traces are read anew.", self.folder, how)

    def _write_or_complain(
        self, path: str, stamp: Any, kind: str, write: Callable[[IO[bytes], Value, dict[str, Any]], None], value: Value
    ) -> None:
        try:
            source = _source(path, stamp)
            self._write(_name(source, kind), lambda file: write(file, value, source))
        except (OSError, ValueError, TypeError, RecursionError, MemoryError) as error:
            self._complain(f"can't be written ({getattr(error, 'strerror', None) or repr(error)})")

    def _write(self, name: str, write: Callable[[IO[bytes]], None]) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._is_private():
            return
        with suppress(_NoRoom), atomic_write(str(self.folder / name), is_private=True) as file:
            write(file)
            if not self._makes_room_for(file.tell(), Path(file.name).name):
                raise _NoRoom

    def _makes_room_for(self, size: int, mine: str) -> bool:
        """Remove what was abandoned, and entries, the one used longest ago first; False if there can't be room.

        What others are writing, or left behind a moment ago, takes room too.
        """
        if size <= self._room_bytes and time.monotonic() < self._looked_at + LOOKED_AT_EVERY_S:
            self._room_bytes -= size
            return True
        capacity = self.capacity_bytes()
        if size > capacity:
            return False
        abandoned = time.time() - ABANDONED_AFTER_S
        parts = [(part, info) for part, info in self._files(_PART) if part.name != mine]
        used_bytes = sum(info.st_size for part, info in parts if info.st_mtime >= abandoned or not _remove(part))
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
        """How much all entries may take."""
        if self._capacity_bytes is not None:
            return self._capacity_bytes
        there = next((folder for folder in (self.folder, *self.folder.parents) if folder.exists()), self.folder)
        used_bytes = sum(info.st_size for kind in (_ENTRY, _PART) for _, info in self._files(kind))
        return min(LARGEST, (shutil.disk_usage(there).free + used_bytes) // SHARE_OF_FREE_DISK)

    def unfinished_bytes(self) -> int:
        """How much is taken by what is being written, or was left behind when a process ended."""
        return sum(info.st_size for _, info in self._files(_PART))

    def entries(self) -> list[CachedTrace]:
        """What is kept, the one used last first."""
        from .trace_entry import source_of

        cached = []
        for entry, info in self._files(_ENTRY):
            path = None
            with suppress(OSError, ValueError, LookupError), _opened_alone(entry) as file:
                path = str(source_of(*_reading(file), _magic_of(entry.suffix))["path"])
            cached.append(CachedTrace(path, info.st_size, info.st_mtime))
        return sorted(cached, key=lambda one: -one.used)

    def clear(self) -> int:
        """Remove every entry, and what is being written; how many bytes that freed."""
        return sum(info.st_size * _remove(path) for kind in (_ENTRY, _PART) for path, info in self._files(kind))

    def _files(self, kind: re.Pattern[str]) -> Iterator[tuple[Path, os.stat_result]]:
        """The files whose names are of that kind."""
        try:
            if not self._is_private():
                return
            with os.scandir(self.folder) as scan:
                files = [item.name for item in scan if item.is_file(follow_symlinks=False)]
        except OSError:  # there is no folder yet, or it can't be listed: then nothing of it can be used
            return
        for name in filter(kind.fullmatch, files):
            with suppress(OSError):  # it went away in the meantime
                yield self.folder / name, (self.folder / name).lstat()


@contextmanager
def _opened_alone(entry: Path) -> Iterator[IO[bytes]]:
    """An entry, opened for reading.

    Raises:
        OSError: There is none, or it is a link, no file, or another user's.
    """
    flags = sum(getattr(os, name, 0) for name in ("O_BINARY", "O_NOFOLLOW", "O_NONBLOCK"))
    with os.fdopen(os.open(entry, os.O_RDONLY | flags), "rb") as file:
        info = os.fstat(file.fileno())
        if not stat.S_ISREG(info.st_mode) or not is_mine(info):
            raise PermissionError(errno.EACCES, "It is no file of this user", str(entry))
        yield file


def _reading(file: IO[bytes], *, is_mapped: bool = False) -> tuple[Read, int]:
    """Reads parts of a file, and its size; mapped, they are views of it."""
    from .columns import reading

    size = os.fstat(file.fileno()).st_size
    if is_mapped and size:
        return reading(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))), size

    def read(start: int, count: int) -> bytes:
        file.seek(start)
        return file.read(count)

    return read, size


def _magic_of(kind: str) -> bytes:
    from . import summary_entry, timeline_entry, trace_entry

    return {TRACE: trace_entry.MAGIC, TIMELINE: timeline_entry.MAGIC, SUMMARY: summary_entry.MAGIC}[kind]


def configured() -> Cache | None:
    """The cache that the environment asks for; None if it is turned off.

    KINETOSCOPE_CACHE is its folder, or `off`; KINETOSCOPE_CACHE_SIZE is what it may take, such as 500M or 20G.
    """
    named = os.environ.get(FOLDER_VARIABLE, "")
    if named.lower() == OFF:
        return None
    try:
        folder = Path(named).expanduser().absolute() if named else _default_folder()
    except RuntimeError:  # the user has no home folder
        return None
    return Cache(folder, _size(os.environ.get(SIZE_VARIABLE, ""))) if folder.is_absolute() else None


def _default_folder() -> Path:
    """Where the system keeps a user's caches; a relative path if the user has no home folder."""
    from platformdirs import user_cache_path

    return user_cache_path("kinetoscope", appauthor=False, opinion=False)


def is_worth_caching(trace: Trace, path: str) -> bool:
    """Whether opening an entry is faster than reading the file, as it isn't for a small one on this disk."""
    return may_cache(path) if is_url(path) else trace.meta.events >= FEWEST_EVENTS


def may_cache(path: str) -> bool:
    """Whether an entry may say what it is of.

    An address with a signature or a password in it is no name to remember a file by, nor to be written down.
    """
    if not is_url(path):
        return True
    address = urlsplit(path)
    return not address.query and not address.password


def _size(text: str) -> int | None:
    """The number of bytes; None, which a log line tells, for what says none."""
    if not text.strip():
        return None
    match = _SIZE.fullmatch(text.strip())
    if not match:
        logger.warning("%s=%r is no size; say 500M or 20G. The default is used.", SIZE_VARIABLE, text)
        return None
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2].lower() or " "))


def _source(path: str, stamp: Any) -> dict[str, Any]:
    """What an entry is of, as JSON gives it back."""
    from .version import sources_version

    source = {"path": path, "stamp": stamp, "version": sources_version()}
    as_stored: dict[str, Any] = json.loads(json.dumps(source, default=str))
    return as_stored


def _name(source: Mapping[str, Any], kind: str) -> str:
    return hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()[:40] + kind


def _remove(path: Path) -> bool:
    try:
        path.unlink()
    except OSError:  # another process was faster, or still reads it where that matters (Windows)
        return False
    return True
