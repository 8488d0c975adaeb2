"""`kinetoscope event`: one event as recorded in the file."""

from __future__ import annotations

import json

import click

from ..engine.events import event_in
from ..names.text import visible
from ..reader.event import EventTexts
from ..web import encode
from ..web.json_text import json_text
from .options import where
from .traces import choose_file, list_files, open_trace


def _show(path: str, run: str | None, worker: str | None, span: str | None, offset: int, form: str) -> None:
    file = choose_file(list_files(path), {"run": run, "worker": worker, "span": span})
    with open_trace(file) as trace:
        event = event_in(file, trace, offset, EventTexts())
        if form == "json":
            click.echo(json_text(encode.event(event)))
            return
        if event.problem:
            click.echo(event.problem, err=True)
        text = event.text if event.value is None else json.dumps(event.value, indent=2, ensure_ascii=False)
        click.echo("\n".join(map(visible, text.split("\n"))))


event = click.Command(
    "event",
    callback=_show,
    params=[
        *where(),
        click.Option(["--offset"], type=click.IntRange(min=0), required=True, help="The byte at which it begins."),
        click.Option(["--format", "form"], type=click.Choice(["text", "json"]), default="text", show_default=True),
    ],
    help="""Print one event of a trace with every argument, as recorded in the file.

    The offset counts bytes of the decompressed text; `first_byte` of `kinetoscope view health` is one. Numbers that
    JavaScript would round are printed as text.
    """,
)
