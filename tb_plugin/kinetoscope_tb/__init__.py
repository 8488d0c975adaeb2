"""Kinetoscope's viewer: reads PyTorch profiler traces and says what they show.

`open(path)` gives a recording whose views are data frames; docs/python-api.md. Importing this imports nothing else.

    loader, plugin, web    the TensorBoard plugin: a tab and its routes     cli, api   the command line, data frames
    views, view, table     what is shown: a view is one file and one line   compare    a view of two traces
    summary, text_table    the first screen and tables as text              notebook   what a notebook shows
    timeline               slices to draw, search and explain               export     files for other tools
    engine                 loads, computes, caches in memory and on disk    advice     what to do about a slow step
    discovery              logdirs → runs, workers, spans                   diagnostics  what is wrong with a recording
    distributed            many ranks: collectives, clocks, stragglers      critical_path  what a step waited for
    measures               pure functions from a trace to arrays            reader     files → traces
    trace                  the columns of a trace                           filesystem   local and remote files
    arrays, names          algorithms; what names of kernels and calls mean   errors   our exceptions

Imports point down only: tests/unit/test_layers.py has the rows.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    import polars as pl

    from kinetoscope._version import __version__

    from .api import Profile

__all__ = ["__version__", "open", "traces"]


def open(  # noqa: A001  # kinetoscope_tb.open, like gzip.open
    path: str | os.PathLike[str],
    *,
    run: str | None = None,
    worker: str | None = None,
    span: str | None = None,
    communication_patterns: Sequence[str] = (),
    captures: Sequence[str | os.PathLike[str]] = (),
) -> Profile:
    """Open one recording: a trace file, or the newest under a logdir, local or remote.

    Args:
        path: The file or the logdir.
        run: Which run; by default the newest.
        worker: Which worker of the run; by default the first.
        span: Which recording of the worker; by default the newest.
        communication_patterns: Further names that count as communication: see docs/communication-patterns.md.
        captures: Recordings that say what its graphs launch; by default those next to it: see docs/inference.md.

    Raises:
        BadParameter: A pattern can't be used.
        LogdirError: There is no such path, no trace in it, or no such capture.
        NotFound: No recording has these names.
        TraceError: The file or a chosen capture can't be used.
    """
    captures = [str(capture) for capture in captures]
    profile: Profile = _api().open_profile(str(path), run, worker, span, communication_patterns, captures)
    return profile


def traces(path: str | os.PathLike[str]) -> pl.DataFrame:
    """List the recordings under a path: run, worker, span, path and bytes, to loop over.

    Raises:
        LogdirError: There is no such path, or no trace in it.
    """
    recordings: pl.DataFrame = _api().list_recordings(str(path))
    return recordings


def _api() -> Any:
    """What answers, by its name: importing the package imports nothing else."""
    return import_module(".api", __name__)


def __getattr__(name: str) -> str:
    """The version, read when it is asked for: importing the package imports nothing else."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    version: str = import_module("kinetoscope._version").__version__
    return version
