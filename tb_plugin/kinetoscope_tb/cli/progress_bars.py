"""Bars on standard error, drawn by Rich."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bar
from rich.table import Column

from ..names.text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..discovery import TraceFile
    from ..reader import Progress

_BAR = 20  # characters of a progress bar


@contextmanager
def counting_bar(total: int, of_what: str) -> Iterator[Callable[[int], None]]:
    """A callback that draws the number done so far."""
    columns = (TextColumn(of_what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(of_what, total=total)
        yield lambda count: bar.update(task, completed=count)


@contextmanager
def opening_bar(file: TraceFile) -> Iterator[Callable[[Progress], None]]:
    """A callback that draws how far a file was read: share, rate and time left."""
    words = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"))
    columns = (words, BarColumn(_BAR), TaskProgressColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    name = escape(visible(file.shown))
    with Bar(*columns, console=Console(stderr=True), transient=True, expand=True) as bar:
        task = bar.add_task(f"opening {name}", total=file.bytes or None)
        yield lambda progress: bar.update(task, completed=progress.read_bytes, description=f"{progress.stage} {name}")
