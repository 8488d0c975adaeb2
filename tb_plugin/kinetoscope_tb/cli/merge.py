"""`kinetoscope merge`: all ranks of a span in one file."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, cast

import click
from isal import igzip

from ..discovery import list_path
from ..export.merge import merge as write_merged
from ..names.text import times, visible
from .completion import PATH
from .output_file import open_output
from .traces import with_known_processes

if TYPE_CHECKING:
    from ..discovery import TraceFile


@click.command()
@click.argument("path", type=PATH)
@click.argument("out", metavar="OUT.json[.gz]", type=PATH)
@click.option("--run", help="Which run of the logdir; by default the newest.")
@click.option("--span", help="Which recording; by default the newest.")
def merge(path: str, out: str, run: str | None, span: str | None) -> None:
    """Write all ranks' traces of one span of a run in PATH into one file, for Perfetto and chrome://tracing.

    All ranks are put on one clock: offsets of the files' zeros are corrected, and so are differences of the ranks'
    clocks if the recorder measured them. Processes and arrows are renumbered because ranks use the same numbers. The
    page's timeline shows ranks side by side without a merge.
    """
    listing = with_known_processes(list_path(path))
    first, choices = listing.newest(run=run, worker=None, span=span)
    for level in ("run", "span"):
        if level in choices:
            others = ", ".join(visible(name) for name in choices[level][1:6])
            click.echo(f"{level} {visible(choices[level][0])}; choose another with --{level}: {others}", err=True)
    files = [first, *listing.same_span_of_others(first)]
    with open_output(out) as file:
        gzip_file = igzip.IGzipFile(out, "wb", fileobj=file) if out.endswith(".gz") else None
        result = write_merged(files, cast("IO[bytes]", gzip_file or file), _note)
        if gzip_file is not None:
            gzip_file.close()
    without_offset = [worker["worker"] for worker in result.workers if worker["clock_offset_ns"] is None]
    click.echo(f"{out}: {result.events:,} events of {times(len(files), 'worker')}.")
    if len(files) > 1 and without_offset:
        names = ", ".join(visible(name) for name in without_offset[:5]) + (", …" if len(without_offset) > 5 else "")
        click.echo(f"These clocks weren't measured, so they aren't corrected: {names}.", err=True)
    if result.skipped:
        click.echo(f"{result.skipped:,} events belong to no process and were left out.", err=True)


def _note(file: TraceFile) -> None:
    click.echo(visible(file.shown), err=True)
