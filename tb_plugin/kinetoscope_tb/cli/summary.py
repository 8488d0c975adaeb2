"""`kinetoscope summary`: the first screen of a run and of one of its recordings, as text or JSON."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click
import polars as pl

from ..docstrings import docstring
from ..engine.answers import compute
from ..names.text import visible
from ..summary import OF_RUN, WIDTH, environment_line, recording_blocks, run_blocks, text_lines, views_of, waiting_for
from ..views import EVERY_VIEW
from .options import capture_option, communication_option, device_option, where
from .traces import chosen, listed, opened

if TYPE_CHECKING:
    from ..discovery import Listing, TraceFile
    from ..engine.answers import Missing
    from ..trace import Trace
    from ..view import Recorded

    Answers = Mapping[str, pl.DataFrame | Missing]


def _summary(
    path: str, device: str | None, captures: Sequence[str], communication: Sequence[str], form: str, **names: str | None
) -> None:
    """Say where the time of a run or a recording went, and what to do. PATH is a trace file or a logdir.

    Of a run with several ranks, it says first whether one is slow, then what its first rank did; --worker chooses one
    rank alone.
    """
    listing = listed(path, communication)
    is_of_run = names["worker"] is None
    file = chosen(listing, names, levels=("run", "span") if is_of_run else ("run", "worker", "span"))
    run = _answers_of_run(listing, file) if is_of_run and len(listing.runs[file.run]) > 1 else {}
    with opened(file, device, captures) as trace:
        own = _answers(trace, views_of(trace))
        if form == "json":
            click.echo(_json(file, {**run, **own}))
            return
        for line in _lines(listing, file, trace, run, own):
            click.echo(line)


def _answers_of_run(listing: Listing, file: TraceFile) -> Answers:
    from .ranks import side_by_side  # 35 modules, which one recording doesn't need

    return _answers(side_by_side(listing, file, "run"), OF_RUN)


def _answers(recorded: Recorded, views: Sequence[str]) -> dict[str, pl.DataFrame | Missing]:
    """The answers of the views that the summary is made of, or why there is none."""
    return {view: compute(EVERY_VIEW[view], recorded, {}) for view in views}


def _lines(listing: Listing, file: TraceFile, trace: Trace, run: Answers, own: Answers) -> Iterator[str]:
    width = min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    frames = {view: answer for view, answer in {**run, **own}.items() if isinstance(answer, pl.DataFrame)}
    workers = len(listing.runs[file.run])
    span = f" · {file.span}" if file.span else ""
    yield visible(f"{file.run} · {f'{workers} ranks' if run else file.worker}{span}")
    yield environment_line(trace, frames)
    yield ""
    if run:
        yield from text_lines(run_blocks(frames), width)
        yield visible(f"{file.worker} alone; --worker chooses another")
    yield from text_lines(recording_blocks(trace, frames, waiting_for(frames, file.worker)), width)


def _json(file: TraceFile, answers: Answers) -> str:
    """The answers, each as `kinetoscope view --format json` has it."""
    from ..web import encode  # JSON alone needs it
    from ..web.json_text import json_text

    place = {"state": "ready", "run": file.run, "worker": file.worker, "span": file.span}
    return json_text(
        {**place, "answers": {name: encode.view_answer(EVERY_VIEW[name], answer) for name, answer in answers.items()}}
    )


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
