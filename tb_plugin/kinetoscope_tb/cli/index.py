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

MOST_PRINTED = 20


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
@click.option(
    "--beside", is_flag=True, help="Put the summaries beside the recordings too, for whoever opens the run elsewhere."
)
def index(path: str, run: str | None, engine: str, processes: int | None, beside: bool) -> None:
    """Sum up every recording of a run, so that the views of its ranks open at once, here and in TensorBoard.

    What was summed up stays in the cache (KINETOSCOPE_CACHE names its folder), so what is begun again goes on where it
    was. A recording that can't be read is told, and stops nothing.

    With --beside they also go into the folders of the recordings, as kinetoscope.summaries, on this disk or far away:
    others open the run from there, and read no recording that is as it was.
    """
    from ..discovery import list_path
    from ..engine import executors, load_summaries
    from ..engine.cache import configured
    from ..engine.sidecar_summaries import SidecarWriter

    cache = configured()
    if cache is None and not beside:
        raise BadParameter("The cache is off, and that is where summaries go. Name a folder with KINETOSCOPE_CACHE.")
    files = _files(list_path(path), run)
    began, broken = time.monotonic(), []
    notes: list[str] = []
    with (
        SidecarWriter() as sidecars,
        executors(engine, len(files), processes) as factory,
        counted(len(files), "recordings") as on_progress,
    ):
        for file, outcome in load_summaries(files, cache, factory, on_progress, notes.append):
            if isinstance(outcome, KinetoscopeError):
                broken.append((file, outcome))
            elif beside:
                sidecars.add(file, outcome)
        notes += sidecars.write()
    _print_outcome(files, broken, time.monotonic() - began, notes)


def _files(listing: Listing, run: str | None) -> Sequence[TraceFile]:
    if run is not None and run not in listing.runs:
        raise NotFound("run", run, listing.runs)
    return [file for file in listing.files if run in (None, file.run)]


def _print_outcome(
    files: Sequence[TraceFile],
    broken: Sequence[tuple[TraceFile, KinetoscopeError]],
    seconds: float,
    notes: Sequence[str],
) -> None:
    from .text_table import visible

    read = "1 recording" if len(files) == 1 else f"{len(files):,} recordings"
    click.echo(f"{read}, {len(files) - len(broken):,} of them summed up, in {seconds:.1f} s.")
    for note in notes[:MOST_PRINTED]:
        click.echo(visible(note), err=True)
    for file, error in broken[:MOST_PRINTED]:
        click.echo(f"{visible(file.shown)}: {visible(str(error))}", err=True)
    if len(broken) > MOST_PRINTED:
        click.echo(f"… and {len(broken) - MOST_PRINTED:,} more that can't be used.", err=True)
