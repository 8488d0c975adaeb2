"""Selects the trace of a command, and reads it with progress output."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ..errors import BadParameter, TraceError
from .completion import complete_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..discovery import Listing, TraceFile
    from ..distributed import Ranks
    from ..names.processes import Process
    from ..reader import Progress
    from ..trace import Trace


def where() -> list[click.Parameter]:
    """The argument and options that select a trace."""
    return [
        click.Argument(["path"], shell_complete=complete_path),
        click.Option(["--run"], help="Which run of the logdir; by default the newest."),
        click.Option(["--worker"], help="Which worker (rank) of the run; by default the first."),
        click.Option(["--span"], help="Which recording of the worker; by default the newest."),
    ]


def communication_option() -> click.Option:
    """The option with users' own patterns of communication."""
    return click.Option(
        ["--communication-pattern", "communication"],
        metavar="REGEX",
        multiple=True,
        help="Count kernels with such names as communication; with `range:` in front, operators and annotations, and "
        "the kernels that they launch. Repeatable.",
    )


def listed(path: str, communication: Sequence[str] = ()) -> Listing:
    """List a path with users' patterns of communication; what is wrong in a file of patterns is reported.

    Raises:
        BadParameter: A pattern of the command can't be used, or the path is standard input.
        LogdirError: There is no such path, or it holds no trace.
    """
    from ..discovery import list_path
    from ..names.communication_patterns import FILE_NAME, parse_patterns
    from ..names.text import visible

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
    from ..engine import FileProcesses
    from ..engine.cache import configured

    known = FileProcesses(configured())
    files = known.expand(listing).files
    if len(files) == 1 and files[0].process is None:
        with suppress(TraceError):  # the command reports it
            trace, is_new = _read(files[0])
            own = files[0] if trace.meta.process is None else replace(files[0], process=trace.meta.process.id)
            _traces_read[own.key] = trace, is_new
            known.note(files[0], trace.meta.processes)
    return known.expand(listing)


LEVELS = ("run", "worker", "span")
_STANDARD_INPUT = (
    "Standard input can't be read, because a trace is read at several places. Write it to a file first: "
    "… > trace.json.gz, and give that."
)
_BAR = 20  # characters of a progress bar


def chosen(
    listing: Listing, requested: Mapping[str, str | None], side: str = "", levels: Sequence[str] = LEVELS
) -> TraceFile:
    """The newest file that matches the names; reports if there are others.

    Args:
        listing: The available files.
        requested: run, worker and span.
        side: Prefix of the options that choose another one, such as `base-`.
        levels: For which of these other choices are reported.

    Raises:
        NotFound: No file has these names.
    """
    file, choices = listing.newest(**requested)
    for level, names in ((level, names) for level, names in choices.items() if level in levels):
        shown = _with_labels(level, names)
        others = ", ".join(shown[1:6]) + (", …" if len(names) > 6 else "")
        which = "" if level == "worker" else ", the newest"
        of = f"{level} {shown[0]} of {len(names)}{which}"
        click.echo(f"{of}; choose another with --{side}{level}: {others}", err=True)
    return file


def _with_labels(level: str, names: Sequence[str]) -> list[str]:
    """The names to choose from, with their display names."""
    from ..discovery import span_labels
    from ..names.text import visible

    labels = span_labels(names) if level == "span" else {}
    return [visible(name if labels.get(name, name) == name else f"{name} ({labels[name]})") for name in names]


def device_option() -> click.Option:
    """The option that names the devices of a trace which doesn't."""
    return click.Option(
        ["--device"],
        metavar="NAME",
        help="The device that recorded the trace, if the trace doesn't name it: as its driver calls it, such as "
        "'NVIDIA H100 80GB HBM3' or 'AMD Instinct MI300X'.",
    )


