"""Tables as a terminal shows them, drawn by Rich, whose modules take 30 ms: a pipe doesn't need them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from .text_table import GAP, TextColumn


def table_text(columns: Sequence[TextColumn], widths: Sequence[int], *, is_styled: bool = False) -> str:
    """Columns side by side, as on a terminal; cells that are wider than their column end in an ellipsis."""
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        header = column.header.rjust(width) if column.is_number else column.header
        table.add_column(Text(header), no_wrap=True, overflow="ellipsis", width=width)
    for row in zip(*map(_placed_cells, columns, widths), strict=True):
        table.add_row(*map(Text, row))
    width = max(1, sum(widths) + GAP * len(widths))
    console = Console(width=width, highlight=False, force_jupyter=False, force_terminal=None if is_styled else False)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def _placed_cells(column: TextColumn, width: int) -> list[str]:
    """Numbers at the right of their column; rich would drop the spaces behind them."""
    return [cell.rjust(width) for cell in column.aligned_cells] if column.is_number else column.cells
