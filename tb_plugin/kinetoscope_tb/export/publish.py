"""What other writers left, as runs and workers that every tool for PyTorch traces finds.

Each of them has its own folders and names (docs/where-traces-are-found.md); many of the names are invisible to
TensorBoard's older profiler plugin and to scripts. Published, a trace is `{run}/rank{rank}.{span}.pt.trace.json[.gz]`.
The content stays as it is, so a file on the same disk is a second name of the same bytes and costs nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kinetoscope.naming import TraceName, file_name, folder_name, worker_of_rank

from ..discovery import Listing, TraceFile, list_path
from ..discovery.header_probe import HEAD_BYTES, head_in
from ..errors import KinetoscopeError, TraceError
from ..filesystem import StoredFile, atomic_write, is_url, stored_bytes

_BLOCK_BYTES = 4 << 20
_BEGIN_BYTES = 1 << 12
_KINDS = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst"}
_RANK = re.compile(r"(?:.*[^a-zA-Z])?(?:rank|worker|profile|r)[-_]?(\d{1,9})", re.IGNORECASE)
_SPAN = re.compile(r"\d{1,19}")


class PublishError(KinetoscopeError):
    """A folder that can't be published."""


@dataclass(frozen=True)
class Published:
    """One trace's new name.

    Args:
        source: The path as it was found.
        target: The path that it has now.
        how: `linked`, `copied`, `there` if it was published before, or why it couldn't be.
        is_failed: Whether it isn't there now.
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
    note: Callable[[Published], None] = lambda _: None,
) -> list[Published]:
    """Give every trace under `path` a name in the logdir. Nothing is overwritten; a second call adds what is new.

    Args:
        path: What another writer left: a folder, a URL or one file.
        logdir: What TensorBoard is given; made if it isn't there.
        run: What all of it is called; by default the runs are called as the page calls them.
        always_copy: Copy, where a link is possible too.
        note: Is told of each trace.

    Raises:
        LogdirError: There is no trace in `path`.
        PublishError: `logdir` can't hold files.
    """
    if is_url(logdir):
        raise PublishError(f"{logdir}: traces are published into a local folder; copy them from there.")
    if not is_url(path) and Path(path).resolve() in (target := Path(logdir).resolve(), *target.parents):
        raise PublishError(f"{logdir} lies in {path}: what is published there would be published again. Name another.")
    listing = list_path(path)
    done = []
    for file, target in targets(listing, Path(logdir), run):
        done.append(_published(file, target, always_copy=always_copy))
        note(done[-1])
    return done


def targets(listing: Listing, logdir: Path, run: str | None) -> Iterable[tuple[TraceFile, Path]]:
    """Each trace with the path, without compression's suffix, that it gets: different for different traces."""
    used: set[Path] = set()
    for name, workers in listing.runs.items():
        shown = "/".join(folder_name(part) for part in (name if run is None else run).split("/") if part)
        folder = logdir / (shown or "run")
        for worker, spans in workers.items():
            for place, file in enumerate(spans.values(), start=1):
                span = _span(file.span, place, len(spans))
                for called in _names(file, worker):
                    target = folder / file_name(TraceName(called, span)).removesuffix(".gz")
                    if target not in used:
                        break
                used.add(target)
                yield file, target


def _span(span: str, place: int, count: int) -> int | None:
    """The number in the file's name: the span if it is a number, else its place among those of its worker."""
    if _SPAN.fullmatch(span):
        return int(span)
    return place if count > 1 else None


def _names(file: TraceFile, worker: str) -> Sequence[str]:
    """What the worker may be called, the best first, the last one surely free."""
    plain = folder_name(worker).rstrip(".")
    plain = re.sub(r"\.(?=\d+$)", "_", plain)  # a number behind a dot would be the span
    rank = _rank(file, worker)
    path = folder_name(re.sub(r"\.", "_", file.shown.replace("/", "_")))
    return [*([] if rank is None else [worker_of_rank(rank)]), plain, f"{plain}_{path}"]


def _rank(file: TraceFile, worker: str) -> int | None:
    """The rank over the whole job: what the file's first bytes say, else what its name does."""
    with suppress(TraceError):
        head, _ = head_in(stored_bytes(file.path, 0, HEAD_BYTES))
        if head.rank is not None:
            return head.rank
    match = _RANK.fullmatch(worker)
    return int(match[1]) if match else None


def _published(file: TraceFile, target: Path, *, always_copy: bool) -> Published:
    """Give one file its name, with the suffix that its bytes call for."""
    try:
        begin = stored_bytes(file.path, 0, _BEGIN_BYTES)
        suffix = next((suffix for magic, suffix in _KINDS.items() if begin.startswith(magic)), "")
        if not suffix and begin.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] not in (b"{", b"["):
            return Published(file.path, str(target), "this is no trace, whatever its name says", is_failed=True)
        target = target.with_name(target.name + suffix)
        if target.exists():
            is_same = is_url(file.path) or target.stat().st_size == file.bytes
            how = "there" if is_same else "another file has this name; remove it, or name a run with --run"
            return Published(file.path, str(target), how, is_failed=not is_same)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not is_url(file.path) and not always_copy:
            with suppress(OSError):  # another disk, or one without hard links
                os.link(os.path.realpath(file.path), target)
                return Published(file.path, str(target), "linked")
        _copy(file.path, target)
    except (OSError, TraceError) as error:
        words = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        return Published(file.path, str(target), words, is_failed=True)
    return Published(file.path, str(target), "copied")


def _copy(path: str, target: Path) -> None:
    """Copy the bytes; the name appears when they are all there."""
    with atomic_write(str(target)) as out:
        stored = StoredFile(path)
        try:
            while block := stored.read(_BLOCK_BYTES):
                out.write(block)
        finally:
            stored.close()
