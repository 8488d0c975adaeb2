"""`kinetoscope trigger`, `status` and `recover`: jobs that record, and recordings of killed jobs."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kinetoscope.journal.recover import can_recover, finish_spools, recover_journals
from kinetoscope.journal.status import is_writable, recover_command
from kinetoscope.journal.unfinished_windows import unfinished_windows

from ..discovery.jobs import ask, job_in, ranks_in
from ..errors import BadParameter, KinetoscopeError
from ..names.text import visible
from ..web.json_text import json_text
from .completion import NonEmptyPath

if TYPE_CHECKING:
    from kinetoscope.journal.recover import FinishedSpool
    from kinetoscope.journal.status import RankStatus

    from ..discovery.jobs import Job

_run = click.argument("run", type=NonEmptyPath(path_type=Path))
_format = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


@click.command()
@_run
@click.option("--steps", default=3, show_default=True, help="Number of steps to record.")
@click.option("--warmup", default=1, show_default=True, help="Steps before them that are profiled and discarded.")
@click.option("--at", type=int, help="The first step to record; by default as soon as all ranks can agree on it.")
@click.option("--roundup", default=1, show_default=True, help="Begin at a multiple of this.")
@click.option("--ranks", help="Only these ranks, such as 0,8-15.")
@click.option("--on", multiple=True, metavar="OPTION", help="Record this too: with_stack, profile_memory, …")
@click.option("--off", multiple=True, metavar="OPTION", help="Don't record this: record_shapes, …")
@click.option("--memory", is_flag=True, help="Record allocations of the devices too, and save a memory snapshot.")
@click.option("--wait", "wait_s", type=float, help="Wait up to this many seconds for the traces.")
def trigger(run: Path, on: tuple[str, ...], off: tuple[str, ...], wait_s: float | None, **numbers: Any) -> None:
    """Request that the job which records into the folder RUN record its next steps, the same ones on all ranks.

    The job accepts the request within a second; several ranks begin together some seconds later.
    """
    job = job_in(run)
    options = {**dict.fromkeys(on, True), **dict.fromkeys(off, False)}
    ranks = None if numbers["ranks"] is None else ranks_in(numbers["ranks"])
    request = ask(job, {**numbers, "ranks": ranks, "options": options}, "command")
    click.echo(f"Requested {request.steps} steps from {_running_ranks(job)}.")
    if wait_s is not None:
        _wait(run, request.id, time.monotonic() + wait_s)


@click.command()
@_run
@_format
def status(run: Path, form: str) -> None:
    """Show what each rank of the job that records into the folder RUN is doing, or did last."""
    job = job_in(run)
    if form == "json":
        click.echo(json_text(job.to_json()))
        return
    for rank in job.ranks:
        click.echo(visible(_state_of(rank)))
        for left in rank.left_out:
            click.echo(visible(f"  no window from step {left.get('step')} on: {left.get('problem')}"))
        if rank.hang is not None:
            click.echo(visible(f"  step {rank.hang['step']} has lasted for {rank.hang['seconds']} s or more, in"))
            for frame in rank.hang["stack"][:5]:
                click.echo(visible(f"    {frame}"))
    for doubt in sorted({rank.doubt for rank in job.ranks if rank.doubt}):
        ranks = ", ".join(str(rank.rank) for rank in job.ranks if rank.doubt == doubt)
        click.echo(visible(f"ranks {ranks}: {doubt}"))
    for text in unfinished_windows(job.folder):
        click.echo(visible(text))
    count, size = len(job.ranks), max((rank.world_size for rank in job.ranks), default=0)
    if count < size:
        click.echo(f"{size - count} of {size} ranks haven't reported.")
    click.echo(
        visible(f"It accepts no requests: {job.unavailable_reason}.")
        if job.unavailable_reason
        else "It accepts requests."
    )
    if any(rank.state == "dead" and not rank.is_recovered for rank in job.ranks) and can_recover(job.folder):
        click.echo(visible(f"To recover traces: {recover_command(job.folder)}"))


def _state_of(rank: RankStatus) -> str:
    """What a rank is doing, or did last."""
    step = "no step yet" if rank.completed is None else f"{rank.completed} steps"
    reason = f" ({rank.reason})" if rank.reason else ""
    slow = "" if rank.slow_step is None else f", {rank.slow_step}"
    recording = ", recording" if rank.is_recording else "" if rank.records else ", doesn't record"
    last_seen = "" if rank.state == "ended" else f", last seen {rank.age_s:.0f} s ago"
    recovery = ", recovered" if rank.is_recovered else ""
    return (
        f"rank {rank.rank}: {rank.state}{reason}, {step}{recording}{slow}{last_seen}{recovery}, {rank.host} {rank.pid}"
    )


@click.command()
@_run
@click.option("--force", is_flag=True, help="Include processes that may still be alive on another machine.")
@click.option(
    "--output", type=NonEmptyPath(path_type=Path, file_okay=False), help="Write the traces here, not into RUN."
)
@click.option(
    "--remote",
    "url_prefixes",
    multiple=True,
    metavar="URL",
    help="Upload pending copies whose destination is this URL or below.",
)
def recover(run: Path, force: bool, output: Path | None, url_prefixes: tuple[str, ...]) -> None:
    """Recover traces of killed processes of the run in the folder RUN.

    Recordings that were complete but not yet compressed and moved to their place are finished, on the machine that made
    them, by the user who did. If a recording was never saved, its steps, markers and counters become a trace. Copies
    are uploaded only below a URL that --remote names.
    """
    if not all(url_prefixes):
        raise BadParameter("--remote needs a URL.")
    folder = job_in(run).folder
    if output is not None:
        _make(output)
    half_done = finish_spools(folder, url_prefixes=url_prefixes, output=output)
    results = recover_journals(folder, force=force, output=output)
    for process in half_done:
        _tell_of(process)
    for result in results:
        if result.trace is not None:
            click.echo(visible(f"{result.trace}: {result.steps} steps of {result.journal_path.name}"))
        else:
            click.echo(visible(f"{result.journal_path}: {result.problem}"), err=True)
    if not results and not half_done:
        click.echo("Nothing to recover: no process left anything that isn't saved.")
    if any(result.trace is None for result in results) or any(process.problem for process in half_done):
        if output is None and not is_writable(folder):
            advice = recover_command(folder)
            raise KinetoscopeError(visible(f"{folder} can't be written: `{advice}` writes the traces elsewhere."))
        raise KinetoscopeError("Not everything could be recovered.")


def _tell_of(process: FinishedSpool) -> None:
    """Print the outcome for the unfinished recordings of one process."""
    for window in process.windows:
        click.echo(visible(f"{window['file']}: {window['state']}"))
    for url in process.pending_copies:
        folder = url.rpartition("/")[0]
        click.echo(
            visible(f"A copy to {url} is pending; if that place is yours, --remote {shlex.quote(folder)} uploads it.")
        )
    if process.problem:
        who = "what was left" if process.rank is None else f"rank {process.rank}"
        click.echo(visible(f"{who}: {process.problem}"), err=True)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KinetoscopeError(f"{folder} can't be created: {error.strerror}.") from error


def _running_ranks(job: Job) -> str:
    alive = [rank for rank in job.ranks if rank.state == "running"]
    steps = max((rank.completed or 0 for rank in alive), default=0)
    return f"{len(alive)} rank{'' if len(alive) == 1 else 's'}, after {steps} steps"


def _wait(run: Path, request: str, deadline: float) -> None:
    """Wait for the traces of a request, and print them.

    Raises:
        KinetoscopeError: They didn't arrive.
    """
    while time.monotonic() < deadline:
        job = job_in(run)
        plan = job.plan_of(request)
        if plan is not None:
            files = sorted(run.glob(f"*.{plan['first'] + plan['request']['steps']}.pt.trace.json.gz"))
            if len(files) >= len(plan["request"]["ranks"] or [rank for rank in job.ranks if rank.records]):
                for file in files:
                    click.echo(visible(str(file)))
                return
        if job.unavailable_reason:
            raise KinetoscopeError(f"The job no longer accepts requests: {job.unavailable_reason}.")
        time.sleep(0.5)
    raise KinetoscopeError("The traces didn't arrive in time.")
