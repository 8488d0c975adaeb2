"""The answer of a view: a Polars frame that a notebook shows with headings, units and labels of kernels."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from ..table import Column
from ..terminal_table import table_text
from ..text_table import (
    TERMINAL_ROWS,
    TextColumn,
    columns_with_values,
    display_order,
    layout,
    paragraphs,
    sentences,
    text_columns,
)
from .style import card, cell, sentence

WIDTH = 100  # characters of a line of text


@dataclass(frozen=True)
class Display:
    """How an answer is shown.

    Args:
        title: What it shows.
        columns: Its columns, with their definitions.
        weight: The column that ranks its rows.
        note: What its numbers are worth, or of how many steps they are.
        hint: What to do if it has no rows.
        labels: The labels of kernels by their full names.
    """

    title: str
    columns: Sequence[Column]
    weight: str | None = None
    note: str = ""
    hint: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)

    def text(self, frame: pl.DataFrame) -> str:
        """As a terminal of 100 columns shows it."""
        lines = textwrap.wrap(self.note, WIDTH)
        if frame.is_empty():
            return "\n".join([*lines, *textwrap.wrap(self._without_rows(), WIDTH)])
        columns = columns_with_values(self.columns, frame)
        if _has_sentences(columns):
            return "\n".join([*lines, paragraphs(columns, frame, WIDTH).rstrip()])
        texts = text_columns(columns, frame.head(TERMINAL_ROWS), self.labels)
        texts = display_order(texts, [column.name for column in columns], self.weight)
        widths, left_out = layout(texts, WIDTH)
        rows = table_text([column for column in texts if column not in left_out], widths).splitlines()
        if left_out:
            names = ", ".join(column.header for column in left_out)
            rows += textwrap.wrap(f"Columns that don't fit: {names}.", WIDTH)
        return "\n".join(map(str.rstrip, [*lines, *rows, *self._remainder(frame)]))

    def html(self, frame: pl.DataFrame) -> str:
        """As a table, without scripts; texts of the trace are escaped, definitions are tooltips of the headings."""
        title = f"<p><strong>{html.escape(self.title)}</strong></p>"
        head = [title, sentence(self.note, "dim")]
        if frame.is_empty():
            return card(*head, sentence(self._without_rows()))
        columns = columns_with_values(self.columns, frame)
        if _has_sentences(columns):
            return card(*head, _paragraphs(columns, frame))
        rest = [sentence(text, "dim") for text in self._remainder(frame)]
        return card(*head, self._table(columns, frame), *rest)

    def _table(self, columns: Sequence[Column], frame: pl.DataFrame) -> str:
        texts = text_columns(columns, frame.head(TERMINAL_ROWS), self.labels)
        headings = [
            cell(text.header, tag="th", is_number=text.is_number, title=column.doc)
            for text, column in zip(texts, columns, strict=True)
        ]
        rows = zip(*(_html_cells(text) for text in texts), strict=True)
        lines = [
            "".join(cell(value, is_number=t.is_number, title=value if t.is_long else "") for value, t in pairs)
            for pairs in (zip(row, texts, strict=True) for row in rows)
        ]
        return f"<table><tr>{''.join(headings)}</tr><tr>{'</tr><tr>'.join(lines)}</tr></table>"

    def _remainder(self, frame: pl.DataFrame) -> list[str]:
        left_out = frame.height - TERMINAL_ROWS
        return [f"{left_out:,} more rows."] if left_out > 0 else []

    def _without_rows(self) -> str:
        return f"{self.title}: no rows. {self.hint}".rstrip()


def _html_cells(column: TextColumn) -> list[str]:
    """The cells; HTML would drop the spaces behind numbers."""
    return [cell.replace(" ", "\u2007") for cell in column.aligned_cells] if column.is_number else column.cells


class ViewFrame(pl.DataFrame):
    """A Polars frame, with all that Polars can do; a notebook shows it as `kinetoscope view` does.

    What is computed from it is an ordinary frame, which Polars shows.

    Args:
        frame: The rows.
        display: How they are shown.
    """

    _display: Display | None = None  # some of Polars' methods make a frame of this class without __init__

    def __init__(self, frame: pl.DataFrame, display: Display) -> None:
        super().__init__(frame)
        self._display = display

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:  # noqa: ARG002
        """Text and HTML, as IPython asks for them."""
        if self._display is None:
            return {"text/plain": repr(self), "text/html": self._repr_html_()}
        return {"text/plain": self._display.text(self), "text/html": self._display.html(self)}


def _has_sentences(columns: Sequence[Column]) -> bool:
    return any(column.kind.name == "prose" for column in columns)


def _paragraphs(columns: Sequence[Column], frame: pl.DataFrame) -> str:
    """A title for each row, and what else it says."""
    return "".join(
        f"<p><strong>{html.escape(f'{number}. {first}')}</strong></p>{''.join(sentence(text, 'more') for text in rest)}"
        for number, (first, *rest) in enumerate(sentences(columns, frame), 1)
    )
