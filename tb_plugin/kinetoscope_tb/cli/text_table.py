"""Tables as text: one unit per column, in its header; cells aligned; no rows or columns omitted."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import polars as pl

    from ..table import Column

MISSING = "–"
TERMINAL_ROWS = 50
TERMINAL_TEXT = 24  # minimum width of text columns, however narrow the terminal is

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
_SUFFIX = re.compile(r"_(ns|bytes|frac|bytes_per_s|flop|flop_per_s)$")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class TextColumn:
    """A header and its cells; numbers are right-aligned."""

    header: str
    cells: list[str]
    is_number: bool = False


def text_columns(
    columns: Sequence[Column], frame: pl.DataFrame, labels: Mapping[str, str] | None = None
) -> list[TextColumn]:
    """The frame's values as readable text; `labels` replace the full names of kernels."""
    return [
        text_column(column.name, column.kind.name, _labeled(column, frame[column.name].to_list(), labels or {}))
        for column in columns
    ]


def _labeled(column: Column, values: list[Any], labels: Mapping[str, str]) -> list[Any]:
    return [labels.get(value, value) for value in values] if labels and column.kind.name == "text" else values


def aligned(columns: Sequence[TextColumn]) -> str:
    """The table as lines, however long they are."""
    parts = []
    for column in columns:
        width = max(map(len, [column.header, *column.cells]))
        pad = str.rjust if column.is_number else str.ljust
        parts.append([pad(cell, width) for cell in [column.header, *column.cells]])
    return "\n".join("  ".join(line).rstrip() for line in zip(*parts, strict=True))


def print_table(columns: Sequence[TextColumn]) -> None:
    """Aligned text; on a terminal the first rows, within its width."""
    if not sys.stdout.isatty():
        click.echo(aligned(columns))
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table, rows = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False), len(columns[0].cells)
    for column in columns:
        header = Text(column.header.replace("_", " "))  # so that it can wrap
        widest = max(map(len, column.cells[:TERMINAL_ROWS]), default=0)
        if column.is_number:
            table.add_column(header, justify="right", min_width=widest)
        else:
            table.add_column(header, no_wrap=True, overflow="ellipsis", min_width=min(widest, TERMINAL_TEXT))
    for row in range(min(rows, TERMINAL_ROWS)):
        table.add_row(*(Text(column.cells[row]) for column in columns))
    Console().print(table)
    if rows > TERMINAL_ROWS:
        click.echo(f"{rows - TERMINAL_ROWS} more rows; a pipe (| less -S) or --format csv gets them all.", err=True)


def text_column(name: str, kind: str, values: list[Any], others: Sequence[Any] = ()) -> TextColumn:
    """One column; `others` are values of other columns that must have the same unit."""
    units = _UNITS.get(kind)
    if units is None:
        return TextColumn(name, [_cell(v, _FORMATS[kind]) for v in values], kind in ("count", "id", "number"))
    largest = max((abs(v) for v in (*values, *others) if v is not None), default=0)
    scale, unit = next((u for u in reversed(units) if largest >= u[0]), units[0])
    decimals = 1 if unit == "%" else 0 if scale == 1 else _decimals(largest / scale)
    # + 0.0 makes -0.0 a plain 0.
    cells = [_cell(v, lambda v: f"{round(v / scale, decimals) + 0.0:.{decimals}f}") for v in values]
    return TextColumn(f"{_SUFFIX.sub('', name)} ({unit})", cells, is_number=True)


def _decimals(largest: float) -> int:
    return 3 if largest < 10 else 2 if largest < 100 else 1


def _cell(value: Any, form: Callable[[Any], str]) -> str:  # whatever the column holds
    return MISSING if value is None or value != value else form(value)  # NaN


def visible(text: str) -> str:
    """The text on one line, without control sequences: a name from a trace mustn't control the terminal."""
    return _CONTROL.sub(lambda m: m[0].encode("unicode_escape").decode(), text)


def _stack(frames: str) -> str:
    """The frames on one line, each followed by its caller."""
    return " < ".join(map(visible, frames.split("\n")))


_FORMATS: dict[str, Callable[[Any], str]] = {
    "text": visible,
    "stack": _stack,
    "prose": visible,
    "bool": lambda value: "yes" if value else "no",
    "id": str,
    "count": str,
    "number": lambda value: f"{value:.4g}",
}
