"""Tables as text: one unit per column, in its header; cells aligned."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from .names.python_frames import function_name
from .names.text import DIGITS, MOST_DIGITS, few_digits, percent_number, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl

    from .table import Column

MISSING = "–"
TERMINAL_ROWS = 20
SHORT_TEXT = 26  # characters: longer texts come last, so that the numbers are in sight
READABLE = 48  # characters of a text that are shown before columns are left out; labels of kernels fit
LINE = 100  # characters of a line of prose
GAP = 2  # characters between columns
_SMALLER = 2  # decimals that smaller values in a column have beyond those of the largest
NAME_SHARE = 0.4  # of a narrow terminal, for the names of the rows

_PREFIXES = ("", "k", "M", "G", "T", "P")
_UNITS = {
    "duration": ((1, "ns"), (10**3, "µs"), (10**6, "ms"), (10**9, "s")),
    "instant": ((1, "ns"), (10**3, "µs"), (10**6, "ms"), (10**9, "s")),
    "bytes": ((1, "B"), (2**10, "KiB"), (2**20, "MiB"), (2**30, "GiB"), (2**40, "TiB")),
    "fraction": ((0.01, "%"),),
    "byte_rate": ((1, "B/s"), (10**3, "kB/s"), (10**6, "MB/s"), (10**9, "GB/s"), (10**12, "TB/s")),
    "flop": tuple((1000**i, f"{prefix}FLOP") for i, prefix in enumerate(_PREFIXES)),
    "flop_rate": tuple((1000**i, f"{prefix}FLOP/s") for i, prefix in enumerate(_PREFIXES)),
}
_TEXTS = ("text", "stack", "prose", "bool")
_SUFFIX = re.compile(r"_(ns|bytes|frac|bytes_per_s|flop|flop_per_s)$")


@dataclass(frozen=True)
class TextColumn:
    """A header and its cells; numbers are right-aligned.

    Args:
        header: Its name with the unit.
        cells: The text of each row.
        is_number: Whether it is a number.
        is_weight: Whether it ranks the rows, so that it is shown before the others.
    """

    header: str
    cells: list[str]
    is_number: bool = False
    is_weight: bool = False

    @property
    def aligned_cells(self) -> list[str]:
        """The cells as they stand below each other: of numbers, the points are."""
        if not self.is_number:
            return self.cells
        lengths = [len(cell) - cell.find(".") if "." in cell else 0 for cell in self.cells]
        longest = max(lengths, default=0)
        return [
            cell + " " * (longest - length) if cell[-1:].isdigit() else cell
            for cell, length in zip(self.cells, lengths, strict=True)
        ]

    @property
    def width(self) -> int:
        """The width of the widest cell, in characters of a terminal."""
        return max(map(cell_len, [self.header, *self.aligned_cells]))

    @property
    def is_long(self) -> bool:
        """Whether it is a text that comes last, so that the numbers are in sight."""
        return not self.is_number and self.width > SHORT_TEXT

    @property
    def is_zero(self) -> bool:
        """Whether no row has a value but 0."""
        return {*self.cells} <= {MISSING, "0"}

    @property
    def is_empty(self) -> bool:
        """Whether no row has a value."""
        return all(cell == MISSING for cell in self.cells)


def text_columns(
    columns: Sequence[Column], frame: pl.DataFrame, labels: Mapping[str, str] | None = None
) -> list[TextColumn]:
    """The frame's values as readable text: ids and frames of Python stacks in words, and `labels` for kernels."""
    return [
        text_column(column.name, column.kind.name, _readable_names(column, frame[column.name].to_list(), labels or {}))
        for column in columns
    ]


def columns_with_values(columns: Sequence[Column], frame: pl.DataFrame) -> Sequence[Column]:
    """Those with a value in any row; all if there are no rows."""
    return columns if frame.is_empty() else [column for column in columns if _has_value(frame[column.name])]


def _has_value(values: pl.Series) -> bool:
    return bool((values.is_finite() if values.dtype.is_float() else values.is_not_null()).any())


def display_order(columns: Sequence[TextColumn], names: Sequence[str], weight: str | None) -> list[TextColumn]:
    """The columns as they are shown: long texts last, and it is known which one ranks the rows."""
    texts = [replace(text, is_weight=name == weight) for text, name in zip(columns, names, strict=True)]
    return sorted(texts, key=lambda column: column.is_long)


def readable_name(name: str, labels: Mapping[str, str]) -> str:
    """The label of a kernel, or what a frame of a Python stack is called; any other text remains as it is."""
    return labels.get(name) or function_name(name)


def _readable_names(column: Column, values: list[Any], labels: Mapping[str, str]) -> list[Any]:
    if column.kind.name != "text":
        return values
    return [None if value is None else column.words.get(value) or readable_name(value, labels) for value in values]


