"""`kinetoscope check`: whether recordings are complete, for people and for scripts."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kinetoscope.journal.status import unwritable_runs
from kinetoscope.journal.unfinished_windows import unfinished_windows

from ..diagnostics.verification import run_problems, verdict
from ..discovery import Listing, Logdir, list_path
from ..discovery.jobs import run_folders
from ..engine.cache import configured_cache
from ..engine.file_processes import FileProcesses
from ..errors import LogdirError, NotFound, TraceError
from ..filesystem import is_url
from ..names.text import visible
from ..web.json_text import json_text
from .completion import PATH
from .traces import open_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..diagnostics.verification import Verdict
    from ..discovery import TraceFile


@click.command()
@click.argument("path", type=PATH)
@click.option("--run", help="Only this run of the logdir; all if not given.")
@click.option("--strict", is_flag=True, help="Fail on warnings too, not only on losses.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def check(path: str, run: str | None, strict: bool, form: str) -> None:
    """Check that the traces in PATH are complete: readable, without losses, from every rank, with consistent clocks.

    Files of other programs than torch.profiler fail, too. The exit status is 0 if they are, and 1 if not.
    """
    try:
        listing = list_path(path)
    except LogdirError as error:  # all traces may be lost
        raise LogdirError("\n".join([str(error), *_run_lines(_losses_by_run(path, ()))])) from error
    losses = _losses_by_run(path, listing.files)
    processes = FileProcesses(configured_cache())
    listing = processes.expand(listing)
    verdicts = [verdict(file, trace) for file, trace in _traces(_files(listing, run), processes)]
    by_run = {
        name: [outcome for outcome in verdicts if outcome.file.run == name]
        for name in {outcome.file.run for outcome in verdicts}
    }
    problems = {
        name: [*_trace_problems(listing, name, strict=strict), *losses.pop(name, ()), *run_problems(group)]
        for name, group in by_run.items()
        if group
    }
    unusable = [f"{problem.path}: {problem.reason}" for problem in listing.problems] + _run_lines(losses)
    unusable = [] if run else unusable
    bad = [
        outcome
        for outcome in verdicts
        if outcome.state in ("unreadable", "foreign", "loss") or (strict and outcome.state != "ok")
    ]
    is_whole = not (bad or unusable or any(problems.values()))
    if form == "json":
        _print_json(verdicts, problems, unusable, is_whole=is_whole)
    else:
        _print_text(verdicts, problems, unusable)
    if not is_whole:
        raise click.exceptions.Exit(1)


def _trace_problems(listing: Listing, run: str, *, strict: bool) -> list[str]:
    """The recorder's notes about the run: which ranks lost what, and why."""
    levels = ("loss", "warning") if strict else ("loss",)
    return [note.text for note in listing.notes.get(run, ()) if note.level in levels]


def _losses_by_run(path: str, files: Sequence[TraceFile]) -> dict[str, list[str]]:
    """Losses and unfinished files by run on this disk, with traces or without, that no process could report."""
    folders = {} if is_url(path) else dict(run_folders([Logdir(str(Path(path).absolute()))]))
    with suppress(OSError):  # `kinetoscope recover` says why this user's recordings aren't trusted
        folders |= {folder.name: folder for folder in ([] if is_url(path) else unwritable_runs(Path(path)))}
    folders |= {file.run: Path(file.path).parent for file in files if not is_url(file.path)}
    return {run: texts for run, folder in folders.items() if (texts := unfinished_windows(folder))}


def _run_lines(losses: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"run {run}: {text}" for run, texts in losses.items() for text in texts]


def _files(listing: Listing, run: str | None) -> list[TraceFile]:
    if run is not None and run not in listing.runs:
        raise NotFound("run", run, listing.runs)
    return [file for file in listing.files if run in (None, file.run)]


def _traces(files: Sequence[TraceFile], processes: FileProcesses) -> Iterator[tuple[TraceFile, Any]]:
    """Each recording with its trace or its error; of a file that turns out to hold several processes, each."""
    for file in files:
        try:
            with open_trace(file, is_quiet=True) as trace:
                processes.note(file, trace.meta.processes)
                members = processes.expand(Listing((file,))).files if file.process is None else (file,)
                yield members[0], trace
            yield from _traces(members[1:], processes)
        except TraceError as error:
            yield file, error


def _print_text(verdicts: Sequence[Verdict], problems: dict[str, list[str]], unusable: Sequence[str]) -> None:
    for outcome in verdicts:
        worker = "" if outcome.file.process is None else f" · {outcome.file.worker}"
        click.echo(f"{outcome.state:10}  {visible(outcome.file.shown + worker)}")
        if outcome.problem:
            click.echo(f"            {visible(outcome.problem)}")
        for diagnostic in outcome.diagnostics:
            words = visible(diagnostic.consequence)
            click.echo(f"            {diagnostic.level}: {diagnostic.rule} ({diagnostic.count:,}): {words}")
    for run, texts in problems.items():
        for problem in texts:
            click.echo(f"run {visible(run)}: {visible(problem)}")
    for line in unusable:
        click.echo(visible(line))
    good = sum(outcome.state == "ok" for outcome in verdicts)
    runs = "1 run" if len(problems) == 1 else f"{len(problems)} runs"
    click.echo(f"{good} of {len(verdicts)} traces in {runs} have no loss and no warning.")


def _print_json(
    verdicts: Sequence[Verdict], problems: dict[str, list[str]], unusable: Sequence[str], *, is_whole: bool
) -> None:
    traces = [
        {
            "run": outcome.file.run,
            "worker": outcome.file.worker,
            "span": outcome.file.span,
            "path": outcome.file.shown,
            "state": outcome.state,
            "problem": outcome.problem or None,
            "rank": outcome.rank,
            "world_size": outcome.world_size,
            "findings": [
                {"rule": f.rule, "level": f.level, "count": f.count, "consequence": f.consequence}
                for f in outcome.diagnostics
            ],
        }
        for outcome in verdicts
    ]
    click.echo(json_text({"whole": is_whole, "traces": traces, "runs": problems, "unusable": list(unusable)}))
