"""Measurements of a recording's environment: clock offset, mesh coordinates, system counters, processor times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.profiler import ProfilerAction

from ..job.mesh import current_coordinates
from ..job.rank_info import current_rank_info
from .clock_sync import ClockSync
from .cpu_times import CpuTimes

if TYPE_CHECKING:
    from ..error_log import ErrorLog
    from ..job.selection import Selection
    from .system_sampler import SystemSampler


class EnvironmentProbe:
    """The measurements of one Tracer. Nothing here raises, and the training waits for none of them.

    Args:
        error_log: Records errors.
        system: The system counters.
        selection: Which ranks record.
    """

    def __init__(self, error_log: ErrorLog, system: SystemSampler, selection: Selection) -> None:
        self._error_log, self._system, self._selection = error_log, system, selection
        self._clock, self._cpu = ClockSync(), CpuTimes()
        self._phase = ProfilerAction.NONE

    def start(self) -> None:
        """Start comparing clocks, once torch.distributed is initialized."""
        with self._error_log.catch("Clocks couldn't be compared"):
            self._clock.start()

    def enter(self, phase: ProfilerAction, *, begins: bool) -> None:
        """Set the profiler's phase, and whether a window begins with it."""
        before, self._phase = self._phase, phase
        if before is phase and not begins:
            return
        if begins or phase is ProfilerAction.WARMUP:
            self._clock.measure()
        if begins:
            self._cpu.begin()
        with self._error_log.catch("The system counters couldn't be read"):
            is_first = self._selection.is_first_of_node(current_rank_info())
            self._system.enter(reads=phase is not ProfilerAction.NONE, is_first=is_first)

    def read(self) -> None:
        """Read the processor times, and the system counters once more: a window ends."""
        self._cpu.end()
        with self._error_log.catch("The system counters couldn't be read"):
            self._system.read()

    def metadata(self) -> dict[str, Any]:
        """Return a window's metadata: `clock`, None if it wasn't compared; `mesh`, the rank's coordinates; `cpu`."""
        offset, mesh = None, {}
        with self._error_log.catch("A window has no clock offset or no mesh coordinates"):
            offset, mesh = self._clock.offset, current_coordinates()
        return {"clock": None if offset is None else offset.to_json(), "mesh": mesh, "cpu": self._cpu.to_json()}

    def close(self) -> None:
        """Stop measuring."""
        with self._error_log.catch("The comparison of clocks couldn't be ended"):
            self._clock.close()
        with self._error_log.catch("Reading the system counters couldn't be ended"):
            self._system.close()
