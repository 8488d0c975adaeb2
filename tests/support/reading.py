"""Readers for an engine, in place of the one that reads files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any


def one_process(read: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """A reader of files of one process each, from a function of the path and the progress."""

    def traces(path: str, progress: Any, _process: str | None = None) -> Iterator[Any]:
        yield read(path, progress)

    return traces
