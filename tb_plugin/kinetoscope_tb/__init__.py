"""Kinetoscope's viewer: reads PyTorch profiler traces and says what they show.

`open(path)` gives a recording whose views are data frames; docs/python-api.md. Importing this imports nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os

    import polars as pl

    from .profile import Profile

__all__ = ["open", "traces"]


def open(  # noqa: A001  # kinetoscope_tb.open, as one says gzip.open
    path: str | os.PathLike[str], *, run: str | None = None, worker: str | None = None, span: str | None = None
) -> Profile:
    """Open one recording: a trace file, or the first under a logdir that the names fit, here or in a cloud.

    Raises:
        LogdirError: There is no such path, or no trace in it.
        NotFound: No recording has these names.
        TraceError: The file can't be used.
    """
    from .profile import opened

    return opened(str(path), run, worker, span)


def traces(path: str | os.PathLike[str]) -> pl.DataFrame:
    """List the recordings under a path: run, worker, span, path and bytes, to loop over.

    Raises:
        LogdirError: There is no such path, or no trace in it.
    """
    from .profile import listed

    return listed(str(path))
