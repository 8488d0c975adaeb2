"""File names of traces: the contract between who records and who reads.

A trace is `{logdir}/{run}/{worker}.{span}.pt.trace.json.gz`. The worker is the process that recorded, `rank3`; the
span tells its recordings apart and orders them: the number of steps completed when it was saved, which is the same on
every rank. torch's own handler writes the same form with `{host}_{pid}` and a time in nanoseconds.

This module imports nothing but the standard library: the reader uses it where torch isn't installed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# 19 digits hold a time in nanoseconds; a longer number is no span but a part of the worker's name.
_SPAN = r"\.(?P<span>[0-9]{1,19})"
_WORKER = r"(?P<worker>[^./\0][^/\0]*?)"
_TRACE = re.compile(rf"{_WORKER}(?:{_SPAN})?\.pt\.trace\.json(?:\.gz)?", re.DOTALL)
_SPANLESS = re.compile(rf"(?!.*{_SPAN}\Z){_WORKER}", re.DOTALL)


@dataclass(frozen=True)
class TraceName:
    """What a file name says about its trace.

    Args:
        worker: The process that recorded it: not empty, not hidden, no slash.
        span: Which of the worker's recordings it is, if the name says so.

    Raises:
        ValueError: No file name could say this.
    """

    worker: str
    span: int | None = None

    def __post_init__(self) -> None:
        if self.span is None:
            possible = _SPANLESS.fullmatch(self.worker) is not None
        else:
            possible = re.fullmatch(_WORKER, self.worker, re.DOTALL) is not None and 0 <= self.span < 10**19
        if not possible:
            raise ValueError(f"No file name can stand for worker {self.worker!r}, span {self.span}.")


def file_name(name: TraceName) -> str:
    """The name of the (compressed) file; `parse` is its inverse."""
    span = "" if name.span is None else f".{name.span}"
    return f"{name.worker}{span}.pt.trace.json.gz"


def parse(filename: str) -> TraceName | None:
    """What a file name, without folders, says about its trace; None if it isn't a trace's name.

    Hidden files and unfinished ones (`….gz.tmp-1234`, kineto's `….json.tmp`) are no traces.
    """
    match = _TRACE.fullmatch(filename)
    if match is None:
        return None
    span = match["span"]
    return TraceName(match["worker"], None if span is None else int(span))


def worker_of_rank(rank: int) -> str:
    """What the process of a global rank is called."""
    return f"rank{rank}"


def folder_name(text: str) -> str:
    """Turn any text into the name of one visible folder: no slash, no control character, no dot in front."""
    visible = re.sub(r"[^\w.,+=@ -]", "_", text).strip().lstrip(".").strip()
    return visible[:120] or "run"
