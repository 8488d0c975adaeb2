"""Profilers that the program starts itself while a recording is under way.

torch has one session. A second profiler takes it over, without a word, and exporting the first one afterwards is a
segmentation fault (torch 2.13). So a recording has to end before another profiler begins, and to know that it does.
"""

from __future__ import annotations

import functools
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch.autograd import profiler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_STARTS = ("_prepare_trace", "_start_trace")


class ForeignProfilers:
    """Calls a function before a profiler that isn't ours takes the session, on the thread that made this.

    Where this torch has no such methods, nothing is noticed.

    Args:
        before: Is called before another profiler starts.
    """

    def __init__(self, before: Callable[[], None]) -> None:
        self._before = before
        self._thread = threading.get_ident()
        self._own = 0
        self._replaced: dict[str, Any] = {}

    @contextmanager
    def none_in(self) -> Iterator[None]:
        """In the block, profilers start on our own behalf."""
        self._own += 1
        try:
            yield
        finally:
            self._own -= 1

    def begin(self) -> None:
        """Look out for them from now on."""
        for name in _STARTS:
            start = getattr(profiler.profile, name, None)
            if start is not None and name not in self._replaced:
                self._replaced[name] = start
                setattr(profiler.profile, name, self._noticing(start))

    def end(self) -> None:
        """Leave torch as it was."""
        for name, start in self._replaced.items():
            setattr(profiler.profile, name, start)
        self._replaced = {}

    def _noticing(self, start: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(start)
        def noticed(*args: Any, **kwargs: Any) -> object:
            if not self._own and threading.get_ident() == self._thread:
                self._before()
            return start(*args, **kwargs)

        return noticed
