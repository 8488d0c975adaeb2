"""Whether somebody still looks at a page."""

from __future__ import annotations

import itertools
import time
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_SILENCE_S = 3600.0
"""Browsers slow the timers of a hidden page down to one a minute, and may stop them to save energy."""

STARTS_WITHIN_S = 60.0
"""How long a page may load before its first report; a link that a program looks up reports nothing."""


class _LastWord(NamedTuple):
    number: int
    """Of the latest report; 0 before the first."""

    ends_at: float


class Presence:
    """When each page was last heard of. A tab has a new page after a reload.

    Args:
        closed_s: How long after a page was closed nobody looks at it any more; a reload comes before.
        silent_s: How long after its last report, if a page didn't say that it was closed.
        clock: Seconds.
    """

    def __init__(
        self,
        closed_s: float,
        silent_s: float = LONGEST_SILENCE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._closed_s, self._silent_s, self._clock = closed_s, silent_s, clock
        self._first_page_by = clock() + silent_s
        self._pages: dict[int, _LastWord] = {}
        self._ids = itertools.count(1)
        self._lock = Lock()

    def new_page(self) -> int:
        """The number of a page that is sent to a browser."""
        page, first_report_by = next(self._ids), self._clock() + max(STARTS_WITHIN_S, self._closed_s)
        with self._lock:
            self._pages[page] = _LastWord(0, first_report_by)
        return page

    def note(self, page: int, number: int, *, is_open: bool) -> None:
        """Take a page's report, unless a later one of that page has come before.

        Args:
            page: From `new_page`; others are ignored.
            number: The reports of a page count up from 1; they may overtake each other, on connections of their own.
            is_open: Whether the page is open, or was closed.
        """
        with self._lock:
            last = self._pages.get(page)
            if last is not None and number > last.number:
                after_s = self._silent_s if is_open else self._closed_s
                self._pages[page] = _LastWord(number, self._clock() + after_s)

    def is_over(self) -> bool:
        """Whether nobody looks at any page any more."""
        with self._lock:
            ends = [last.ends_at for last in self._pages.values()]
        return self._clock() >= max(ends, default=self._first_page_by)
