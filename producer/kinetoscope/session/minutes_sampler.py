"""Adds the state of the machine to the ring of a process's last minutes, on the background thread."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ..output.ring import MEMORY, PROCESSOR
from ..sampling.procfs import ProcFs, has_proc

if TYPE_CHECKING:
    from ..output.ring import Ring

_MILLION = 1_000_000


class MinutesSampler:
    """Samples memory and processors.

    Args:
        ring: Takes the samples.
    """

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._stats = ProcFs()
        self._ticks = (0.0, 0.0)

    def sample(self) -> None:
        """Add a sample; do nothing if this system has no /proc.

        Raises:
            OSError: It can't be read.
        """
        if not has_proc():
            return
        now_ns, ticks = time.time_ns(), self._stats.processors()
        (used_s, resident_bytes), machine = self._stats.process(), self._stats.memory()["virtual"]
        busy, total = ticks[0] - self._ticks[0], ticks[1] - self._ticks[1]
        self._ring.add((MEMORY, now_ns, resident_bytes, machine.total - machine.used))
        millionths = round(_MILLION * busy / total) if total > 0 else 0
        self._ring.add((PROCESSOR, now_ns, round(used_s * 1e9), millionths))
        self._ticks = ticks
