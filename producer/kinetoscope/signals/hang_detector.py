"""Steps that don't end: where the training's thread stands meanwhile.

A collective that waits for a rank that is gone ends in SIGKILL from some launcher, and then nobody can say where it
was. So the background thread writes it down while there is time.
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
    """Tells once of each step that takes too long.

    Args:
        note: Takes the news.
        current_step: Returns which step began last, on the thread that makes this, and when by the clock.
        usual_ns: Returns how long a step takes; None while that isn't known.
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
        """Note where the training stands, if its step takes longer than two minutes and ten usual ones."""
        if self._elapsed_s() > max(LONGEST_S, _TIMES_USUAL * (self._usual_ns() or 0) / 1e9):
            self.report()

    def report(self) -> None:
        """Note where the training stands, unless it did for this step."""
        number, elapsed_s = self._current_step()[0], self._elapsed_s()
        frame = sys._current_frames().get(self._thread)
        if self._reported_step != number and frame is not None:
            self._reported_step = number
            frames = traceback.extract_stack(frame)[-_MAX_FRAMES:]
            stack = [f"{entry.filename}:{entry.lineno} {entry.name}" for entry in reversed(frames)]
            self._note("hanging", {"step": number, "seconds": round(elapsed_s), "stack": stack})

    def _elapsed_s(self) -> float:
        return (self._clock_ns() - self._current_step()[1]) / 1e9
