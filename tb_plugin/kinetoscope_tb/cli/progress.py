"""Progress on standard error, if that is a terminal."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..discovery import TraceFile
    from ..reader import Progress


def count_bar(total: int, of_what: str) -> AbstractContextManager[Callable[[int], None]]:
    """A callback that draws the number done so far."""
    bars = _bars()
    return nullcontext(lambda _: None) if bars is None else bars.counting_bar(total, of_what)


def reading_bar(file: TraceFile) -> AbstractContextManager[Callable[[Progress], None] | None]:
    """A callback that draws the reader's progress; None without a terminal."""
    bars = _bars()
    return nullcontext() if bars is None else bars.opening_bar(file)


def _bars() -> Any:
    """The module that draws bars; None without a terminal."""
    if not sys.stderr.isatty():
        return None
    return import_module(".progress_bars", __package__)  # with Rich, which a pipe doesn't need
