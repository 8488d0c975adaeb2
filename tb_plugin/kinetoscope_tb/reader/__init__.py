"""Trace files → `Trace`. Every quirk of the format, and every repair, lives in this package.

input               a file as blocks of decompressed UTF-8 text
scan                text → sorted events, in several threads; damage and its repair
perfetto            Perfetto's protobuf → the same sorted events
pickles             pickles of plain values, without unpickling
snapshots           torch's memory snapshots → the snapshot's frames of a trace
nsight              Nsight Systems' SQLite export → the same sorted events
memory_timeline     torch's memory timelines → the memory rows of a trace
processes           a file of several processes → the events of each
frames              sorted events → the frames of a trace, on one time axis
foreign_writers     files that torch.profiler didn't write, and who did
preview             counts of the events read so far
event               one event as the file has it
writer_fingerprint  details of the text that identify its writer
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol

from ..arrays.allocator import release_free_memory
from ..errors import TraceError
from ..filesystem import StoredFile, begins_database, begins_snapshot
from ..measures.serving.steps import with_iterations_as_steps
from ..trace.assemble import assemble
from ..trace.meta import WriterFingerprint
from ..trace.model import Diagnostic, Trace
from .frames.build import build_parts
from .frames.metadata import checked_metadata
from .input.document import is_memory_timeline
from .input.source import Source
from .perfetto.wire import begins_perfetto
from .preview import Preview, PreviewBuilder
from .processes.split import contents
from .scan.ingest import RawFile, RawTrace, default_threads, ingest
from .writer_fingerprint import Samples

if TYPE_CHECKING:
    from .snapshots.columns import SnapshotFrames

__all__ = ["Preview", "Progress", "read", "read_blocks", "read_each"]

_SHOWS_FORMAT = 1 << 12  # bytes of the text, which show what it is
_SNAPSHOT_WRITER = "torch's memory history"

_RARE_FORMATS: dict[str, Callable[[bytes], bool]] = {
    "nsight.ingest": begins_database,
    "perfetto.ingest": begins_perfetto,
    "snapshots.ingest": begins_snapshot,
    "memory_timeline": lambda start: is_memory_timeline(start[:_SHOWS_FORMAT].lstrip()),
}
"""The modules of formats other than Chrome JSON, each with how its files are known; `ingest` of one reads a file. They
are imported for their files alone, since they are a third of the reader's modules."""


@dataclass(frozen=True)
class Progress:
    """How far reading has come.

    Args:
        stage: `reading`, then `linking`.
        read_bytes: How much of the stored (compressed) file was read.
        total_bytes: Size of the file, or None if it isn't known.
        preview: Returns a preview of what was read so far, while `reading`; only the progress callback may call it, and
            only before it returns, because the next chunk changes the underlying columns.
    """

    stage: str
    read_bytes: int
    total_bytes: int | None
    preview: Callable[[], Preview] | None = None


def read(path: str | os.PathLike[str], process: str | None = None, **options: Any) -> Trace:
    """The trace of one process of a file, by default of the first, which most often is the only one: see `read_each`.

    Raises:
        TraceError: The file can't be read, has no such process, or has too many.
        NotATrace: It has no trace events.
    """
    with closing(read_each(path, process, **options)) as traces:
        return next(traces)


def read_each(
    path: str | os.PathLike[str],
    first: str | None = None,
    *,
    threads: int | None = None,
    block_bytes: int = 4 << 20,
    progress: Callable[[Progress], None] | None = None,
) -> Generator[Trace]:
    """Read a trace file: plain, gzip, zstd, xz or bzip2, whatever its name; a local path or a URL that fsspec knows.

    The file is read before the first trace comes; each trace of a file with several processes is built when it is
    requested.

    Args:
        path: The file.
        first: The process whose trace comes first (`Process.id`); by default the first of the file.
        threads: Number of scanning threads; by default as many as the reading thread can feed.
        block_bytes: Size of a block of text; affects speed and memory, never the result.
        progress: Called after each block, and whenever some of the file was read; an exception from it ends the
            reading.

    Raises:
        TraceError: The file can't be read, has no such process, or has too many.
        NotATrace: It has no trace events.
    """

    def report(
        file: StoredFile, stage: str = "reading", preview: Callable[[], Preview] | None = None, share: float = 0
    ) -> None:
        if progress:
            size = file.size_bytes
            read_bytes = max(file.read_bytes, int(share * (size or 0)))
            progress(Progress(stage, read_bytes, size, preview))

    source = Source(os.fspath(path), block_bytes, report)  # without a cycle, which would keep what `progress` refers to
    with source as blocks:
        reading = _ingest(blocks, source.path, threads, partial(report, source.file), source.diagnostics)
    yield from _traces(reading, first)


