"""`kinetoscope report`: the page with its answers in one file."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

import click

from ..answer.recording import recording_answer
from ..engine.answers import cached_frames
from ..errors import KinetoscopeError, TraceError
from ..names.text import file_size, times
from ..views import EVERY_VIEW, VIEWS
from ..web.report import WholeRun, workers_of
from ..web.report import report as report_page
from .anonymous_run import WHAT_STAYS, AnonymousRun
from .completion import PATH
from .options import communication_option, device_option, where
from .output_file import open_output
from .ranks import answer_of_worker, side_by_side
from .traces import choose_file, list_files, open_trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..answer.model import Answer
    from ..discovery import Listing, TraceFile
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
    of_run = workers_of(listing, first)
    files = of_run if all_workers else [first]
    is_of_run = (all_workers or worker is None) and len({file.worker for file in of_run}) > 1
    recordings: Callable[[Sequence[TraceFile]], Recordings] = partial(
        _recordings, device=device, must_open=None if all_workers else first
    )
    whole = _whole_run(listing, device)
    if anonymous:
        anonymous_run = AnonymousRun(recordings, of_run if is_of_run else files)
        recordings, whole = anonymous_run.recordings, WholeRun(anonymous_run.ranks, anonymous_run.answer_of)
        click.echo(WHAT_STAYS, err=True)
    views, ranks = (EVERY_VIEW, whole) if is_of_run else (VIEWS, None)
    content = report_page(recordings(files), len(files), views, rows, ranks).encode()
    with open_output(out) as file:
        file.write(content)
    click.echo(f"{out}: {times(len(files), 'recording')}, {file_size(len(content))}.")


def _whole_run(listing: Listing, device: str | None) -> WholeRun:
    """What the report asks about the run of its recordings; each recording is read for that once at most."""

    @cache
    def answer_of(file: TraceFile) -> Answer:
        with open_trace(file, device) as trace:
            return recording_answer(trace, EVERY_VIEW, cached_frames).of_file(file, file.shown)

    return WholeRun(
        partial(side_by_side, listing), lambda file, worker: answer_of_worker(listing, file, answer_of, worker)
    )


def _recordings(files: Sequence[TraceFile], device: str | None, must_open: TraceFile | None) -> Recordings:
    """Each file with its trace; one that is unusable is reported, and stops the others only if it is `must_open`."""
    for file in files:
        try:
            with open_trace(file, device) as trace:
                yield file, trace
        except TraceError as error:
            if file == must_open:
                raise
            yield file, error


report = click.Command(
    "report",
    callback=_write,
    params=[
        *where(),
        device_option(),
        click.Argument(["out"], metavar="OUT.html", type=PATH),
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

    Of a run with several ranks it is that of the first one, with what all ranks say together; --worker chooses one
    alone.

    Long tables are cut, with a note. Data that the page requests on demand isn't included: events, comparisons, zoomed
    ranges.
    """,
)
