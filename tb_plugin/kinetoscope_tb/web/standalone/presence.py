"""Whether somebody still looks at the page."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_SILENCE_S = 3600.0
"""Browsers slow the timers of a hidden page down to one a minute, and may stop them to save energy."""


class Presence:
    """When the page was last heard of.

    Args:
        closed_s: How long after the page was closed nobody looks at it any more; another tab or a reload comes before.
        silent_s: How long after the last request, if no page said that it was closed.
        clock: Seconds.
    """

    def __init__(
        self,
        closed_s: float,
        silent_s: float = LONGEST_SILENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._closed_s, self._silent_s, self._clock = closed_s, silent_s, clock
        self._ends_at = clock() + silent_s

    def note_request(self) -> None:
        """A page is open: it asked."""
        self._ends_at = self._clock() + self._silent_s

    def note_closing(self) -> None:
        """A page was closed, or is loaded again."""
        self._ends_at = self._clock() + self._closed_s

    def is_over(self) -> bool:
        """Whether nobody looks at the page any more."""
        return self._clock() >= self._ends_at
