"""`kinetoscope tables`: every table of a recording as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..engine.answers import Missing, compute
from ..errors import KinetoscopeError
from ..filesystem import printable
from ..names.text import file_size
from ..view import Detail, column_descriptions
from ..views import RUN_VIEWS, VIEWS
from ..web.json_text import json_text
from .completion import PATH
from .options import communication_option, where
from .output_file import open_output
from .ranks import side_by_side
from .traces import choose_file, list_files, open_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from ..discovery import Listing, TraceFile
    from ..view import View


def _write(
    path: str, run: str | None, worker: str | None, span: str | None, out: str, communication: tuple[str, ...]
) -> None:
    listing = list_files(path, communication)
    file = choose_file(listing, {"run": run, "worker": worker, "span": span})
    folder = _folder(out)
    tables = size = absent = 0
    for view, rows in _answers(listing, file):
        if isinstance(rows, Missing) or rows.is_empty():
            absent += 1
            continue
        with open_output(str(folder / f"{view.id}.parquet")) as target:
            rows.write_parquet(target, metadata=_metadata(view, file))
            size += target.tell()
        tables += 1
    click.echo(f"{out}: {tables} tables, {file_size(size)}.")
    if absent:
        click.echo(f"{absent} views have nothing to show; kinetoscope view NAME says what would record it.", err=True)


def _folder(out: str) -> Path:
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KinetoscopeError(f"{out} can't be made: {error.strerror or error}.") from error
    return Path(out)


def _answers(listing: Listing, file: TraceFile) -> Iterator[tuple[View, pl.DataFrame | Missing]]:
    """The tables of the recording, then those of its run if that has several workers; not those about one row."""
    with open_trace(file) as trace:
        for view in VIEWS.values():
            if not isinstance(view.place, Detail):
                yield view, compute(view, trace, {})
    if len(listing.ranks(file.run)) < 2:
        return
    ranks = {scope: side_by_side(listing, file, scope) for scope in sorted({v.scope for v in RUN_VIEWS.values()})}
    for view in RUN_VIEWS.values():
        if not isinstance(view.place, Detail):
            yield view, compute(view, ranks[view.scope], {})


def _metadata(view: View, file: TraceFile) -> dict[str, str]:
    """What a file says of itself: the recording, and the definition of each column."""
    return {
        "title": view.title,
        "recording": printable(file.shown),
        "columns": json_text(column_descriptions(view.table.columns)),
    }


tables = click.Command(
    "tables",
    callback=_write,
    params=[
        *where(),
        click.Argument(["out"], metavar="OUT", type=PATH),
        communication_option(),
    ],
    help="""Write every table of a recording into the folder OUT as Parquet: one file for each view.

    With several workers, the tables across ranks too. Times are in nanoseconds, amounts in bytes, shares from 0 to 1;
    each file has the definitions of its columns in its metadata. DuckDB, pandas, Polars and Spark read such files.
    """,
)
