"""Prints tables: a terminal shows the rows and columns that fit, drawn by Rich.

A pipe gets all, one row per line, without Rich, which takes 2 ms per row.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

import click

from ..text_table import LINE, TERMINAL_ROWS, aligned_lines, display_order, layout, paragraphs, text_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

    from ..table import Column
    from ..text_table import TextColumn


def print_rows(
    columns: Sequence[Column],
    frame: pl.DataFrame,
    labels: Mapping[str, str],
    *,
    weight: str | None = None,
    is_limited: bool = False,
) -> None:
    """The rows of a view: a table, or a paragraph for each row if they have sentences.

    Args:
        columns: The columns to print.
        frame: Their values.
        labels: The labels of kernels by their full names.
        weight: The column that ranks the rows.
        is_limited: Whether the rows were chosen, so that all of them are printed on a terminal too.
    """
    if any(column.kind.name == "prose" for column in columns):
        width = min(LINE, shutil.get_terminal_size((LINE, 24)).columns)
        click.echo(paragraphs(columns, frame, width), nl=False)
    else:
        texts = text_columns(columns, frame, labels)
        print_table(display_order(texts, [column.name for column in columns], weight), is_limited=is_limited)


def print_table(columns: Sequence[TextColumn], *, is_limited: bool = False) -> None:
    """The columns, long texts last; on a terminal the first rows, and the columns that fit.

    Args:
        columns: The columns.
        is_limited: Whether the rows were chosen, so that all of them are printed on a terminal too.
    """
    columns = sorted(columns, key=lambda column: column.is_long)
    if not sys.stdout.isatty():
        click.echo(aligned_lines(columns))
        return
    rows = len(columns[0].cells)
    limit = rows if is_limited else min(rows, TERMINAL_ROWS)
    first_rows = [replace(column, cells=column.cells[:limit]) for column in columns]
    widths, left_out = layout(first_rows, shutil.get_terminal_size().columns)
    terminal_table = import_module("kinetoscope_tb.terminal_table")  # with Rich, which a pipe doesn't need
    fitting_columns = [column for column in first_rows if column not in left_out]
    click.echo(terminal_table.table_text(fitting_columns, widths, is_styled=True), nl=False)
    if left_out:
        names = ", ".join(column.header for column in left_out)
        click.echo(f"Columns that don't fit: {names}. --columns chooses; a pipe gets all.", err=True)
    if limit < rows:
        click.echo(f"{rows - limit} more rows: --top {rows} prints all, or a pipe (| less -S).", err=True)
