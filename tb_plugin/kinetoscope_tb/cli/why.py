"""`kinetoscope why`: which rank holds up a job that stands still, or ended it."""

from __future__ import annotations

import click

from ..distributed.hangs.titles import instant
from ..distributed.why import answer_why
from ..distributed.why_text import EXIT_STATUS, minutes_columns, rank_columns, values
from ..names.text import visible
from ..reader.flight_recorder.files import read_folder
from ..web.json_text import json_text
from .completion import PATH
from .print_rows import print_table


@click.command()
@click.argument("path", metavar="RUN|FOLDER", type=PATH)
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
        click.echo(json_text(values(answer)))
    else:
        click.echo(visible(answer.sentence))
        print_table(rank_columns(answer))
        for line in answer.evidence:
            click.echo(visible(line))
        if answer.minutes:
            click.echo(f"Last minutes, until {instant(max(row.ended_ns for row in answer.minutes))}:")
            print_table(minutes_columns(answer.minutes))
    raise click.exceptions.Exit(EXIT_STATUS[answer.outcome])
