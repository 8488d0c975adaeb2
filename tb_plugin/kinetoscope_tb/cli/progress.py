"""Progress on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..discovery import TraceFile
    from ..reader import Progress


def count_bar(total: int, of_what: str) -> AbstractContextManager[Callable[[int], None]]:
    """A callback that draws the number done so far."""
    if not sys.stderr.isatty():
        return nullcontext(lambda _: None)
    from .progress_bars import counting_bar  # with Rich, which a pipe doesn't need

    return counting_bar(total, of_what)


def reading_bar(file: TraceFile) -> AbstractContextManager[Callable[[Progress], None] | None]:
    """A callback that draws the reader's progress; None without a terminal."""
    if not sys.stderr.isatty():
        return nullcontext()
    from .progress_bars import opening_bar  # as above

    return opening_bar(file)
