"""`kinetoscope history`: the runs of one job over time, and since when a step takes longer."""

from __future__ import annotations

import math
from collections import defaultdict
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from ..discovery.run_facts import RunFacts, run_facts
from ..engine.cache import configured
from ..engine.summary_loader import stored_summaries
from ..errors import NotFound
from ..history.recorded_run import Environment, RecordedRun, StepTotals, marks_steps, mean_parts
from ..history.series import Series
from ..history.shares import shares
from ..history.table import HistoryRows, history_rows
from ..history.words import sentences
from ..names.roles import is_frontend
from ..names.text import visible
from ..views.overview.environment import EARLIEST_CLOCK_NS
from ..web import encode
from ..web.json_text import json_text
from .completion import complete_path
from .options import communication_option
from .print_rows import print_rows
from .progress import count_bar
from .row_options import RowOptions
from .traces import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from ..discovery import TraceFile
    from ..distributed.model import Summary

SAME_OR_SHORTER, LONGER, CANNOT_TELL = 0, 2, 3


@click.command()
@click.argument("path", metavar="LOGDIR", shell_complete=complete_path)
@click.option("--run", "pattern", metavar="PATTERN", help="Only runs with such names, such as 'nightly-*'.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N runs.")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
def history(path: str, pattern: str | None, last: int | None, form: str, communication: Sequence[str]) -> None:
    """Say since which run of LOGDIR a step takes longer, what of it, and what changed in the environment.

    It reads summaries and run.json, no recordings: `kinetoscope index LOGDIR` makes the summaries that are missing.
    Runs of other programs, devices or numbers of ranks than the newest one are listed and not compared. Exit status:
    0 the step is not longer than before the last change, 2 it is, 3 too few runs, 1 failed.
    """
    runs = sorted(_runs(_files(path, pattern, communication)), key=lambda run: run.started_ns)
    series = Series.of(runs if last is None else runs[-last:])
    lines = sentences(series)
    if any(run.summaries < run.recordings for run in series.runs):
        lines.append(f"kinetoscope index {path} makes the summaries that are missing, or says why it can't.")
    _print(series, lines, form)
    raise click.exceptions.Exit(_exit_status(series))


history.params.append(communication_option())


def _files(path: str, pattern: str | None, communication: Sequence[str]) -> Mapping[str, list[TraceFile]]:
    """The recordings by run.

    Raises:
        NotFound: No run has such a name.
    """
    by_run: dict[str, list[TraceFile]] = defaultdict(list)
    listing = listed(path, communication)
    for file in listing.files:
        if not file.is_snapshot and fnmatchcase(file.run, pattern or "*"):
            by_run[file.run].append(file)
    if not by_run:
        raise NotFound("run", pattern or "*", list(listing.runs))
    return {run: [file for file in files if not is_frontend(file.worker)] or files for run, files in by_run.items()}


def _runs(by_run: Mapping[str, list[TraceFile]]) -> Iterator[RecordedRun]:
    """The runs; a summary is dropped before the next one is opened."""
    cache, notes = configured(), list[str]()
    with count_bar(len(by_run), "runs") as on_progress:
        for number, (run, files) in enumerate(by_run.items(), 1):
            summaries = stored_summaries(files, cache, notes.append)
            yield _run(run, files, ((file, entry.summary) for file, entry in summaries))
            on_progress(number)
    for note in notes:
        click.echo(visible(note), err=True)


def _run(name: str, files: Sequence[TraceFile], summaries: Iterator[tuple[TraceFile, Summary]]) -> RecordedRun:
    totals: dict[str, StepTotals] = defaultdict(StepTotals)
    facts: list[Mapping[str, Any]] = []
    is_marked = True
    for file, summary in summaries:
        is_marked &= marks_steps(summary)
        totals[file.worker].add(summary)
        facts.append(summary.facts)
    of_run = run_facts(files[0].path)
    parts, launches = mean_parts(totals.values())
    return RecordedRun(
        name,
        _started_ns(files, facts, of_run),
        _environment(facts, of_run, len({file.worker for file in files})),
        parts,
        launches,
        len(files),
        len(facts),
        is_marked,
        any(fact["devices"] for fact in facts),
    )


def _started_ns(files: Sequence[TraceFile], facts: Sequence[Mapping[str, Any]], of_run: RunFacts) -> int:
    """When a run began: by its recordings, by run.json, or by its oldest file."""
    clocks = [fact["origin_ns"] for fact in facts if fact["origin_ns"] > EARLIEST_CLOCK_NS]
    names = [file.started_ns for file in files if file.started_ns]
    return min(clocks, default=0) or of_run.started_ns or min(names or [file.modified_ns for file in files])


def _environment(facts: Sequence[Mapping[str, Any]], of_run: RunFacts, workers: int) -> Environment:
    """Where a run ran; what its ranks say differently is listed."""

    def distinct(name: str) -> str:
        return ", ".join(sorted({str(fact[name]) for fact in facts if fact.get(name)}))

    devices = {str(device) for fact in facts for _, device in fact["devices"] if device}
    phases = {str(phase) for fact in facts for phase in fact.get("phases") or ()}
    sizes = [fact["world_size"] for fact in facts if fact.get("world_size")]
    return Environment(
        of_run.program,
        ", ".join(sorted(devices)),
        str(max(sizes, default=of_run.world_size or workers)),
        ", ".join(sorted(phases)),
        distinct("host"),
        of_run.torch or distinct("torch"),
        of_run.cuda or distinct("cuda"),
        distinct("driver"),
        of_run.arguments,
    )


def _exit_status(series: Series) -> int:
    if not series.is_long_enough:
        return CANNOT_TELL
    levels = series.levels
    return LONGER if len(levels) > 1 and levels[-1].step_ns > levels[-2].step_ns else SAME_OR_SHORTER


def _print(series: Series, lines: Sequence[str], form: str) -> None:
    rows = history_rows(series)
    if form == "json":
        click.echo(json_text(_json(series, rows, lines)))
    elif form == "csv":
        click.echo(encode.csv(rows), nl=False)
    else:
        columns = RowOptions().with_values(HistoryRows, rows)
        for line in lines:
            click.echo(visible(line))
        print_rows(columns, rows.select(column.name for column in columns), {}, weight=HistoryRows.weight)


def _json(series: Series, rows: pl.DataFrame, lines: Sequence[str]) -> dict[str, Any]:
    """The answer as JSON values: every growth is a share of the step before, and those of the parts add up to it."""
    changes = [
        {
            "nth": after.first + 1,
            "run": series.runs[after.first].name,
            "before_ns": before.step_ns,
            "after_ns": after.step_ns,
            "growth_frac": after.step_ns / before.step_ns - 1,
            "parts": [
                {
                    "name": share.name,
                    "before_ns": share.before_ns,
                    "after_ns": share.after_ns,
                    "growth_frac": float(share.growth),
                }
                for share in shares(before, after)
            ],
        }
        for before, after in zip(series.levels, series.levels[1:], strict=False)
    ]
    return {
        **encode.table(HistoryRows.columns, encode.without_nan(rows)),
        "exit_status": _exit_status(series),
        "answers": list(lines),
        "compared": len(series.indices),
        "changes": changes,
        "spread_frac": _finite(series.spread_frac),
        "finds_frac": _finite(series.finds_frac),
    }


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value
