"""The answer of `kinetoscope view`: the rows of one view, as text, JSON or CSV."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from ..engine.answers import Missing, compute, merge_run_notes
from ..engine.notes import note_of_view
from ..measures.calls.kernel_names import labels_of_kernels
from ..web import encode
from ..web.json_text import json_text
from .print_rows import print_rows
from .row_options import RowOptions
from .traces import choose_file, list_files, note_on_others, open_trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ..view import View

_IN_RUN = ("advice", "run_advice", "what_if")
"""The views that other recordings of a run change."""


def print_view(
    view: View,
    path: str,
    run: str | None,
    worker: str | None,
    span: str | None,
    communication: Sequence[str],
    form: str,
    device_name: str | None,
    **options: Any,
) -> None:
    """Print the view of the chosen recording, or of its run.

    Raises:
        BadParameter: An option, a parameter or a column that the view doesn't have.
    """
    rows = RowOptions(*(options.pop(name) for name in ("words", "sort", "top", "columns")))
    rows.of(view.table)  # refuses unknown columns before a trace is read
    parameters: dict[str, str | None] = options
    captures: Sequence[str] = options.pop("captures", ())
    arguments = view.arguments({name: value for name, value in parameters.items() if value is not None})
    listing, names = list_files(path, communication), {"run": run, "worker": worker, "span": span}
    if view.scope == "recording":
        file = choose_file(listing, names)
        is_in_run = worker is None and len(listing.ranks(file.run)) > 1 and view.id in _IN_RUN
        with open_trace(file, device_name, captures) as trace:
            result = merge_run_notes(view, compute(view, trace, arguments), file)
            if is_in_run and not isinstance(result, Missing):
                recording = _of_run().RecordingOfRun(listing, file, trace, device_name)
                result = _of_run().in_run(view, result, recording, arguments)
            elif view.id == "advice" and form == "text" and (note := note_on_others(listing, file)):
                click.echo(note)
            _print_answer(view, result, form, rows, labels_of_kernels(trace), note_of_view(trace, view, *arguments))
    else:
        file = choose_file(listing, names, levels=("run", "span"))
        result = compute(view, _of_run().side_by_side(listing, file, view.scope), arguments)
        if view.id in _IN_RUN and not isinstance(result, Missing) and len(listing.ranks(file.run)) > 1:
            with open_trace(file, device_name) as trace:
                recording = _of_run().RecordingOfRun(listing, file, trace, device_name)
                result = _of_run().in_run(view, result, recording, arguments)
        _print_answer(view, result, form, rows, {})


def _of_run() -> Any:
    """What answers about the recordings of a run: 50 modules, which one recording doesn't need."""
    return import_module(".view_in_run", __package__)


def _print_answer(
    view: View, result: pl.DataFrame | Missing, form: str, rows: RowOptions, labels: Mapping[str, str], note: str = ""
) -> None:
    if isinstance(result, Missing):
        if form == "json":
            click.echo(json_text(encode.view_answer(view, result)))
        else:
            click.echo(f"{view.title}: nothing to show. {result.hint}", err=True)
        return
    columns = rows.with_values(view.table, result) if form == "text" else rows.of(view.table)
    frame = rows.rows(view.table, result, labels).select(column.name for column in columns)
    if form == "json":
        click.echo(json_text(encode.answer(view, columns, frame, note)))
        return
    if note:
        click.echo(note, err=form == "csv")
    if form == "csv":
        click.echo(encode.csv(frame), nl=False)
    else:
        print_rows(columns, frame, labels, weight=view.table.weight, is_limited=rows.top is not None)
    if result.is_empty() and view.hint:
        click.echo(f"{view.title}: no rows. {view.hint}", err=True)
    elif frame.is_empty() and rows.words:
        click.echo("No row matches the filter.", err=True)
