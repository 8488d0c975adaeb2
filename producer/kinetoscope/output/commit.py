"""From a raw file to a complete trace or memory snapshot, in one atomic step.

It is written under a hidden name next to its final one, forced to disk and renamed. A reader sees a complete file or
none, whatever happens in between; an older file of that name stays unless overwriting is allowed.
"""

from __future__ import annotations

import gzip
import itertools
import shutil
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from ..atomic_write import atomic_file
from ..errors import SaveError
from ..path_below import in_its_folder
from ..untrusted_files import open_plain
from .merge_events import merge_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from ..atomic_write import AtomicFile
    from ..path_below import OpenFolder, PathBelow
    from .merge_events import Damage

    BeforePublishing = Callable[[AtomicFile, str], None]
    """Takes the complete file, with its final name, and what was wrong with the raw one."""

# Traces are repetitive: level 4 is within a few percent of level 9 in a third of the time.
_LEVEL = 4
_GZIP = b"\x1f\x8b"
_COPY_BYTES = 1 << 20


def check_raw(raw: Path) -> None:
    """Detect an error that kineto doesn't report: on a full disk or in a missing folder it writes nothing or a part.

    A gzip file is from a writer that reports its errors.

    Raises:
        SaveError: The file is incomplete; it is removed.
    """
    try:
        with raw.open("rb") as file:
            is_packed = file.read(2) == _GZIP
            file.seek(max(0, raw.stat().st_size - 64))
            is_whole = is_packed or file.read().rstrip().endswith(b"}")
    except FileNotFoundError:
        raise SaveError(f"the profiler wrote nothing into {raw.parent}; is that disk full?") from None
    if not is_whole:
        raw.unlink()
        raise SaveError(f"the profiler wrote only a part into {raw.parent}; is that disk full?")


def commit_trace(
    raw: Path,
    target: Path | PathBelow,
    metadata: Mapping[str, Any],
    program_events: Mapping[str, Any] | None = None,
    *,
    owner: str,
    overwrite: bool = False,
    before_publishing: BeforePublishing | None = None,
) -> tuple[Path, Damage]:
    """Make a trace of `raw`, compressed if its name ends in `.gz`; return its path.

    If another file has the name and must stay, a number is added to the trace's name.

    Args:
        raw: The profiler's raw file.
        target: The trace.
        metadata: The trace's metadata about its recording.
        program_events: The program's own events and metadata.
        owner: The name of the only spool that writes this trace: its earlier process's unfinished file is removed.
        overwrite: Whether an older file of that name may be replaced.
        before_publishing: Called when the file is complete, before it gets its name.

    Raises:
        OSError: The disk or the folder doesn't allow it.
        SaveError: `raw` isn't a trace.
    """
    in_its_folder(target).parent.make()
    with atomic_file(target, owner=owner) as file:
        with _text(raw) as source, _gzip_stream(file.stream, is_packed=file.name.endswith(".gz")) as target_stream:
            damage = merge_events(source, target_stream, metadata, program_events)
        _complete(file, str(damage), overwrite=overwrite, before_publishing=before_publishing)
    return file.folder.path / file.name, damage


def commit_snapshot(
    raw: Path,
    target: Path | PathBelow,
    *,
    owner: str,
    overwrite: bool = False,
    before_publishing: BeforePublishing | None = None,
) -> Path:
    """Copy a memory snapshot, like `commit_trace`; return its path.

    Raises:
        OSError: The disk or the folder doesn't allow it.
    """
    in_its_folder(target).parent.make()
    with atomic_file(target, owner=owner) as file:
        with open_plain(raw) as source:
            shutil.copyfileobj(source, file.stream, _COPY_BYTES)
        _complete(file, "", overwrite=overwrite, before_publishing=before_publishing)
    return file.folder.path / file.name


def _complete(file: AtomicFile, problem: str, *, overwrite: bool, before_publishing: BeforePublishing | None) -> None:
    """Force a file to disk, and find its name."""
    file.force_to_disk()
    if not overwrite:
        file.name = _free_name(file.folder, file.name)
    if before_publishing is not None:
        before_publishing(file, problem)


@contextmanager
def _text(raw: Path) -> Iterator[Any]:
    """Open a raw file, which some of torch's writers compress whatever its name.

    Raises:
        SaveError: It is compressed, and damaged.
    """
    with open_plain(raw) as file:
        is_packed = file.read(2) == _GZIP
        file.seek(0)
        if not is_packed:
            yield file
            return
        try:
            with gzip.GzipFile(fileobj=file) as stream:
                yield stream
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise SaveError(f"the profiler's compressed file is damaged: {error}") from None


@contextmanager
def _gzip_stream(file: BinaryIO, *, is_packed: bool) -> Iterator[Any]:
    if is_packed:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=_LEVEL, fileobj=file, mtime=0) as stream:
            yield stream
    else:
        yield file


def _free_name(folder: OpenFolder, name: str) -> str:
    """Return the name, with a number if a file has it already."""
    worker, dot, rest = name.partition(".")
    for count in itertools.count(2):
        if not folder.exists(name):
            break
        name = f"{worker}~{count}{dot}{rest}"
    return name
