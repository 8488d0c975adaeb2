"""File names of traces: the contract between the recorder and the viewer.

A trace is `{logdir}/{run}/{worker}.{span}.pt.trace.json.gz`. The worker is the process that recorded, `rank3`; the
span identifies its recordings and orders them: the number of steps completed when it was saved, the same on every
rank. torch's own handler writes the same form with `{host}_{pid}` and a time in nanoseconds.

A memory snapshot has the name of the trace of the same span, with `.memory.pickle` instead of the trace's ending; if
it was taken because an allocation failed, with `.oom.memory.pickle`. Somebody may have compressed it: `.pickle.gz`.

This module imports nothing but the standard library: the viewer uses it without torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# 19 digits are enough for a time in nanoseconds; a longer number isn't a span but a part of the worker's name.
_SPAN = r"\.(?P<span>[0-9]{1,19})"
_WORKER = r"(?P<worker>[^./\0][^/\0]*?)"
_TRACE = re.compile(rf"{_WORKER}(?:{_SPAN})?\.pt\.trace\.json(?:\.gz)?", re.DOTALL)
_TRACE_ENDING = re.compile(r"(?:\.pt)?(?:\.trace)?\.json(?:\.gz)?\Z|\.gz\Z")
_SNAPSHOT = re.compile(r"(?P<stem>.+?)(?P<failure>\.oom[0-9]{0,9})?\.memory\.pickle(?:\.gz)?", re.DOTALL)
_SPANLESS = re.compile(rf"(?!.*{_SPAN}\Z){_WORKER}", re.DOTALL)


@dataclass(frozen=True)
class TraceName:
    """The parts of a trace's file name.

    Args:
        worker: The process that recorded it: not empty, not hidden, no slash.
        span: The number of the recording, if the name has one.

    Raises:
        ValueError: No file name can represent these.
    """

    worker: str
    span: int | None = None

    def __post_init__(self) -> None:
        if self.span is None:
            possible = _SPANLESS.fullmatch(self.worker) is not None
        else:
            possible = re.fullmatch(_WORKER, self.worker, re.DOTALL) is not None and 0 <= self.span < 10**19
        if not possible:
            raise ValueError(f"No file name can represent worker {self.worker!r}, span {self.span}.")


def file_name(name: TraceName) -> str:
    """Return the name of the (compressed) file; `parse` is its inverse."""
    span = "" if name.span is None else f".{name.span}"
    return f"{name.worker}{span}.pt.trace.json.gz"


def parse(filename: str) -> TraceName | None:
    """Parse a file name, without folders; None if it isn't a trace's name.

    Hidden files and unfinished ones (`….gz.tmp-1234`, kineto's `….json.tmp`) aren't traces.
    """
    match = _TRACE.fullmatch(filename)
    if match is None:
        return None
    span = match["span"]
    return TraceName(match["worker"], None if span is None else int(span))


def snapshot_name(trace: str, failure: int = 0) -> str:
    """Return the name of a memory snapshot; `parse_snapshot` is its inverse.

    Args:
        trace: The name of the trace of the same span, which may contain folders.
        failure: 0, or which snapshot of a failed allocation it is, from 1 on.
    """
    mark = "" if failure == 0 else ".oom" if failure == 1 else f".oom{failure}"
    return f"{_TRACE_ENDING.sub('', trace)}{mark}.memory.pickle"


def parse_snapshot(filename: str) -> tuple[str, str] | None:
    """Parse the name of a memory snapshot that the recorder wrote; None if it isn't one.

    Returns:
        The name of the trace of the same span without its ending, and `.oom` if it is of a failed allocation.
    """
    match = _SNAPSHOT.fullmatch(filename)
    return None if match is None else (match["stem"], match["failure"] or "")


def worker_of_rank(rank: int) -> str:
    """Return the worker name of a global rank."""
    return f"rank{rank}"


def journal_name(rank: int) -> str:
    """Return the name of a rank's journal, in the run's folder for what isn't a trace."""
    return f"{worker_of_rank(rank)}.jsonl"


def folder_name(text: str) -> str:
    """Convert any text to the name of one visible folder: no slash, no control character, no leading dot."""
    visible = re.sub(r"[^\w.,+=@ -]", "_", text).strip().lstrip(".").strip()
    return visible[:120] or "run"
