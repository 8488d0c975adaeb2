"""Detects steps that hang, and records the call stack of the training's thread.

A collective that waits for a rank that is gone ends with a SIGKILL from the launcher, after which the stack is lost. So
the background thread records it while there is time.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_S = 120.0
_TIMES_USUAL = 10
_MAX_FRAMES = 40


class HangDetector:
    """Reports each step that takes too long, once.

    Args:
        note: Receives the report.
        current_step: Returns which step began last, on the thread that creates this object, and when on the clock.
        usual_ns: Returns the usual duration of a step; None while it is unknown.
        clock_ns: A clock.
    """

    def __init__(
        self,
        note: Callable[[str, object], None],
        current_step: Callable[[], tuple[int, int]],
        usual_ns: Callable[[], int | None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._note, self._current_step, self._usual_ns, self._clock_ns = note, current_step, usual_ns, clock_ns
        self._thread = threading.get_ident()
        self._reported_step: int | None = None

    def check(self) -> None:
        """Report the training's stack if its step takes longer than two minutes and ten usual steps."""
        if self._elapsed_s() > max(LONGEST_S, _TIMES_USUAL * (self._usual_ns() or 0) / 1e9):
            self.report()

    def report(self) -> None:
        """Report the training's stack, unless it is reported already for this step."""
        number, elapsed_s = self._current_step()[0], self._elapsed_s()
        frame = sys._current_frames().get(self._thread)
        if self._reported_step != number and frame is not None:
            self._reported_step = number
            frames = traceback.extract_stack(frame)[-_MAX_FRAMES:]
            stack = [f"{entry.filename}:{entry.lineno} {entry.name}" for entry in reversed(frames)]
            self._note("hanging", {"step": number, "seconds": round(elapsed_s), "stack": stack})

    def _elapsed_s(self) -> float:
        return (self._clock_ns() - self._current_step()[1]) / 1e9
