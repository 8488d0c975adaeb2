"""What measures beside a recording: the clock's offset, the place in the mesh, and the system's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerAction

from .clock import Clock
from .identity import current_place
from .mesh import current_coordinates

if TYPE_CHECKING:
    from .losses import Losses
    from .selection import Selection
    from .system import SystemCounters


class Instruments:
    """The instruments of one Tracer. Nothing here raises, and the training waits for none of them.

    Args:
        losses: Takes what goes wrong.
        system: The system's counters.
        selection: Which ranks record.
    """

    def __init__(self, losses: Losses, system: SystemCounters, selection: Selection) -> None:
        self._losses, self._system, self._selection = losses, system, selection
        self._clock = Clock()
        self._phase = ProfilerAction.NONE

    def settle(self) -> None:
        """Begin to compare clocks, once torch.distributed is there."""
        with self._losses.kept_away("Clocks couldn't be compared"):
            self._clock.settle()

    def enter(self, phase: ProfilerAction, *, begins: bool) -> None:
        """Note what the profiler does from now on, and whether a window begins with it."""
        before, self._phase = self._phase, phase
        if before is phase and not begins:
            return
        if begins or phase is ProfilerAction.WARMUP:
            self._clock.measure()
        with self._losses.kept_away("The system's counters couldn't be read"):
            is_first = self._selection.is_first_of_node(current_place())
            self._system.enter(reads=phase is not ProfilerAction.NONE, is_first=is_first)

    def read(self) -> None:
        """Read the system's counters once more: a window ends."""
        with self._losses.kept_away("The system's counters couldn't be read"):
            self._system.read()

    def told(self) -> dict[str, Any]:
        """What a window's metadata tell: `clock`, None if it wasn't compared; `mesh`, the rank's coordinates."""
        offset, mesh = None, {}
        with self._losses.kept_away("A window doesn't tell its clock's offset or its place in the mesh"):
            offset, mesh = self._clock.offset, current_coordinates()
        return {"clock": None if offset is None else offset.to_json(), "mesh": mesh}

    def close(self) -> None:
        """Measure no more."""
        with self._losses.kept_away("The comparison of clocks couldn't be ended"):
            self._clock.close()
        with self._losses.kept_away("Reading the system's counters couldn't be ended"):
            self._system.close()