def read_blocks(
    blocks: Iterable[bytes],
    *,
    path: str,
    process: str | None = None,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Trace:
    """Read a trace from blocks of decompressed text, as `read` does; `path` is its name in messages."""
    bytes_read = 0

    def count_bytes() -> Iterable[bytes]:
        nonlocal bytes_read
        for block in blocks:
            bytes_read += len(block)
            yield bytes(block)

    def report(stage: str, preview: Callable[[], Preview] | None, _share: float = 0) -> None:
        if progress:
            progress(Progress(stage, bytes_read, None, preview))

    return next(_traces(_ingest(count_bytes(), path, threads, report, []), process))


class _Report(Protocol):
    """Reports a stage, a preview, and how much of the file was read where it isn't read from front to back."""

    def __call__(self, stage: str, preview: Callable[[], Preview] | None, share: float = 0, /) -> None: ...


@dataclass(frozen=True)
class _Reading:
    """A file that was read: its events, what is known of it, and how to report progress."""

    raw_trace: RawTrace
    path: str
    diagnostics: list[Diagnostic]
    fingerprint: WriterFingerprint
    report: _Report
    snapshot: SnapshotFrames | None = None


def _ingest(
    blocks: Iterable[bytes], path: str, threads: int | None, report: _Report, diagnostics: list[Diagnostic]
) -> _Reading:
    stream = iter(blocks)
    start = b""
    while len(start) < _SHOWS_FORMAT and (block := next(stream, None)) is not None:
        start += block
    blocks = chain([start], stream)
    progress = _progress(report)
    samples = Samples()
    module = next((module for module, begins in _RARE_FORMATS.items() if begins(start)), None)
    if module is not None:
        file: RawFile = import_module(f".{module}", __package__).ingest(blocks, path, progress)
    else:
        file = RawFile(ingest(samples.pass_on(blocks), path, threads or default_threads(), progress))
    return _Reading(
        file.raw_trace, path, [*diagnostics, *file.diagnostics], samples.fingerprint(), report, file.snapshot
    )


def _traces(reading: _Reading, first: str | None) -> Generator[Trace]:
    """The trace of each process, the given one first.

    Raises:
        TraceError: There is no such process.
    """
    reading.report("linking", None)
    release_free_memory()  # here and below: what the stage before needed
    file_contents = contents(reading.raw_trace, reading.path)
    order = file_contents.in_turn(first)
    if not order:
        raise TraceError(reading.path, "the process of this recording isn't in the file any more. List it again.")
    for nth in order:
        share = file_contents.share(nth)
        diagnostics, fingerprint = reading.diagnostics, share.fingerprint or reading.fingerprint
        parts = build_parts(share.raw_trace, share.outside, reading.path, diagnostics, fingerprint)
        release_free_memory()
        meta = replace(parts.meta, processes=file_contents.processes, process=share.process)
        trace = with_iterations_as_steps(assemble(replace(parts, meta=meta)))
        yield trace if reading.snapshot is None else _with_snapshot(trace, reading.snapshot)


def _with_snapshot(trace: Trace, snapshot: SnapshotFrames) -> Trace:
    """The trace of a file that holds a memory snapshot alone."""
    events, metadata = snapshot.frames["snapshot_events"].height, checked_metadata(snapshot.recorder_keys)
    meta = replace(
        trace.meta,
        top={**trace.meta.top, **metadata.top, "allocatorSettings": snapshot.settings},
        events=events,
        impossible=metadata.impossible,
        foreign_writer=_SNAPSHOT_WRITER,
    )
    window = (0, snapshot.end_ns)
    diagnostics = (*(d for d in trace.diagnostics if d.rule != "no_events"), *metadata.diagnostics())
    frames: dict[str, Any] = dict(snapshot.frames)
    return replace(trace, origin_ns=snapshot.origin_ns, window=window, meta=meta, diagnostics=diagnostics, **frames)


def _progress(report: _Report) -> Callable[..., None]:
    """Report what was read so far; the preview's counts are freed before the frames are built."""
    builder = PreviewBuilder()

    def note(raw_trace: RawTrace | None, share: float = 0.0) -> None:
        report("reading", None if raw_trace is None else partial(builder.preview, raw_trace), share)

    return note
