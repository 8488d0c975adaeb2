"""Steps that don't end: where the training's thread stands meanwhile.

A collective that waits for a rank that is gone ends in SIGKILL from some launcher, and then nobody can say where it
was. So the watching thread writes it down while there is time.
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
_MOST_FRAMES = 40


class Hang:
    """Tells once of each step that takes too long.

    Args:
        note: Takes the news.
        began: Returns which step began last, on the thread that makes this, and when by the clock.
        usual_ns: Returns how long a step takes; None while that isn't known.
        clock_ns: A clock.
    """

    def __init__(
        self,
        note: Callable[[str, object], None],
        began: Callable[[], tuple[int, int]],
        usual_ns: Callable[[], int | None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._note, self._began, self._usual_ns, self._clock_ns = note, began, usual_ns, clock_ns
        self._thread = threading.get_ident()
        self._told: int | None = None

    def look(self) -> None:
        """Note where the training stands, if its step takes longer than two minutes and ten usual ones."""
        if self._lasts_s() > max(LONGEST_S, _TIMES_USUAL * (self._usual_ns() or 0) / 1e9):
            self.tell()

    def tell(self) -> None:
        """Note where the training stands, unless that was told of this step."""
        number, lasts_s = self._began()[0], self._lasts_s()
        frame = sys._current_frames().get(self._thread)
        if self._told != number and frame is not None:
            self._told = number
            frames = traceback.extract_stack(frame)[-_MOST_FRAMES:]
            stack = [f"{entry.filename}:{entry.lineno} {entry.name}" for entry in reversed(frames)]
            self._note("hanging", {"step": number, "seconds": round(lasts_s), "stack": stack})

    def _lasts_s(self) -> float:
        return (self._clock_ns() - self._began()[1]) / 1e9
