"""Errors of recordings: counted, logged once, and never raised into the training."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .errors import SaveError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOG = logging.getLogger("kinetoscope")


class ErrorLog:
    """The recordings that a process lost. The first is logged as a warning, the others as debug messages."""

    def __init__(self) -> None:
        self.count = 0

    def note(self, problem: str) -> None:
        """Count a lost recording, and log a warning the first time."""
        _LOG.log(logging.DEBUG if self.count else logging.WARNING, "%s", problem)
        self.count += 1

    @contextmanager
    def catch(self, what: str, give_up: Callable[[], None] | None = None) -> Iterator[None]:
        """Record any exception of the block under the heading `what`, then call `give_up`; the caller continues."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  whatever it is, the training is worth more
            self.record(what, error)
            if give_up is not None:
                give_up()

    def record(self, what: str, error: Exception) -> None:
        """Record an exception under the heading `what`: like `catch`, where a `with` block costs too much."""
        detail = str(error) if isinstance(error, SaveError) else f"{type(error).__name__}: {error}"
        self.note(f"{what}: {detail}")
        _LOG.debug("%s", what, exc_info=error)
