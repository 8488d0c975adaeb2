"""`kinetoscope trigger`, `status` and `recover`: jobs that record, and what is left of those that were killed."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import BadParameter, KinetoscopeError

if TYPE_CHECKING:
    from kinetoscope.journal.recover import FinishedSpool

    from ..discovery.jobs import Job

_run = click.argument("run", type=click.Path(path_type=Path))
_format = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.command()
@_run
@click.option("--steps", default=3, show_default=True, help="How many steps to record.")
@click.option("--warmup", default=1, show_default=True, help="Steps before them that are profiled and thrown away.")
@click.option("--at", type=int, help="The first step to record; by default as soon as all ranks can know of it.")
@click.option("--roundup", default=1, show_default=True, help="Begin at a multiple of this.")
@click.option("--ranks", help="Only these ranks, such as 0,8-15.")
@click.option("--on", multiple=True, metavar="OPTION", help="Record this too: with_stack, profile_memory, …")
@click.option("--off", multiple=True, metavar="OPTION", help="Don't record this: record_shapes, …")
@click.option("--wait", "wait_s", type=float, help="Wait so many seconds at most until the traces are there.")
def trigger(run: Path, on: tuple[str, ...], off: tuple[str, ...], wait_s: float | None, **numbers: Any) -> None:
    """Let the job that records into the folder RUN record the next steps, on all ranks the same ones.

    The job takes the request within a second; where it has several ranks, they begin some seconds later together.
    """
    from ..discovery.jobs import ask, job_in, ranks_in

    job = job_in(run)
    options = {**dict.fromkeys(on, True), **dict.fromkeys(off, False)}
    ranks = None if numbers["ranks"] is None else ranks_in(numbers["ranks"])
    request = ask(job, {**numbers, "ranks": ranks, "options": options}, "command")
    click.echo(f"Asked {_place(job)} for {request.steps} steps.")
    if wait_s is not None:
        _wait(run, request.id, time.monotonic() + wait_s)


@click.command()
@_run
@_format
def status(run: Path, form: str) -> None:
    """Show what each rank of the job that records into the folder RUN does, or did last."""
    from kinetoscope.journal.status import recover_command

    from ..discovery.jobs import job_in
    from ..web import encode
    from .text_table import visible

    job = job_in(run)
    if form == "json":
        click.echo(encode.text(job.to_json()))
        return
    for rank in job.ranks:
        step = "no step yet" if rank.completed is None else f"{rank.completed} steps"
        ended = f" ({rank.reason})" if rank.reason else ""
        recording = ", recording" if rank.is_recording else "" if rank.records else ", not one that records"
        heard = "" if rank.state == "ended" else f", heard {rank.age_s:.0f} s ago"
        click.echo(visible(f"rank {rank.rank}: {rank.state}{ended}, {step}{recording}{heard}, {rank.host} {rank.pid}"))
        for left in rank.left_out:
            click.echo(visible(f"  no window from step {left.get('step')} on: {left.get('problem')}"))
        if rank.hanging is not None:
            click.echo(visible(f"  step {rank.hanging['step']} hangs for {rank.hanging['seconds']} s or more, in"))
            for frame in rank.hanging["stack"][:5]:
                click.echo(visible(f"    {frame}"))
    for doubt in sorted({rank.doubt for rank in job.ranks if rank.doubt}):
        ranks = ", ".join(str(rank.rank) for rank in job.ranks if rank.doubt == doubt)
        click.echo(visible(f"ranks {ranks}: {doubt}"))
    reported, size = len(job.ranks), max((rank.world_size for rank in job.ranks), default=0)
    if reported < size:
        click.echo(f"{size - reported} of {size} ranks have said nothing.")
    click.echo(visible(f"It takes no requests: {job.why_deaf}.") if job.why_deaf else "It takes requests.")
    if any(rank.state == "dead" for rank in job.ranks):
        click.echo(visible(f"To make traces of what is left: {recover_command(job.folder)}"))


@click.command()
@_run
@click.option("--force", is_flag=True, help="Also of processes that may still be alive on another machine.")
@click.option("--output", type=click.Path(path_type=Path, file_okay=False), help="Put the traces here, not into RUN.")
@click.option(
    "--remote", "places", multiple=True, metavar="URL", help="Make the copies that were to go to this place, or below."
)
def recover(run: Path, force: bool, output: Path | None, places: tuple[str, ...]) -> None:
    """Make traces of what processes that were killed left of the run in the folder RUN.

    Recordings that were complete but not yet compressed and in their place are finished, on the machine that made them,
    by the user who did. Of what was never saved, steps, markers and counters become a trace. No copy is made anywhere
    but below a URL that --remote names.
    """
    from kinetoscope.journal.recover import finish_spools, recover_journals
    from kinetoscope.journal.status import is_writable, recover_command

    from ..discovery.jobs import job_in
    from .text_table import visible

    if not all(places):
        raise BadParameter("--remote needs a URL.")
    folder = job_in(run).folder
    if output is not None:
        _make(output)
    half_done = finish_spools(folder, places=places, output=output)
    results = recover_journals(folder, force=force, output=output)
    for process in half_done:
        _tell_of(process)
    for result in results:
        if result.trace is not None:
            click.echo(visible(f"{result.trace}: {result.steps} steps of {result.journal_path.name}"))
        else:
            click.echo(visible(f"{result.journal_path}: {result.problem}"), err=True)
    if not results and not half_done:
        click.echo("There is nothing to recover: every process closed its recording.")
    if any(result.trace is None for result in results) or any(process.problem for process in half_done):
        if output is None and not is_writable(folder):
            advice = recover_command(folder)
            raise KinetoscopeError(visible(f"{folder} can't be written: `{advice}` puts the traces elsewhere."))
        raise KinetoscopeError("Not everything could be recovered.")


def _tell_of(process: FinishedSpool) -> None:
    """Say what became of the recordings that one process left half done."""
    from .text_table import visible

    for window in process.windows:
        click.echo(visible(f"{window['file']}: {window['state']}"))
    for url in process.pending_copies:
        place = url.rpartition("/")[0]
        click.echo(
            visible(f"A copy was to go to {url}; if that place is yours, --remote {shlex.quote(place)} makes it.")
        )
    if process.problem:
        who = "what was left" if process.rank is None else f"rank {process.rank}"
        click.echo(visible(f"{who}: {process.problem}"), err=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KinetoscopeError(f"{folder} can't be made: {error.strerror}.") from error


def _place(job: Job) -> str:
    alive = [rank for rank in job.ranks if rank.state == "running"]
    completed = max((rank.completed or 0 for rank in alive), default=0)
    return f"{len(alive)} rank{'' if len(alive) == 1 else 's'}, after {completed} steps,"


def _wait(run: Path, request: str, deadline: float) -> None:
    """Wait for the traces of a request, and print them.

    Raises:
        KinetoscopeError: They didn't come.
    """
    from ..discovery.jobs import job_in
    from .text_table import visible

    while time.monotonic() < deadline:
        job = job_in(run)
        plan = job.plan_of(request)
        if plan is not None:
            files = sorted(run.glob(f"*.{plan['first'] + plan['request']['steps']}.pt.trace.json.gz"))
            if len(files) >= len(plan["request"]["ranks"] or [rank for rank in job.ranks if rank.records]):
                for file in files:
                    click.echo(visible(str(file)))
                return
        if job.why_deaf:
            raise KinetoscopeError(f"Nobody listens any more: {job.why_deaf}.")
        time.sleep(0.5)
    raise KinetoscopeError("The traces didn't come in time.")
