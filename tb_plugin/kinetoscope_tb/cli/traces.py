"""Which trace a command is about: a path, names, and the trace itself with its progress."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..discovery import Listing, TraceFile
    from ..reader import Progress
    from ..trace import Trace


def where() -> list[click.Parameter]:
    """The argument and options that name a trace."""
    return [
        click.Argument(["path"]),
        click.Option(["--run"], help="Which run of the logdir; the first if not given."),
        click.Option(["--worker"], help="Which worker (rank) of the run; the first if not given."),
        click.Option(["--span"], help="Which recording of the worker; the first if not given."),
    ]


def chosen(listing: Listing, wanted: Mapping[str, str | None], side: str = "") -> TraceFile:
    """The first file that the names fit; says so if there are others.

    Args:
        listing: What there is.
        wanted: run, worker and span.
        side: What the options that choose another one begin with, such as `base-`.

    Raises:
        NotFound: No file has these names.
    """
    file, choices = listing.first(**wanted)
    for level, names in choices.items():
        shown = _with_labels(level, names)
        others = ", ".join(shown[1:6]) + (", …" if len(names) > 6 else "")
        click.echo(f"{level} {shown[0]} of {len(names)}; choose another with --{side}{level}: {others}", err=True)
    return file


def _with_labels(level: str, names: Sequence[str]) -> list[str]:
    """The names to choose from, with what people call them."""
    from ..discovery import span_labels
    from .text_table import visible

    labels = span_labels(names) if level == "span" else {}
    return [visible(name if labels.get(name, name) == name else f"{name} ({labels[name]})") for name in names]


@contextmanager
def opened(file: TraceFile) -> Iterator[Trace]:
    """The trace in a file; it goes to the cache after the answer was given."""
    from ..cache import configured
    from ..store import keep, open_or_read

    folder = configured()
    with _progress_bar(file) as note:
        trace, is_new = open_or_read(file, folder, note)
    yield trace
    if is_new and folder is not None:
        sys.stdout.flush()
        keep(trace, file, folder)


@contextmanager
def _progress_bar(file: TraceFile) -> Iterator[Callable[[Progress], None] | None]:
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress as Bar

    from .text_table import visible

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(escape(visible(file.shown)), total=file.bytes or None)
        yield lambda progress: bar.update(task, completed=progress.read_bytes)
