"""`kinetoscope index`: sums up all recordings of runs, so that views of many ranks open at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ..errors import BadParameter, KinetoscopeError, NotFound
from .traces import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..discovery import Listing, TraceFile

MOST_TOLD = 20


@click.command()
@click.argument("path")
@click.option("--run", help="Which run of the logdir; all of them if not given.")
@click.option(
    "--engine",
    default="local",
    show_default=True,
    metavar="local|dask://HOST:PORT",
    help="Who reads: processes of this machine, or the Dask cluster of this scheduler; its workers see the same paths.",
)
@click.option("--processes", type=click.IntRange(min=1), help="How many processes here; one per core if not given.")
def index(path: str, run: str | None, engine: str, processes: int | None) -> None:
    """Sum up every recording of a run, so that the views of its ranks open at once, here and in TensorBoard.

    What was summed up stays in the cache (KINETOSCOPE_CACHE names its folder), so what is begun again goes on where it
    was. A recording that can't be read is told, and stops nothing.
    """
    from ..cache import configured
    from ..discovery import list_given
    from ..store import crew, summaries

    cache = configured()
    if cache is None:
        raise BadParameter("The cache is off, and that is where summaries go. Name a folder with KINETOSCOPE_CACHE.")
    files = _files(list_given(path), run)
    began, broken = time.monotonic(), []
    with crew(engine, len(files), processes) as hands, counted(len(files), "recordings") as tell:
        for file, found in summaries(files, cache, hands, tell):
            if isinstance(found, KinetoscopeError):
                broken.append((file, found))
    _tell(files, broken, time.monotonic() - began)


def _files(listing: Listing, run: str | None) -> Sequence[TraceFile]:
    if run is not None and run not in listing.runs:
        raise NotFound("run", run, listing.runs)
    return [file for file in listing.files if run in (None, file.run)]


def _tell(files: Sequence[TraceFile], broken: Sequence[tuple[TraceFile, KinetoscopeError]], seconds: float) -> None:
    from .text_table import visible

    read = "1 recording" if len(files) == 1 else f"{len(files):,} recordings"
    click.echo(f"{read}, {len(files) - len(broken):,} of them summed up, in {seconds:.1f} s.")
    for file, error in broken[:MOST_TOLD]:
        click.echo(f"{visible(file.shown)}: {visible(str(error))}", err=True)
    if len(broken) > MOST_TOLD:
        click.echo(f"… and {len(broken) - MOST_TOLD:,} more that can't be used.", err=True)
