"""Which files hold several processes, remembered from reading them: in memory and in the cache on disk."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from ..discovery import with_processes
from ..filesystem import entry_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..discovery import Listing, TraceFile
    from ..names.processes import Process
    from .cache import Cache


class FileProcesses:
    """The processes of files.

    Args:
        cache: The cache folder, if there is one.
    """

    def __init__(self, cache: Cache | None) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._known: dict[str, tuple[Any, tuple[Process, ...]]] = {}
        self._expanded: tuple[Listing, Listing] | None = None

    def note(self, file: TraceFile, processes: Sequence[Process]) -> None:
        """Remember what reading a file has shown."""
        if not processes or self._processes(file) == tuple(processes):
            return
        with self._lock:
            self._known[file.path] = file.stamp, tuple(processes)
            self._expanded = None
        entry = entry_at(file.path) if self._cache is not None else None
        if self._cache is not None and entry is not None and entry.stamp == file.stamp and entry.stamp[-1]:
            self._cache.write_processes(tuple(processes), file.path, file.stamp)

    def expand(self, listing: Listing) -> Listing:
        """The listing with the processes of the files that are known to hold several."""
        with self._lock:
            if self._expanded is not None and self._expanded[0] is listing:
                return self._expanded[1]
        expansion = with_processes(listing, self._processes)
        with self._lock:
            self._expanded = listing, expansion
        return expansion

    def _processes(self, file: TraceFile) -> tuple[Process, ...]:
        stamp, processes = self._known.get(file.path, (None, ()))
        if file.path in self._known and stamp == file.stamp:
            return processes
        from_disk = None if self._cache is None else self._cache.open_processes(file.path, file.stamp)
        with self._lock:
            self._known[file.path] = file.stamp, from_disk or ()
        return from_disk or ()
