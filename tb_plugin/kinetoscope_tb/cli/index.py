"""`kinetoscope index`: summarizes all recordings of runs, so that views of many ranks open at once."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from ..engine.cache import configured_cache
from ..engine.executors import executors
from ..engine.sidecar_summaries import SidecarWriter
from ..engine.summary_loader import load_summaries
from ..errors import BadParameter, KinetoscopeError, NotFound
from ..names.text import visible
from .completion import PATH
from .options import communication_option
from .progress import count_bar
from .traces import list_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..discovery import Listing, TraceFile

MOST_PRINTED = 20


@click.command()
@click.argument("path", type=PATH)
@click.option("--run", help="Which run of the logdir; by default all.")
@click.option(
    "--engine",
    default="local",
    show_default=True,
    metavar="local|dask://HOST:PORT",
    help="Where to read: processes of this machine, or the Dask cluster of this scheduler, with the same paths.",
)
@click.option(
    "--processes", type=click.IntRange(min=1), help="Number of processes on this machine; by default one per core."
)
@click.option(
    "--beside", "is_sidecar", is_flag=True, help="Also store the summaries next to the recordings, for other machines."
)
def index(
    path: str, run: str | None, engine: str, processes: int | None, is_sidecar: bool, communication: Sequence[str]
) -> None:
    """Summarize every recording of a run, so that the views of its ranks open at once, here and in TensorBoard.

    Summaries are stored in the cache (KINETOSCOPE_CACHE names its folder), so a second call continues where the first
    stopped. Recordings that can't be read are reported and skipped.

    With --beside the summaries are also written into the folders of the recordings, as kinetoscope.summaries, local or
    remote: others then open the run without reading its recordings, as long as these don't change.
    """
    cache = configured_cache()
    if cache is None and not is_sidecar:
        raise BadParameter("Summaries are stored in the cache, which is off. Set KINETOSCOPE_CACHE to a folder.")
    files = _files(list_files(path, communication), run)
    began, failures = time.monotonic(), []
    notes: list[str] = []
    with (
        SidecarWriter() as sidecars,
        executors(engine, len(files), processes) as factory,
        count_bar(len(files), "recordings") as on_progress,
    ):
        for file, outcome in load_summaries(files, cache, factory, on_progress, notes.append):
            if isinstance(outcome, KinetoscopeError):
                failures.append((file, outcome))
            elif is_sidecar:
                sidecars.add(file, outcome)
        notes += sidecars.write()
    _print_outcome(files, failures, time.monotonic() - began, notes)


index.params.append(communication_option())


def _files(listing: Listing, run: str | None) -> Sequence[TraceFile]:
    if run is not None and run not in listing.runs:
        raise NotFound("run", run, listing.runs)
    return [file for file in listing.files if run in (None, file.run)]


def _print_outcome(
    files: Sequence[TraceFile],
    failures: Sequence[tuple[TraceFile, KinetoscopeError]],
    seconds: float,
    notes: Sequence[str],
) -> None:
    read = "1 recording" if len(files) == 1 else f"{len(files):,} recordings"
    click.echo(f"{read}, {len(files) - len(failures):,} of them summarized, in {seconds:.1f} s.")
    for note in notes[:MOST_PRINTED]:
        click.echo(visible(note), err=True)
    for file, error in failures[:MOST_PRINTED]:
        click.echo(f"{visible(file.shown)}: {visible(str(error))}", err=True)
    if len(failures) > MOST_PRINTED:
        click.echo(f"… and {len(failures) - MOST_PRINTED:,} more that can't be used.", err=True)
