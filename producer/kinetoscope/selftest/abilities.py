"""What a folder's file system and this machine can do, of what the recorder uses."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..atomic_write import create_file, replace_file
from ..output.scratch import scratch_root
from ..path_below import PathBelow
from .results import Result, result_of

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .results import Outcome

_LEAST_ROOM_BYTES = 1 << 30
_SLOW_S, _SKEW_S = 0.5, 5.0


def abilities(folder: Path) -> Iterator[Result]:
    """Yield what a folder's disk and this machine can do.

    Args:
        folder: An empty folder of the test's own.
    """
    yield result_of("disk: replace a file at once", lambda: _replace(folder))
    yield result_of("disk: create a file exclusively", lambda: _create(folder))
    yield result_of("disk: hard links", lambda: _link(folder))
    yield result_of("disk: unnamed files (O_TMPFILE)", lambda: _temporary_file(folder))
    yield result_of("disk: locks (flock)", lambda: _lock(folder))
    yield result_of("disk: write through (fsync)", lambda: _sync(folder))
    yield result_of("disk: its clock", lambda: _clock(folder))
    yield result_of("disk: room", lambda: _room(folder, "Traces"))
    yield result_of("machine: scratch folder", lambda: _room(scratch_root().parent, "Raw recordings"))
    yield result_of("machine: memory without a file (memfd)", _memory)
    yield result_of("machine: exit status by pidfd", _pidfd)
    yield result_of("machine: /proc", _proc)


def _replace(folder: Path) -> tuple[Outcome, str, str]:
    file = PathBelow(folder, "replaced")
    for content in (b"before", b"after"):
        replace_file(file, content)
    if file.path.read_bytes() != b"after":
        return "FAILED", "the file has its old content", "Use another disk: readers would see half a file."
    return "ok", "readers see the old file or the new one", ""


def _create(folder: Path) -> tuple[Outcome, str, str]:
    file = PathBelow(folder, "created")
    outcomes = [create_file(file, b"first"), create_file(file, b"second")]
    if outcomes != [True, False] or file.path.read_bytes() != b"first":
        advice = "Give each job its own run name: ranks can't agree through this folder."
        return "FAILED", f"two creations of one file gave {outcomes}", advice
    return "ok", "of two processes one creates a file", ""


def _link(folder: Path) -> tuple[Outcome, str, str]:
    (folder / "source").write_bytes(b"x")
    try:
        os.link(folder / "source", folder / "link")
    except OSError as error:
        return "limited", f"none ({error.strerror})", "`kinetoscope publish` copies instead."
    return "ok", "they work", ""


def _temporary_file(folder: Path) -> tuple[Outcome, str, str]:
    if not hasattr(os, "O_TMPFILE"):
        return "limited", "this system has none", ""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError as error:
        return "limited", f"none ({error.strerror}); the recorder doesn't need them", ""
    return "ok", "they work", ""


def _lock(folder: Path) -> tuple[Outcome, str, str]:
    if sys.platform == "win32":
        return "limited", "this system has none; the recorder doesn't need them", ""
    with (folder / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return "limited", f"none ({error.strerror}); the recorder doesn't need them", ""
    return "ok", "they work; the recorder doesn't need them", ""


def _sync(folder: Path) -> tuple[Outcome, str, str]:
    start_s = time.monotonic()
    with (folder / "synced").open("wb") as file:
        file.write(b"x" * (1 << 20))
        file.flush()
        os.fsync(file.fileno())
    took_s = time.monotonic() - start_s
    if took_s > _SLOW_S:
        return "limited", f"1 MiB took {took_s:.1f} s", "Traces appear late; the training doesn't wait for them."
    return "ok", f"1 MiB in {took_s * 1e3:.0f} ms", ""


def _clock(folder: Path) -> tuple[Outcome, str, str]:
    file = folder / "clock"
    before_s = time.time()
    file.touch()
    written_s = file.stat().st_mtime
    skew_s = max(before_s - written_s, written_s - time.time(), 0.0)
    if skew_s > _SKEW_S:
        advice = "Set the clocks of file server and machine: `status` would take ranks that run for silent ones."
        return "FAILED", f"{skew_s:.0f} s away from this machine's", advice
    return "ok", "as this machine's", ""


def _room(folder: Path, what: str) -> tuple[Outcome, str, str]:
    free = shutil.disk_usage(folder).free
    room = f"{free / 1e9:.1f} GB free in {folder}"
    if free < _LEAST_ROOM_BYTES:
        return "limited", room, f"{what} of large models take up to 1 GB a window and rank."
    return "ok", room, ""


def _memory() -> tuple[Outcome, str, str]:
    if not hasattr(os, "memfd_create"):
        return "limited", "this system has none", "There are no last minutes of a killed rank."
    os.close(os.memfd_create("kinetoscope-selftest"))
    return "ok", "the last minutes of a rank outlive it", ""


def _pidfd() -> tuple[Outcome, str, str]:
    if not hasattr(os, "pidfd_open"):
        return "limited", "this system has none", "How a rank died is known only if it could say so."
    os.close(os.pidfd_open(os.getpid()))
    return "ok", "how a rank died is known", ""


def _proc() -> tuple[Outcome, str, str]:
    if not Path("/proc/self/stat").exists():
        return "limited", "this system has none", "There are no counters of processes, and no states of threads."
    return "ok", f"there, on {socket.gethostname()}", ""
