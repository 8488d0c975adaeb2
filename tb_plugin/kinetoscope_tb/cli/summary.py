"""`kinetoscope summary`: the first screen of a run and of one of its recordings, as text or JSON."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

import click

from ..answer.first_screen import WIDTH, blocks_of, text_lines
from ..answer.recording import recording_answer
from ..discovery.listing import recording_title
from ..docstrings import docstring
from ..engine.answers import cached_frames
from ..views import EVERY_VIEW
from ..web.json_text import json_text
from .options import capture_option, communication_option, device_option, where
from .traces import choose_file, list_files, note_on_others, open_trace

if TYPE_CHECKING:
    from ..answer.model import Answer
    from ..discovery import TraceFile


def _summary(
    path: str, device: str | None, captures: Sequence[str], communication: Sequence[str], form: str, **names: str | None
) -> None:
    """Say where the time of a run or a recording went, and what to do. PATH is a trace file or a logdir.

    Of a run with several ranks, it says first whether one is slow, and why, then what its first rank did; --worker
    chooses one rank alone.
    """
    listing = list_files(path, communication)
    is_of_run = names["worker"] is None
    file = choose_file(listing, names, levels=("run", "span") if is_of_run else ("run", "worker", "span"))

    def answer_of(file: TraceFile, captures: Sequence[str] = ()) -> Answer:
        with open_trace(file, device, captures) as trace:
            return recording_answer(trace, EVERY_VIEW, cached_frames).of_file(file, path)

    answer = answer_of(file, captures)
    if is_of_run and len(listing.ranks(file.run)) > 1:
        ranks = import_module(".ranks", __package__)  # with 50 modules, which one recording doesn't need
        answer = ranks.answer_of_run(answer, listing, file, answer_of)
    if form == "json":
        click.echo(json_text(answer.values()))
    else:
        for line in _lines(answer, "" if is_of_run else note_on_others(listing, file)):
            click.echo(line)


def _lines(answer: Answer, note: str) -> Iterator[str]:
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    yield recording_title(answer.run, f"{answer.ranks} ranks" if answer.ranks else answer.worker, answer.span)
    yield answer.environment
    yield from [note] if note else []
    yield ""
    yield from text_lines(blocks_of(answer, "--worker"), width)


summary = click.Command(
    "summary",
    params=[
        *where(),
        communication_option(),
        device_option(),
        capture_option(),
        click.Option(["--format", "form"], type=click.Choice(["text", "json"]), default="text", show_default=True),
    ],
    callback=_summary,
    help=docstring(_summary),
)
