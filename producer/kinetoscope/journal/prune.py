"""Removes the oldest windows of a logdir's runs, so that it keeps a number of bytes or of days.

Only what the recorder wrote is removed: traces and memory snapshots that a run's `run.json` lists, with the recorded
size and the recorder's own beginning. The newest window of each run stays, whatever it takes, and so does a run that is
being written. No link is followed. The records stay too: `run.json` says that a window was removed.

Anyone who can write to a run's folder can write its `run.json`: each value is checked before it is used.
"""

from __future__ import annotations

import gzip
import os
import re
import stat
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..atomic_write import write_json
from ..naming import parse_snapshot
from ..output.manifest import NAME, PARTIAL, RECORDING, SAVED, compile_run, status_folder
from ..output.spool import is_count, is_path
from ..path_below import PathBelow
from ..untrusted_files import open_plain, read_json
from .status import rank_statuses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DAY_S = 86_400.0
_MOST_DEPTH = 8
_HEAD_BYTES = 4096
_TRACE_HEAD = re.compile(rb'\s*\{\s*"kinetoscope"\s*:')
_PICKLE, _GZIP = b"\x80", b"\x1f\x8b"
_RECORDS = ("windows", "earlier_windows", "snapshots", "earlier_snapshots")


@dataclass(frozen=True)
class StoredWindow:
    """One window of a run on all ranks.

    Args:
        run: The run's folder.
        span: How many steps were complete at its end.
        saved_ns: When the last rank saved it, in Unix time.
        files: Its traces and memory snapshots that are there.
        size: Their bytes.
        is_finished: Whether no rank still writes or uploads it.
    """

    run: Path
    span: int
    saved_ns: int
    files: tuple[PathBelow, ...]
    size: int
    is_finished: bool


@dataclass(frozen=True)
class PrunePlan:
    """What to remove from a logdir.

    Args:
        windows: What to remove, the oldest first.
        size: The bytes of all windows.
        foreign: Files that a `run.json` lists, but that the recorder didn't write so, each with the reason.
        active: The runs that are being written.
    """

    windows: tuple[StoredWindow, ...]
    size: int
    foreign: tuple[tuple[Path, str], ...]
    active: tuple[Path, ...]

    @property
    def removed_size(self) -> int:
        """The bytes of what is removed."""
        return sum(window.size for window in self.windows)


def plan_to_prune(
    logdir: Path, *, most_bytes: int | None = None, most_days: float | None = None, now_s: float | None = None
) -> PrunePlan:
    """Return what to remove so that a logdir's windows have at most so many bytes, and none is older.

    Args:
        logdir: The folder of the runs, or one run.
        most_bytes: How many bytes stay; None for all.
        most_days: How old a window may be, in days; None for any age.
        now_s: Now, in Unix time.
    """
    now_s = time.time() if now_s is None else now_s
    foreign: list[tuple[Path, str]] = []
    candidates, active, size = [], [], 0
    for run in runs_below(logdir):
        windows = stored_windows(run, foreign)
        size += sum(window.size for window in windows)
        if is_active(run, now_s):
            active.append(run)
        else:
            candidates += [window for window in windows[:-1] if window.is_finished and window.files]
    candidates.sort(key=lambda window: (window.saved_ns, str(window.run), window.span))
    oldest_ns = 0 if most_days is None else int((now_s - most_days * _DAY_S) * 1e9)
    removable, left = [], size
    for window in candidates:
        if window.saved_ns < oldest_ns or (most_bytes is not None and left > most_bytes):
            removable.append(window)
            left -= window.size
    return PrunePlan(tuple(removable), size, tuple(foreign), tuple(active))


def prune(plan: PrunePlan) -> None:
    """Remove what a plan names. The records say so first: a process that is killed leaves files, and no false record.

    Raises:
        OSError: A folder doesn't allow it.
    """
    for run in dict.fromkeys(window.run for window in plan.windows):
        files = [file for window in plan.windows if window.run == run for file in window.files]
        _mark(run, {"/".join(file.names) for file in files})
        for file in files:
            file.unlink()


def _mark(run: Path, files: set[str]) -> None:
    """Record that files of a run were removed."""
    for path in status_folder(run).children("rank*.json"):
        status = read_json(path)
        if not isinstance(status, dict):
            continue
        records = [record for key in _RECORDS for record in _dicts(status.get(key)) if record.get("file") in files]
        for record in records:
            record["pruned"] = True
        if records:
            write_json(path, status)
    compile_run(run)


