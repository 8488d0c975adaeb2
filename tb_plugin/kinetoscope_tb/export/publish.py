"""Publishes traces of other writers under names that every tool for PyTorch traces finds.

Other writers have their own folders and names (docs/where-traces-are-found.md), many of which TensorBoard's older
profiler plugin and scripts don't find. A published trace is `{run}/rank{rank}.{span}.pt.trace.json[.gz]`. Its content
is unchanged, so on the same disk it is a hard link, which costs nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kinetoscope.atomic_write import atomic_file
from kinetoscope.naming import TraceName, file_name, folder_name, worker_of_rank
from kinetoscope.path_below import PathBelow

from ..discovery import Listing, TraceFile, list_path
from ..discovery.filename_patterns import without_extension
from ..discovery.header_probe import HEAD_BYTES, head_in
from ..errors import KinetoscopeError, TraceError
from ..filesystem import StoredFile, is_url, last_part, stored_bytes
from ..names.roles import roles_in_name

_BLOCK_BYTES = 4 << 20
_BEGIN_BYTES = 1 << 12
_KINDS = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_RANK = re.compile(r"(?:.*[^a-zA-Z])?(?:rank|worker|profile|r)[-_]?(\d{1,9})", re.IGNORECASE)
_SPAN = re.compile(r"\d{1,19}")


class PublishError(KinetoscopeError):
    """A folder that can't be published."""


@dataclass(frozen=True)
class Publication:
    """One published trace.

    Args:
        source: The original path.
        target: The new path.
        how: `linked`, `copied`, `there` if it was published before, or why it couldn't be.
        is_failed: Whether publishing failed.
    """

    source: str
    target: str
    how: str
    is_failed: bool = False


def publish(
    path: str,
    logdir: str,
    *,
    run: str | None = None,
    always_copy: bool = False,
    note: Callable[[Publication], None] = lambda _: None,
) -> list[Publication]:
    """Publish every trace under `path` in the logdir. Nothing is overwritten; a second call adds new traces.

    Args:
        path: Traces of another writer: a folder, a URL or one file.
        logdir: TensorBoard's logdir; created if it doesn't exist.
        run: Name of the run for all of them; by default the runs have their names on the page.
        always_copy: Copy even if a link is possible.
        note: Called with each trace.

    Raises:
        LogdirError: There is no trace in `path`.
        PublishError: `logdir` can't hold files.
    """
    if is_url(logdir):
        raise PublishError(f"{logdir}: traces are published into a local folder; copy them from there.")
    if not is_url(path) and Path(path).resolve() in (target := Path(logdir).resolve(), *target.parents):
        raise PublishError(
            f"{logdir} is inside {path}: published traces would be published again. Choose another logdir."
        )
    listing = list_path(path)
    publications = []
    for file, target in targets(listing, Path(logdir), run):
        publications.append(_publish(file, Path(logdir), target, always_copy=always_copy))
        note(publications[-1])
    return publications


def targets(listing: Listing, logdir: Path, run: str | None) -> Iterable[tuple[TraceFile, Path]]:
    """Each file with its new path without the compression suffix; distinct for each file."""
    known_targets: set[Path] = set()
    seen_paths: set[str] = set()
    for name, workers in listing.runs.items():
        run_folder = "/".join(folder_name(part) for part in (name if run is None else run).split("/") if part)
        folder = logdir / (run_folder or "run")
        for worker, spans in workers.items():
            for ordinal, file in enumerate(spans.values(), start=1):
                if file.path in seen_paths:  # another process of the same file
                    continue
                seen_paths.add(file.path)
                span = _span(file.span, ordinal, len(spans))
                own = worker if file.process is None else without_extension(last_part(file.shown))
                for file_stem in _names(file, own):
                    target = folder / file_name(TraceName(file_stem, span)).removesuffix(".gz")
                    if target not in known_targets:
                        break
                known_targets.add(target)
                yield file, target


def _span(span: str, ordinal: int, count: int) -> int | None:
    """The number in the file's name: the span if it is a number, else its index among those of its worker."""
    if _SPAN.fullmatch(span):
        return int(span)
    return ordinal if count > 1 else None


def _names(file: TraceFile, worker: str) -> Sequence[str]:
    """Possible names of the worker, the best first; the last one is always free."""
    plain = folder_name(worker).rstrip(".")
    plain = re.sub(r"\.(?=\d+$)", "_", plain)  # a number after a dot would be the span
    rank = _rank(file, worker)
    path = folder_name(re.sub(r"\.", "_", file.shown.replace("/", "_")))
    of_rank = [] if rank is None else [worker_of_rank(rank)]
    best = [plain, *of_rank] if roles_in_name(worker) else [*of_rank, plain]  # a name with a role says more than a rank
    return [*best, f"{plain}_{path}"]


def _rank(file: TraceFile, worker: str) -> int | None:
    """The global rank, from the file's first bytes, else from its name."""
    with suppress(TraceError):
        head, _ = head_in(stored_bytes(file.path, 0, HEAD_BYTES))
        if head.rank is not None:
            return head.rank
    match = _RANK.fullmatch(worker)
    return int(match[1]) if match else None


def _publish(file: TraceFile, logdir: Path, target: Path, *, always_copy: bool) -> Publication:
    """Publish one file in the logdir, with the suffix that matches its content."""
    try:
        begin = stored_bytes(file.path, 0, _BEGIN_BYTES)
        suffix = next((suffix for magic, suffix in _KINDS.items() if begin.startswith(magic)), "")
        if not suffix and begin.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
            return Publication(
                file.path, str(target), "this isn't a trace, although its name looks like one", is_failed=True
            )
        target = target.with_name(target.name + suffix)
        if target.exists():
            is_same = is_url(file.path) or target.stat().st_size == file.bytes
            how = "there" if is_same else "another file has this name; remove it, or choose a run with --run"
            return Publication(file.path, str(target), how, is_failed=not is_same)
        below = PathBelow.of(target, logdir)
        below.parent.make()
        if not is_url(file.path) and not always_copy:
            with suppress(OSError), below.parent.open_folder() as folder:  # another disk, or one without hard links
                folder.link(os.path.realpath(file.path), below.name, is_here=False)
                return Publication(file.path, str(target), "linked")
        _copy(file.path, below)
    except (OSError, TraceError) as error:
        words = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return Publication(file.path, str(target), words, is_failed=True)
    return Publication(file.path, str(target), "copied")


def _copy(path: str, target: PathBelow) -> None:
    """Copy the bytes; the file appears when it is complete."""
    with atomic_file(target) as file:
        stored_file = StoredFile(path)
        try:
            while block := stored_file.read(_BLOCK_BYTES):
                file.stream.write(block)
        finally:
            stored_file.close()
