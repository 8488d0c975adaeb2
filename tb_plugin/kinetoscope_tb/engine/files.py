"""One file as a trace: opened from the cache, or read and written to the cache."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeVar

from ..errors import KinetoscopeError, TraceError
from ..filesystem import entry_at
from ..trace.communication import with_patterns
from .cache import is_worth_caching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..discovery import TraceFile
    from ..reader import Progress
    from ..timeline.core.model import Timeline
    from ..trace import Trace
    from .cache import Cache

logger = logging.getLogger(__name__)
Content = TypeVar("Content")


class Read(Protocol):
    """A function that reads a file."""

    def __call__(
        self, path: str, progress: Callable[[Progress], None] | None, process: str | None = None, /
    ) -> Iterator[Trace]:
        """The traces of the file's processes, the given one first, by default the first of the file."""


def read_traces(
    path: str,
    progress: Callable[[Progress], None] | None = None,
    process: str | None = None,
    *,
    threads: int | None = None,
) -> Iterator[Trace]:
    """Read one trace file, by default with as many scanning threads as the reader can feed.

    Yields:
        The trace of each process, the given one first; each is built when it is requested.

    Raises:
        TraceError: The file can't be used for any reason; bugs of ours are logged with a traceback.
    """
    reader = import_module("..reader", __package__)  # 41 modules, which a trace of the cache doesn't need
    traces = what_is_read(path, lambda: reader.read_each(path, process, progress=progress, threads=threads))
    while (trace := what_is_read(path, lambda: next(traces, None))) is not None:
        yield trace


def what_is_read(path: str, read: Callable[[], Content]) -> Content:
    """What a reader makes of a file: the boundary of every file that is read in the background.

    Raises:
        TraceError: The file can't be used for any reason; bugs of ours are logged with a traceback.
    """
    try:
        return read()
    except KinetoscopeError:
        raise
    except OSError as error:
        raise TraceError(path, f"the file can't be read: {error.strerror or error}.") from error
    except MemoryError as error:
        raise TraceError(path, "there isn't enough memory to read it. Record fewer steps.") from error
    except Exception as error:
        logger.exception("Reading %s failed", path)
        problem = f"reading it failed because of a bug in Kinetoscope ({type(error).__name__}). Please report it."
        raise TraceError(path, problem) from error


def open_or_read(
    file: TraceFile,
    cache: Cache | None,
    progress: Callable[[Progress], None] | None = None,
    read: Read = read_traces,
) -> tuple[Trace, bool]:
    """The trace in a file, and whether it was read from the file, not opened from the cache.

    Raises:
        TraceError: The file can't be used.
    """
    trace, others = open_or_read_each(file, cache, progress, read)
    return trace, others is not None


def open_or_read_each(
    file: TraceFile,
    cache: Cache | None,
    progress: Callable[[Progress], None] | None = None,
    read: Read = read_traces,
) -> tuple[Trace, Iterator[Trace] | None]:
    """The trace in a file, and if it was read, not opened from the cache, the traces of the file's other processes.

    Raises:
        TraceError: The file can't be used.
    """
    trace = None if cache is None else cache.open(file.path, file.version)
    if trace is not None:
        return trace, None
    traces = (with_patterns(each_trace, file.patterns) for each_trace in read(file.path, progress, file.process))
    return next(traces), traces


def write_to_cache(trace: Trace, file: TraceFile, cache: Cache, timeline: Timeline | None = None) -> None:
    """Write a trace or its timeline to the cache, unless its file changed in between."""
    if is_worth_caching(trace, file.path):
        entry = entry_at(file.path)
        if entry is not None and entry.stamp == file.stamp and entry.stamp[-1]:  # not every server reports it
            if timeline is None:
                cache.write(trace, file.path, file.version)
            else:
                cache.write_timeline(timeline, file.path, file.version)