def runs_below(logdir: Path) -> Iterator[Path]:
    """Yield the folders of runs in a logdir, without following links."""
    for folder, names, files in os.walk(logdir):
        is_deep = len(Path(folder).relative_to(logdir).parts) >= _MOST_DEPTH
        names[:] = [] if is_deep else sorted(name for name in names if not name.startswith("."))
        if NAME in files and read_json(PathBelow(Path(folder), NAME)) is not None:
            yield Path(folder)


def is_active(run: Path, now_s: float) -> bool:
    """Whether a run is being written: a rank runs, or didn't say that it ended, and was heard of in the last day."""
    manifest = read_json(PathBelow(run, NAME))
    journals = rank_statuses(run, now_s=now_s)
    if any(rank.state == "running" or (rank.state == "silent" and rank.age_s < _DAY_S) for rank in journals):
        return True
    is_open = any(rank.get("state") == RECORDING for rank in _dicts(_dict(manifest).get("ranks")))
    updated_ns = _dict(manifest).get("updated_ns")
    is_recent = is_count(updated_ns, 1 << 63) and now_s - updated_ns / 1e9 < _DAY_S
    return is_open and is_recent and not journals


def stored_windows(run: Path, foreign: list[tuple[Path, str]]) -> list[StoredWindow]:
    """Return the windows of a run that have files, the oldest first.

    Args:
        run: Its folder.
        foreign: Gets the files that aren't the recorder's, with the reason.
    """
    manifest = _dict(read_json(PathBelow(run, NAME)))
    records: dict[int, list[dict[str, Any]]] = {}
    for window in _dicts(manifest.get("windows")):
        if is_count(window.get("span"), 1 << 63):
            outcomes = [outcome for outcome in _dict(window.get("ranks")).values() if isinstance(outcome, dict)]
            records.setdefault(window["span"], []).extend(outcomes)
    for snapshot in _dicts(manifest.get("snapshots")):
        if is_count(snapshot.get("span"), 1 << 63):
            records.setdefault(snapshot["span"], []).append(snapshot)
    windows = [_stored_window(run, span, records[span], foreign) for span in records]
    return sorted((window for window in windows if window.files), key=lambda window: (window.saved_ns, window.span))


def _stored_window(
    run: Path, span: int, records: Iterable[dict[str, Any]], foreign: list[tuple[Path, str]]
) -> StoredWindow:
    files, sizes, saved_ns, is_finished = [], 0, 0, True
    for record in records:
        is_finished &= record.get("state") in (SAVED, PARTIAL, "lost", "missing")
        is_finished &= _dict(record.get("upload")).get("state", "uploaded") == "uploaded"
        if record.get("state") not in (SAVED, PARTIAL) or not is_path(record.get("file")):
            continue
        try:
            file = PathBelow.of(run / record["file"], run)
            info = file.stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            foreign.append((run / record["file"], str(error)))
            continue
        if problem := _why_foreign(file, info, record):
            foreign.append((file.path, problem))
            continue
        files.append(file)
        sizes += info.st_size
        saved_ns = max(saved_ns, record["saved_ns"] if is_count(record.get("saved_ns"), 1 << 63) else info.st_mtime_ns)
    return StoredWindow(run, span, saved_ns, tuple(files), sizes, is_finished)


def _why_foreign(file: PathBelow, info: os.stat_result, record: dict[str, Any]) -> str:
    """Return why a file isn't what the recorder wrote there; empty if it is."""
    if not stat.S_ISREG(info.st_mode):
        return "it isn't a plain file"
    if info.st_size != record.get("bytes"):
        return "it has another size than the recorder wrote"
    try:
        head = _head_of(file)
    except (OSError, EOFError, zlib.error) as error:
        return f"it can't be read: {error}"
    is_snapshot = parse_snapshot(file.name) is not None and head.startswith(_PICKLE)
    return "" if is_snapshot or _TRACE_HEAD.match(head) else "it doesn't begin as the recorder's files do"


def _head_of(file: PathBelow) -> bytes:
    with open_plain(file) as stream:
        head = stream.read(_HEAD_BYTES)
        if not head.startswith(_GZIP):
            return head
        stream.seek(0)
        return gzip.GzipFile(fileobj=stream).read(_HEAD_BYTES)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
