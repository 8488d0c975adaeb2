"""`kinetoscope why`: which rank holds up a job that stands still, from the dumps of torch's flight recorder."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ..distributed.hangs.evidence import Row, evidence, rows
from ..distributed.hangs.sentences import sentence
from ..distributed.hangs.titles import instant, rank_ranges
from ..distributed.hangs.verdict import CANNOT_TELL, CULPRIT, NOTHING_OPEN, SLOW_WORK, verdict
from ..names.text import visible
from ..reader.flight_recorder.files import read_folder
from ..text_table import MISSING, TextColumn
from ..web.json_text import json_text
from .completion import complete_path
from .print_rows import print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..distributed.hangs.verdict import Verdict

EXIT_STATUS = {NOTHING_OPEN: 0, SLOW_WORK: 0, CULPRIT: 2, CANNOT_TELL: 3}


@click.command()
@click.argument("path", metavar="RUN|FOLDER", shell_complete=complete_path)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def why(path: str, form: str) -> None:
    """Say why a job stands still: which rank holds up the others, and where it is.

    Of a RUN that Tracer records, by what each rank wrote while its step lasted too long; else by the dumps of torch's
    flight recorder in FOLDER: pickles or JSON of torch 2.4 or later, such as nccl_trace_rank_0. Nothing is unpickled.
    Exit status: 2 a culprit, 3 cannot tell, 0 nothing is open or a rank only works for long, 1 failed.
    """
    answer = verdict(read_folder(path))
    if form == "json":
        click.echo(json_text(_json(answer)))
    else:
        click.echo(visible(sentence(answer)))
        print_table(_columns(rows(answer)))
        for line in evidence(answer):
            click.echo(visible(line))
    raise click.exceptions.Exit(EXIT_STATUS[answer.outcome])


def _columns(table: Sequence[Row]) -> list[TextColumn]:
    values: dict[str, list[str]] = {
        "rank": [str(row.rank) for row in table],
        "group": [row.group or MISSING for row in table],
        "last completed": [row.last_completed or MISSING for row in table],
        "open": [row.open for row in table],
        "since": [instant(row.since_ns or 0) or MISSING for row in table],
        "waits for": [rank_ranges(row.waits_for) or MISSING for row in table],
        "in": [row.function or MISSING for row in table],
        "line": [row.line or MISSING for row in table],
    }
    columns = [TextColumn(name, list(map(visible, cells)), name == "rank") for name, cells in values.items()]
    return [column for column in columns if column.header not in ("in", "line") or not column.is_empty]


def _json(answer: Verdict) -> dict[str, Any]:
    return {
        "state": "ready",
        "outcome": answer.outcome,
        "kind": answer.kind,
        "exit_status": EXIT_STATUS[answer.outcome],
        "culprits": list(answer.culprits),
        "suspects": [] if answer.culprits else list(answer.ranks),
        "sentence": sentence(answer),
        "ranks": [asdict(row) for row in rows(answer)],
        "evidence": evidence(answer),
        "files": [asdict(problem) for problem in answer.problems],
    }
