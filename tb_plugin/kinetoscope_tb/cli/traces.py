"""Selects the trace of a command, and reads it with progress output."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ..discovery import list_path, span_labels
from ..engine.cache import configured_cache
from ..engine.captures import with_captures, with_chosen_captures
from ..engine.file_processes import FileProcesses
from ..engine.files import open_or_read, write_to_cache
from ..errors import BadParameter, TraceError
from ..measures.recording.device_properties import name_devices
from ..names.communication_patterns import FILE_NAME, parse_patterns
from ..names.device_peaks import device_peaks
from ..names.text import visible
from .progress import reading_bar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..discovery import Listing, TraceFile
    from ..names.processes import Process
    from ..trace import Trace


def list_files(path: str, communication: Sequence[str] = ()) -> Listing:
    """List a path with users' patterns of communication; what is wrong in a file of patterns is reported.

    Raises:
        BadParameter: A pattern of the command can't be used, or the path is standard input.
        LogdirError: There is no such path, or it holds no trace.
    """
    if path == "-":
        raise BadParameter(_STANDARD_INPUT)
    patterns, bad = parse_patterns(communication)
    if bad:
        raise BadParameter(f"--communication-pattern number {bad[0].line}: {bad[0].reason}")
    listing = list_path(path, patterns)
    for problem in listing.problems:
        if FILE_NAME in problem.path.rpartition("/")[2]:
            click.echo(visible(f"{problem.path}: {problem.reason}"), err=True)
    return with_known_processes(listing)


_traces_read: dict[tuple[str, str | None], tuple[Trace, bool]] = {}
"""Traces that were read to know what their files hold, until they are opened."""


def with_known_processes(listing: Listing) -> Listing:
    """The listing with the processes of files that hold several; of a single file that is known from reading it."""
    processes = FileProcesses(configured_cache())
    files = processes.expand(listing).files
    if len(files) == 1 and files[0].process is None:
        with suppress(TraceError):  # the command reports it
            trace, is_new = _read(files[0])
            own = files[0] if trace.meta.process is None else replace(files[0], process=trace.meta.process.id)
            _traces_read[own.key] = trace, is_new
            processes.note(files[0], trace.meta.processes)
    return processes.expand(listing)


LEVELS = ("run", "worker", "span")
_STANDARD_INPUT = (
    "Standard input can't be read, because a trace is read at several places. Write it to a file first: "
    "… > trace.json.gz, and give that."
)


def choose_file(
    listing: Listing, selection: Mapping[str, str | None], side: str = "", levels: Sequence[str] = LEVELS
) -> TraceFile:
    """The newest file that matches the names; reports if there are others.

    Args:
        listing: The available files.
        selection: run, worker and span.
        side: Prefix of the options that choose another one, such as `base-`.
        levels: For which of these other choices are reported.

    Raises:
        NotFound: No file has these names.
    """
    file, choices = listing.newest(**selection)
    for level, names in ((level, names) for level, names in choices.items() if level in levels):
        names_shown = _with_labels(level, names)
        others = ", ".join(names_shown[1:6]) + (", …" if len(names) > 6 else "")
        which = "one" if level == "worker" else "the newest"
        choice = f"{level} {names_shown[0]}, {which} of {len(names)}"
        click.echo(f"{choice}; choose another with --{side}{level}: {others}", err=True)
    return file


def note_on_others(listing: Listing, file: TraceFile) -> str:
    """That a recording is of one rank alone, and what says what all ranks of its run show; empty without others."""
    ranks = listing.ranks(file.run)
    if len(ranks) < 2:
        return ""
    return (
        f"{visible(file.worker)} alone, one of {len(ranks)} ranks: `kinetoscope summary` without --worker compares all."
    )


def _with_labels(level: str, names: Sequence[str]) -> list[str]:
    """The names to choose from, with their display names."""
    labels = span_labels(names) if level == "span" else {}
    return [visible(name if labels.get(name, name) == name else f"{name} ({labels[name]})") for name in names]


def _with_devices(trace: Trace, name: str | None) -> Trace:
    """The trace with its devices called by this name.

    Raises:
        BadParameter: No device with known limits has it.
    """
    if name is None:
        return trace
    if device_peaks(name) is None:
        raise BadParameter(
            f"The limits of a device called {name!r} aren't known. Pass the name that its driver reports, such as "
            "'NVIDIA H100 80GB HBM3' or 'AMD Instinct MI300X'."
        )
    return name_devices(trace, name)


@contextmanager
def open_trace(
    file: TraceFile, device: str | None = None, captures: Sequence[str] = (), *, is_quiet: bool = False
) -> Iterator[Trace]:
    """The trace in a file, its devices called `device` if given; it is cached after the answer is printed.

    Args:
        file: The file.
        device: The name of its devices.
        captures: Files that say what its graphs launch; by default those next to it.
        is_quiet: Whether not to report that the file holds several processes.

    Raises:
        LogdirError: There is no such capture.
        TraceError: The file or a chosen capture can't be used.
    """
    folder = configured_cache()
    trace, is_new = _traces_read.pop(file.key) if file.key in _traces_read else _read(file)
    if file.process is None and trace.meta.processes and not is_quiet:
        note_processes(file, trace.meta.processes)
    yield with_captures(_with_devices(trace, device), with_chosen_captures(file, captures), folder)
    if is_new and folder is not None:
        sys.stdout.flush()
        own = file if trace.meta.process is None else replace(file, process=trace.meta.process.id)
        write_to_cache(trace, own, folder)


def _read(file: TraceFile) -> tuple[Trace, bool]:
    """The trace in a file, and whether it was read, not opened from the cache."""
    with reading_bar(file) as note:
        return open_or_read(file, configured_cache(), note)


def note_processes(file: TraceFile, processes: Sequence[Process]) -> None:
    """Report that a file holds several processes, and remember it, so that the next command lists them."""
    FileProcesses(configured_cache()).note(file, processes)
    names = ", ".join(process.worker for process in processes[:5]) + (", …" if len(processes) > 5 else "")
    words = f"{file.shown} holds {len(processes)} workers, a run of their own: {names}. This is {processes[0].worker}."
    click.echo(visible(words), err=True)
