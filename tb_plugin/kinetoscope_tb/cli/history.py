"""`kinetoscope history`: the runs of one job over time, and since when a step takes longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..engine.cache import configured_cache
from ..engine.histories import recorded_runs, recordings_by_run
from ..history.series import Series
from ..history.table import HistoryRows, history_rows
from ..history.words import sentences
from ..names.text import visible
from ..web import encode, encode_history
from ..web.json_text import json_text
from .completion import PATH
from .options import communication_option
from .print_rows import print_rows
from .progress import count_bar
from .row_options import RowOptions
from .traces import list_files

if TYPE_CHECKING:
    from collections.abc import Sequence

SAME_OR_SHORTER, LONGER, CANNOT_TELL = 0, 2, 3


@click.command()
@click.argument("path", metavar="LOGDIR", type=PATH)
@click.option("--run", "pattern", metavar="PATTERN", help="Only runs with such names, such as 'nightly-*'.")
@click.option("--last", type=click.IntRange(min=1), metavar="N", help="Only the newest N runs.")
@click.option("--format", "form", type=click.Choice(["text", "json", "csv"]), default="text", show_default=True)
def history(path: str, pattern: str | None, last: int | None, form: str, communication: Sequence[str]) -> None:
    """Say since which run of LOGDIR a step takes longer, what of it, and what changed in the environment.

    It reads summaries and run.json, no recordings: `kinetoscope index LOGDIR` makes the summaries that are missing.
    Runs of other programs, devices or numbers of ranks than the newest one are listed and not compared. Exit status:
    0 the step is not longer than before the last change, 2 it is, 3 too few runs, 1 failed.
    """
    by_run = recordings_by_run(list_files(path, communication), pattern or "*")
    notes = list[str]()
    with count_bar(len(by_run), "runs") as on_progress:
        runs = recorded_runs(by_run, configured_cache(), on_progress, notes.append)
    for note in notes:
        click.echo(visible(note), err=True)
    series = Series.of(runs if last is None else runs[-last:])
    _print(series, sentences(series, path), form)
    raise click.exceptions.Exit(_exit_status(series))


history.params.append(communication_option())


def _exit_status(series: Series) -> int:
    if not series.is_long_enough:
        return CANNOT_TELL
    levels = series.levels
    return LONGER if len(levels) > 1 and levels[-1].step_ns > levels[-2].step_ns else SAME_OR_SHORTER


def _print(series: Series, lines: Sequence[str], form: str) -> None:
    rows = history_rows(series)
    if form == "json":
        click.echo(json_text(encode_history.history(series, lines) | {"exit_status": _exit_status(series)}))
    elif form == "csv":
        click.echo(encode.csv(rows), nl=False)
    else:
        columns = RowOptions().with_values(HistoryRows, rows)
        for line in lines:
            click.echo(visible(line))
        print_rows(columns, rows.select(column.name for column in columns), {}, weight=HistoryRows.weight)
