"""Trace files → `Trace`. Every quirk of the format, and every repair, lives in this package.

source      a file as blocks of decompressed text
gunzip      gzip data, member after member
encodings   texts that aren't UTF-8
scan        the text of events as arrays (numba)
columns     which keys are read; arrays that grow
damage      kinds of damage, counted and in words
repair      damaged places in the events → events
piece       a piece of text → sorted events
ingest      blocks → sorted events, with scanning threads
document    the JSON around the events
metadata    what they say, checked
tokens      raw JSON tokens as texts and numbers
kinds       categories of every era → kinds of events
amounts     numbers that can't be
threads     (pid, tid) pairs and their names
rows        events sorted into frames while they are scanned
pairs       ranges written as a beginning and an end
ascend      rows that only their process' name explains
arrows      links of writers without correlations
frames      sorted events → the frames of trace.model
marks       details of the text that tell who wrote it
oddities    what is odd about the texts
strict      a trace written anew as strict JSON
parts       all of it, on one time axis, with findings
beginning   what can be said before all of it is read
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from ..trace.assemble import assemble
from ..trace.model import Finding, Trace
from .beginning import Beginning, Seen
from .ingest import Ingested, default_threads, ingested
from .marks import Samples
from .parts import parts_of
from .source import Source

__all__ = ["Beginning", "Progress", "read", "read_blocks"]


@dataclass(frozen=True)
class Progress:
    """How far reading has come.

    Args:
        stage: `reading`, then `linking`.
        read_bytes: How much of the file, as it is stored, was read.
        total_bytes: Size of the file, or None if it isn't known.
        beginning: Tells what was read so far, while `reading`; only whoever is told of the progress may call it, before
            returning, since the next piece changes what it looks at.
    """

    stage: str
    read_bytes: int
    total_bytes: int | None
    beginning: Callable[[], Beginning] | None = None


def read(
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    block_bytes: int = 4 << 20,
    progress: Callable[[Progress], None] | None = None,
) -> Trace:
    """Read a trace file: plain, gzip, zstd, xz or bzip2, whatever its name; a local path or a URL that fsspec knows.

    Args:
        path: The file.
        threads: How many threads scan; as many as are worth it if not given.
        block_bytes: How much text is handled at a time; it changes speed and memory, never the result.
        progress: Called after each block, and whenever some of the file was read; what it raises ends the reading.

    Raises:
        TraceError: The file can't be read.
        NotATrace: It holds no trace events.
    """
    source = Source(os.fspath(path), block_bytes, lambda: report("reading", None))

    def report(stage: str, beginning: Callable[[], Beginning] | None) -> None:
        if progress:
            progress(Progress(stage, source.file.read_bytes, source.file.size_bytes, beginning))

    with source as blocks:
        return _trace(blocks, source.path, threads, report, source.findings)


def read_blocks(
    blocks: Iterable[bytes],
    *,
    path: str,
    threads: int | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Trace:
    """Read a trace from blocks of decompressed text, as `read` does; `path` is what messages call it."""
    done = 0

    def counted() -> Iterable[bytes]:
        nonlocal done
        for block in blocks:
            done += len(block)
            yield bytes(block)

    def report(stage: str, beginning: Callable[[], Beginning] | None) -> None:
        if progress:
            progress(Progress(stage, done, None, beginning))

    return _trace(counted(), path, threads, report, [])


_Report: TypeAlias = Callable[[str, Callable[[], Beginning] | None], None]


def _trace(blocks: Iterable[bytes], path: str, threads: int | None, report: _Report, findings: list[Finding]) -> Trace:
    samples = Samples()
    found = _ingested(samples.passing(blocks), path, threads, report)
    report("linking", None)
    return assemble(parts_of(found, path, findings, samples.marks()))


def _ingested(blocks: Iterable[bytes], path: str, threads: int | None, report: _Report) -> Ingested:
    """The events; what was counted on the way for whoever waits is gone before they are put together."""
    seen = Seen()

    def progress(found: Ingested) -> None:
        report("reading", partial(seen.beginning, found))

    return ingested(blocks, path, threads or default_threads(), progress)
