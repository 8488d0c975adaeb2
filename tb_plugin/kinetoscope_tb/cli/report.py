"""`kinetoscope report`: the page with its answers in one file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from ..errors import KinetoscopeError, TraceError
from ..names.text import file_size, times
from ..views import EVERY_VIEW, VIEWS
from ..web.report import report as report_page
from ..web.report import workers_of
from .completion import complete_path
from .options import communication_option, device_option, where
from .output_file import open_output
from .ranks import side_by_side
from .traces import choose_file, list_files, open_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..discovery import TraceFile
    from ..distributed.run import Ranks
    from ..trace import Trace

    Recordings = Iterator[tuple[TraceFile, Trace | KinetoscopeError]]


def _write(
    path: str,
    run: str | None,
    worker: str | None,
    span: str | None,
    device: str | None,
    out: str,
    all_workers: bool,
    rows: int,
    communication: Sequence[str],
    anonymous: bool,
) -> None:
    listing = list_files(path, communication)
    first = choose_file(listing, {"run": run, "worker": worker, "span": span})
    files = workers_of(listing, first) if all_workers else [first]
    is_run = len({file.worker for file in files}) > 1
    recordings: Callable[[], Recordings] = partial(_recordings, files, device, is_alone=not all_workers)
    ranks: Callable[[TraceFile, str], Ranks] = partial(side_by_side, listing)
    if anonymous:
        from .anonymous_run import WHAT_STAYS, AnonymousRun  # modules for many ranks, which few reports need

        anonymous_run = AnonymousRun(recordings)
        recordings, ranks = anonymous_run.recordings, anonymous_run.ranks
        click.echo(WHAT_STAYS, err=True)
    text = report_page(recordings(), len(files), EVERY_VIEW if is_run else VIEWS, rows, ranks if is_run else None)
    content = text.encode()
    with open_output(out) as file:
        file.write(content)
    click.echo(f"{out}: {times(len(files), 'recording')}, {file_size(len(content))}.")


def _recordings(files: Sequence[TraceFile], device: str | None, *, is_alone: bool) -> Recordings:
    """Each file with its trace; an unusable one of several is reported and doesn't stop the others."""
    for file in files:
        try:
            with open_trace(file, device) as trace:
                yield file, trace
        except TraceError as error:
            if is_alone:
                raise
            yield file, error


report = click.Command(
    "report",
    callback=_write,
    params=[
        *where(),
        device_option(),
        click.Argument(["out"], metavar="OUT.html", shell_complete=complete_path),
        click.Option(
            ["--all", "all_workers"], is_flag=True, help="Every worker and span of the run, and its ranks side by side."
        ),
        click.Option(
            ["--rows"],
            type=click.IntRange(min=1),
            default=5000,
            show_default=True,
            help="Limit of the rows of a table.",
        ),
        communication_option(),
        click.Option(
            ["--anonymous"],
            is_flag=True,
            help="Replace names of files, functions, modules, ranges, threads, runs, hosts, users; say what stays.",
        ),
    ],
    help="""Write the page of a recording to OUT.html, which opens in a browser without a server or network.

    Long tables are cut, with a note. Data that the page requests on demand isn't included: events, comparisons, zoomed
    ranges.
    """,
)
