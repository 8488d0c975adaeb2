"""`kinetoscope why`: which rank holds up a job that stands still, or ended it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..distributed.deaths.evidence import EndRow
from ..distributed.hangs.titles import instant, rank_ranges
from ..distributed.why import CANNOT_TELL, CULPRIT, NOTHING_OPEN, SLOW_WORK, STOPPED_FROM_OUTSIDE, Answer, answer_why
from ..names.text import memory_size, percent, time, visible
from ..reader.flight_recorder.files import read_folder
from ..text_table import MISSING, TextColumn
from ..web.json_text import json_text
from .completion import complete_path
from .print_rows import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..distributed.hangs.evidence import Row
    from ..distributed.last_minutes import MinutesRow

EXIT_STATUS = {NOTHING_OPEN: 0, SLOW_WORK: 0, STOPPED_FROM_OUTSIDE: 0, CULPRIT: 2, CANNOT_TELL: 3}


@click.command()
@click.argument("path", metavar="RUN|FOLDER", shell_complete=complete_path)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def why(path: str, form: str) -> None:
    """Say why a job stands still or died: which rank holds up the others or ended first, where, and how.

    Of a RUN that Tracer records, by what each rank wrote while its step lasted too long, and by how it ended; else by
    the dumps of torch's flight recorder in FOLDER: pickles or JSON of torch 2.4 or later, such as nccl_trace_rank_0.
    Nothing is unpickled. Exit status: 2 a culprit, 3 cannot tell, 0 nothing is open, a rank only works for long or the
    job was stopped from outside, 1 failed.
    """
    answer = answer_why(read_folder(path))
    if form == "json":
        click.echo(json_text(_json(answer)))
    else:
        click.echo(visible(answer.sentence))
        print_table(_columns(answer.rows))
        for line in answer.evidence:
            click.echo(visible(line))
        if answer.minutes:
            end_ns = max(row.ended_ns for row in answer.minutes)
            click.echo(f"Last minutes, until {instant(end_ns)}:")
            print_table(_columns_of_minutes(answer.minutes, end_ns))
    raise click.exceptions.Exit(EXIT_STATUS[answer.outcome])


def _columns_of_minutes(table: Sequence[MinutesRow], end_ns: int) -> list[TextColumn]:
    values: dict[str, list[str]] = {
        "rank": [str(row.rank) for row in table],
        "last step": [str(row.last_step) for row in table],
        "ended": [f"{(row.ended_ns - end_ns) / 1e9:.3f} s" for row in table],
        "usual": [time(row.usual_ns) for row in table],
        "last steps": [", ".join(map(time, row.last_steps_ns)) for row in table],
        "memory": [_size(row.memory_bytes) for row in table],
        "grown": [_size(row.grown_bytes) for row in table],
        "available": [_size(row.available_bytes) for row in table],
        "cores": [MISSING if row.cores is None else f"{row.cores:.1f}" for row in table],
        "busy": [MISSING if row.busy_share is None else percent(row.busy_share) for row in table],
    }
    return [TextColumn(name, cells, name != "last steps") for name, cells in values.items()]


def _size(count: int | None) -> str:
    if count is None:
        return MISSING
    return f"-{memory_size(-count)}" if count < 0 else memory_size(count)


_LONGEST_EXCEPTION = 60
_NUMBERS = ("rank", "steps", "saved")
_DISPENSABLE = ("saved", "exception", "in", "line")


def _columns(table: Sequence[Row] | Sequence[EndRow]) -> list[TextColumn]:
    ends, waits = (
        [row for row in table if isinstance(row, EndRow)],
        [row for row in table if not isinstance(row, EndRow)],
    )
    values = _values_of_ends(ends) if ends else _values_of_waits(waits)
    columns = [TextColumn(name, list(map(visible, cells)), name in _NUMBERS) for name, cells in values.items()]
    return [column for column in columns if column.header not in _DISPENSABLE or not column.is_empty]


def _values_of_ends(table: Sequence[EndRow]) -> dict[str, list[str]]:
    return {
        "rank": [str(row.rank) for row in table],
        "host": [row.host or MISSING for row in table],
        "end": [row.end for row in table],
        "at": [instant(row.ended_ns or 0) or MISSING for row in table],
        "steps": [MISSING if row.steps is None else str(row.steps) for row in table],
        "saved": [str(row.saved_steps) if row.saved_steps else MISSING for row in table],
        "exception": [row.exception[:_LONGEST_EXCEPTION] or MISSING for row in table],
        "in": [row.function or MISSING for row in table],
        "line": [row.line or MISSING for row in table],
    }


def _values_of_waits(table: Sequence[Row]) -> dict[str, list[str]]:
    return {
        "rank": [str(row.rank) for row in table],
        "group": [row.group or MISSING for row in table],
        "last completed": [row.last_completed or MISSING for row in table],
        "open": [row.open for row in table],
        "since": [instant(row.since_ns or 0) or MISSING for row in table],
        "waits for": [rank_ranges(row.waits_for) or MISSING for row in table],
        "in": [row.function or MISSING for row in table],
        "line": [row.line or MISSING for row in table],
    }


def _json(answer: Answer) -> dict[str, Any]:
    return {
        "state": "ready",
        "outcome": answer.outcome,
        "kind": answer.kind,
        "exit_status": EXIT_STATUS[answer.outcome],
        "culprits": list(answer.culprits),
        "suspects": list(answer.suspects),
        "sentence": answer.sentence,
        "ranks": [asdict(row) for row in answer.rows],
        "evidence": list(answer.evidence),
        "last_minutes": [asdict(row) for row in answer.minutes],
        "files": [asdict(problem) for problem in answer.problems],
    }