def capture_option(side: str = "") -> click.Option:
    """The option that names recordings of how the graphs were captured, of the trace or of one side."""
    return click.Option(
        [f"--{side}-capture" if side else "--capture", f"{side}_captures" if side else "captures"],
        metavar="PATH",
        multiple=True,
        help=f"A recording of the capture of the graphs that the {side or 'trace'} replays, or of the same work "
        f"without graphs. By default those next to the {side or 'trace'}. Repeatable.",
    )


def _with_devices(trace: Trace, name: str | None) -> Trace:
    """The trace with its devices called by this name.

    Raises:
        BadParameter: No device with known limits has it.
    """
    if name is None:
        return trace
    from ..measures.recording.device_properties import name_devices
    from ..names.device_peaks import device_peaks

    if device_peaks(name) is None:
        raise BadParameter(
            f"The limits of a device called {name!r} aren't known. Pass the name that its driver reports, such as "
            "'NVIDIA H100 80GB HBM3' or 'AMD Instinct MI300X'."
        )
    return name_devices(trace, name)


@contextmanager
def opened(
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
    from ..engine import with_captures, with_chosen_captures, write_to_cache
    from ..engine.cache import configured

    folder = configured()
    trace, is_new = _traces_read.pop(file.key) if file.key in _traces_read else _read(file)
    if file.process is None and trace.meta.processes and not is_quiet:
        note_processes(file, trace.meta.processes)
    joined = with_captures(trace, with_chosen_captures(file, captures), folder)
    yield _with_devices(joined, device)
    if is_new and folder is not None:
        sys.stdout.flush()
        own = file if trace.meta.process is None else replace(file, process=trace.meta.process.id)
        write_to_cache(trace, own, folder)


def _read(file: TraceFile) -> tuple[Trace, bool]:
    """The trace in a file, and whether it was read, not opened from the cache."""
    from ..engine import open_or_read
    from ..engine.cache import configured

    with _progress_bar(file) as note:
        return open_or_read(file, configured(), note)


def note_processes(file: TraceFile, processes: Sequence[Process]) -> None:
    """Report that a file holds several processes, and remember it, so that the next command lists them."""
    from ..engine import FileProcesses
    from ..engine.cache import configured
    from ..names.text import visible

    FileProcesses(configured()).note(file, processes)
    names = ", ".join(process.worker for process in processes[:5]) + (", …" if len(processes) > 5 else "")
    words = f"{file.shown} holds {len(processes)} workers, a run of their own: {names}. This is {processes[0].worker}."
    click.echo(visible(words), err=True)


def side_by_side(listing: Listing, file: TraceFile, scope: str) -> Ranks:
    """All recordings of a file's span, or of its run; summaries that were computed are written to the cache."""
    from ..engine import FileProcesses, HoldsSeveral, files_of, load_summaries, local_executors, ranks_of
    from ..engine.cache import configured

    files = files_of(listing, file, scope)
    notes: list[str] = []
    with counted(len(files), "recordings") as on_progress:
        summaries = load_summaries(files, configured(), local_executors(len(files)), on_progress, notes.append)
        outcomes = list(summaries)
    for other, outcome in outcomes:
        if isinstance(outcome, HoldsSeveral):
            FileProcesses(configured()).note(other, outcome.processes)
    return ranks_of(listing, file, files, outcomes, notes)


@contextmanager
def counted(total: int, of_what: str) -> Iterator[Callable[[int], None]]:
    """A callback that draws the number done so far, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(of_what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(of_what, total=total)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def _progress_bar(file: TraceFile) -> Iterator[Callable[[Progress], None] | None]:
    """A callback that draws the reader's progress (share, rate and time left), if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    from ..names.text import visible

    words = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (words, BarColumn(_BAR), TaskProgressColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    name = escape(visible(file.shown))
    with Bar(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
        task = bar.add_task(f"opening {name}", total=file.bytes or None)
        yield lambda progress: bar.update(task, completed=progress.read_bytes, description=f"{progress.stage} {name}")