def aligned_lines(columns: Sequence[TextColumn]) -> str:
    """The table as lines, however long they are."""
    parts = []
    for column in columns:
        pad = str.rjust if column.is_number else str.ljust
        cells = [column.header, *column.aligned_cells]
        width = max(map(len, cells))
        parts.append([pad(cell, width) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*parts, strict=True))


def paragraphs(columns: Sequence[Column], frame: pl.DataFrame, width: int = LINE) -> str:
    """The first sentences of each row as a numbered title, the others and the other values below it."""
    lines = []
    for number, (first, *rest) in enumerate(sentences(columns, frame), 1):
        lines += _wrap(first, f"{number}. ", width)
        for text in rest:
            lines += _wrap(text, "   ", width)
        lines.append("")
    return "\n".join(lines)


def sentences(columns: Sequence[Column], frame: pl.DataFrame) -> Iterator[list[str]]:
    """The sentences of each row, and then its other values as one text."""
    texts = {
        column.name: text_column(column.name, column.kind.name, frame[column.name].to_list()) for column in columns
    }
    prose = [texts[column.name].cells for column in columns if column.kind.name == "prose"]
    values = [texts[column.name] for column in columns if column.kind.name != "prose"]
    for row in range(frame.height):
        first, *rest = [cells[row] for cells in prose]
        facts = [f"{column.header} {column.cells[row]}" for column in values if column.cells[row] != MISSING]
        yield [first, *(text for text in (*rest, " · ".join(facts)) if text not in ("", MISSING))]


def _wrap(text: str, before: str, width: int) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=before, subsequent_indent=" " * len(before), break_long_words=False
    )


def layout(columns: Sequence[TextColumn], width: int) -> tuple[list[int], list[TextColumn]]:
    """(the widths of the columns that fit side by side, those that don't).

    The first long text, or else the last column, is what the rows are about: it has its place first, and what is left
    at the end. The weight comes second, columns of zeros last.
    """
    main = next((column for column in columns if column.is_long), columns[-1])
    least = min(main.width, READABLE, max(SHORT_TEXT, round(NAME_SHARE * width)))
    room, fit = width - least, {id(main)}
    others = [column for column in columns if column is not main]
    for column in sorted(others, key=lambda column: (not column.is_weight, column.is_zero)):
        needs = min(column.width, READABLE) + GAP
        if needs <= room:
            fit.add(id(column))
            room -= needs
    fitting_columns = [column for column in columns if id(column) in fit]
    widths = [min(column.width, READABLE if column is not main else least + room) for column in fitting_columns]
    return widths, [column for column in columns if id(column) not in fit]


def text_column(name: str, kind: str, values: list[Any], others: Sequence[Any] = ()) -> TextColumn:
    """One column; `others` are values of other columns that must have the same unit."""
    units = _UNITS.get(kind)
    if all(value is None for value in (*values, *others)):
        return TextColumn(_SUFFIX.sub("", name), [MISSING] * len(values), kind not in _TEXTS)
    if units is None:
        return TextColumn(name, [_cell(v, _FORMATS[kind]) for v in values], kind not in _TEXTS)
    largest = max((abs(v) for v in (*values, *others) if v is not None), default=0)
    scale, unit = next((u for u in reversed(units) if largest >= u[0]), units[0])
    decimals = 1 if unit == "%" else 0 if scale == 1 else _decimals(kind, largest / scale)
    cells = [_cell(v, lambda v: _number_text(v, scale, decimals, kind)) for v in values]
    return TextColumn(f"{_SUFFIX.sub('', name)} ({unit})", cells, is_number=True)


def _decimals(kind: str, largest: float) -> int:
    """Of a column: smaller values have a little more than the largest; points in time differ in their last."""
    decimals = 2 if largest < 10 else 1 if largest < 100 else 0
    return decimals + (1 if kind == "instant" else _SMALLER)


def _number_text(value: float, scale: float, decimals: int, kind: str) -> str:
    """The number in its unit; "<0.01" for an amount that rounds to zero but isn't, "≈0" for less than none."""
    smallest = 10**-decimals
    if value and abs(value) / scale < smallest / 2:
        return "≈0" if value < 0 else f"<{smallest:.{decimals}f}"
    if kind == "fraction":
        return percent_number(value)
    return few_digits(value / scale, decimals, MOST_DIGITS if kind == "instant" else DIGITS)


def _cell(value: Any, form: Callable[[Any], str]) -> str:  # whatever the column holds
    return MISSING if value is None or value != value else form(value)  # NaN


def _stack(frames: str) -> str:
    """The frames on one line, each followed by its caller."""
    return " < ".join(visible(function_name(frame)) for frame in frames.split("\n"))


_FORMATS: dict[str, Callable[[Any], str]] = {
    "text": visible,
    "stack": _stack,
    "prose": visible,
    "bool": lambda value: "yes" if value else "no",
    "id": str,
    "count": str,
    "number": few_digits,
}
