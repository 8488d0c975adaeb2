"""The records of windows with their traces, and of memory snapshots, in the spool's state and the process's status."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..path_below import PathBelow
from . import manifest
from .spool import SNAPSHOT, TRACE, is_count, is_path

if TYPE_CHECKING:
    from .spool import Job


def is_unchanged(folder: Path, trace: dict[str, Any], own_paths: set[Path]) -> bool:
    """Whether a trace of an earlier attempt still exists, below the run's folder and with its recorded size."""
    if not is_path(trace.get("file")):
        return False
    path = folder / trace["file"]
    try:
        info = PathBelow.of(path, folder).stat()
    except OSError:
        return False
    if path in own_paths:
        return False
    is_ours = not hasattr(os, "getuid") or info.st_uid == os.getuid()
    return is_ours and stat.S_ISREG(info.st_mode) and info.st_size == trace.get("bytes")


def validate_window(window: Any) -> dict[str, Any] | None:
    """Return the record of a window, if it is of the form that a writer process writes."""
    if not isinstance(window, dict) or not isinstance(window.get("state"), str):
        return None
    has_path = window.get("path") is None or is_path(window["path"])
    is_valid = is_count(window.get("window")) and is_count(window.get("span"), 1 << 63) and is_path(window.get("file"))
    return window if is_valid and has_path and isinstance(window.get("upload") or {}, dict) else None


def new_window(job: Job) -> dict[str, Any]:
    """Return the record of a job before its outcome is known."""
    of_window = ("window", "step_first", "step_last", "started_ns", "ended_ns", "reason", "why", "ranks")
    keys = ("reason", "taken_ns") if job.kind == SNAPSHOT else of_window
    record = {key: job.metadata.get(key) for key in keys}
    if job.kind == SNAPSHOT:
        record["kind"] = SNAPSHOT
    span = job.metadata.get("steps_completed")
    record |= {"file": job.file, "window": job.number, "span": span if is_count(span, 1 << 63) else 0}
    return {**record, "state": manifest.SAVING}


def kind_of(record: dict[str, Any]) -> str:
    """Return what a record is of: a window's `TRACE`, or a `SNAPSHOT`."""
    return SNAPSHOT if record.get("kind") == SNAPSHOT else TRACE


def death_message(process: dict[str, Any], death: dict[str, Any]) -> str:
    """Describe what a killed process was doing, and how it ended.

    Args:
        process: The facts about it.
        death: From `ProcessWatch.facts`.
    """
    step = process.get("recording_since_step")
    what = "between two windows" if step is None else f"while it recorded, since step {step}"
    return f"the process ended without a good-bye {what}: {_how(death)}"


def _how(death: dict[str, Any]) -> str:
    number = death.get("signal")
    name = "" if number is None else signal_name(number)
    if name == "SIGKILL":
        return "killed by the kernel's out-of-memory killer" if death.get("oom_kills") else "killed by SIGKILL"
    if name:
        return f"ended by {name}"
    if "exit_code" in death:
        return f"it exited with code {death['exit_code']}"
    return "killed, out of memory, or crashed"


_SIGNALS = {1: "SIGHUP", 2: "SIGINT", 6: "SIGABRT", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
"""The same on Linux and macOS, where trainings run; Windows, where somebody may read of them, lacks some."""


def signal_name(number: int) -> str:
    """Return the name of a signal, such as SIGSEGV; of a real-time signal its number."""
    if number in _SIGNALS:
        return _SIGNALS[number]
    return signal.Signals(number).name if number in list(signal.Signals) else f"signal {number}"
