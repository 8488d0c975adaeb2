"""Options that choose rows and columns of a printed table: --filter, --sort, --top, --columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import polars as pl

from ..errors import BadParameter
from ..text_query import texts_with
from ..text_table import columns_with_values, readable_name

if TYPE_CHECKING:
    from ..table import Column, Table

_DIRECTIONS = ("asc", "desc")


def row_options() -> list[click.Parameter]:
    """The options."""
    return [
        click.Option(
            ["--filter", "words"],
            metavar="WORDS",
            help="Only rows whose texts have these words, not those after a minus, and match what follows re:.",
        ),
        click.Option(
            ["--sort"],
            metavar="COLUMN[:asc|:desc]",
            help="Sort by a column: numbers from the largest, texts from A, unless :asc or :desc follows.",
        ),
        click.Option(
            ["--top"],
            type=click.IntRange(min=0),
            metavar="N",
            help="Only the first N rows. Default: 20 for text on a terminal, else all.",
        ),
        click.Option(["--columns"], metavar="NAME,…", help="Only these columns, in this order."),
    ]


@dataclass(frozen=True)
class RowOptions:
    """What the options chose.

    Args:
        words: A filter as in the page's tables.
        sort: A column, and perhaps a direction.
        top: How many rows at most.
        columns: Names of columns, with commas.
    """

    words: str | None = None
    sort: str | None = None
    top: int | None = None
    columns: str | None = None

    def rows(self, table: type[Table], frame: pl.DataFrame, labels: Mapping[str, str]) -> pl.DataFrame:
        """The chosen rows of a view's frame, in the chosen order.

        Raises:
            BadParameter: There is no such column, or the filter isn't valid.
        """
        if self.words:
            frame = frame.filter(_matches(table, frame, labels, self.words))
        if self.sort:
            frame = _sort(table, frame, self.sort)
        return frame if self.top is None else frame.head(self.top)

    def of(self, table: type[Table]) -> Sequence[Column]:
        """The chosen columns.

        Raises:
            BadParameter: There is no such column.
        """
        if self.columns is None:
            return table.columns
        return [_column(table, name.strip()) for name in self.columns.split(",")]

    def with_values(self, table: type[Table], frame: pl.DataFrame) -> Sequence[Column]:
        """The chosen columns; by default those with a value in any row of the view, if it has rows."""
        columns = self.of(table)
        return columns if self.columns is not None else columns_with_values(columns, frame)


def _column(table: type[Table], name: str) -> Column:
    """The column of this name, or without its unit as in the headings: then the time, if others are called so too."""
    matches = [column for column in table.columns if name in (column.name, _heading(column))]
    times = [column for column in matches if column.kind.name == "duration"]
    for group in ([column for column in matches if column.name == name], times, matches):
        if len(group) == 1:
            return group[0]
    names = ", ".join(column.name for column in matches or table.columns)
    what = f"{name!r} may be several columns" if matches else f"There is no column {name!r}"
    raise BadParameter(f"{what}; choose from {names}.")


def _heading(column: Column) -> str:
    return column.name.removesuffix(column.kind.suffix)


def _matches(table: type[Table], frame: pl.DataFrame, labels: Mapping[str, str], words: str) -> Any:
    columns = [frame[c.name].to_list() for c in table.columns if c.kind.name in ("text", "stack", "prose")]
    texts = [
        "\n".join(text for value in row if value for text in (value, readable_name(value, labels)))
        for row in zip(*columns, strict=True)
    ]
    return pl.Series(texts_with(words, texts)) if columns else pl.Series([True] * frame.height)


def _sort(table: type[Table], frame: pl.DataFrame, sort: str) -> pl.DataFrame:
    name, _, direction = sort.partition(":")
    if direction and direction not in _DIRECTIONS:
        raise BadParameter(f"--sort {sort!r}: the direction is {' or '.join(_DIRECTIONS)}.")
    column = _column(table, name)
    is_descending = direction == "desc" or (not direction and column.kind.name not in ("text", "stack", "prose", "id"))
    return frame.sort(column.name, descending=is_descending, nulls_last=True, maintain_order=True)
