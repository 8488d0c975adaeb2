"""Where the finished windows of a Tracer go: which files, in which run, with which facts about themselves."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from .identity import Place, Run, current_place, is_distributed
from .metadata import Recording, Window
from .naming import TraceName, file_name, worker_of_rank
from .writer import save

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from .losses import Losses

_LOG = logging.getLogger("kinetoscope")


class Saving:
    """Saves one process's windows. Nothing in it raises.

    Args:
        logdir: Where runs have their folders.
        run: The run that all processes belong to.
        losses: Takes what goes wrong.
        facts: What every trace of this process says of its recording: `schedule`.
    """

    def __init__(self, logdir: Path, run: Run, losses: Losses, facts: Mapping[str, Any]) -> None:
        self._logdir, self._run, self._losses, self._facts = logdir, run, losses, facts
        self._place: Place | None = None
        self._settled: tuple[Place, Path] | None = None
        self._window_start = (0, 0)
        self._options: Mapping[str, Any] = {}
        self.reason = "schedule"
        """What ends the next window."""
        self.saved: list[Path] = []
        """The files, oldest first."""

    def settle(self) -> None:
        """Learn rank and run while torch.distributed can tell: it may be gone when the last window is saved."""
        if self._place is None and is_distributed():
            with self._losses.kept_away("The ranks couldn't agree on a run"):
                self._place = current_place()
                _LOG.debug("Recording %s of run %s.", self._place, self._run.name)

    def settled(self, *, is_late: bool = False) -> tuple[Place, Path] | None:
        """Return this process's place and the run's folder; None while they may still change.

        Args:
            is_late: Whether a process that isn't in a group yet may be taken for one that will never be.
        """
        if self._settled is None:
            self.settle()
            if self._place is not None or is_late:
                place = self._place or current_place()
                self._settled = (place, self._logdir / self._run.name)
        return self._settled

    def begin_window(self, step: int, options: Mapping[str, Any]) -> None:
        """A window begins now, with `step`; `options` is what the profiler was told to record."""
        self._window_start = (step, time.time_ns())
        self._options = options

    def save(
        self,
        export: Callable[[str], object],
        steps_completed: int,
        markers: Mapping[str, str],
        *,
        is_whole: bool,
        is_complete: bool,
    ) -> None:
        """Save the window that ends now.

        Args:
            export: Writes what the profiler recorded into the file that it is given.
            steps_completed: How many steps the training has completed.
            markers: The program's name of each recorded marker.
            is_whole: Whether the window ends with a complete step.
            is_complete: Whether the window ends where it was meant to.
        """
        with self._losses.kept_away("A recording was lost"):
            place = self._place or current_place()
            name = TraceName(worker_of_rank(place.global_rank), steps_completed)
            target = self._logdir / self._run.name / file_name(name)
            window = self._window(steps_completed, is_whole=is_whole, is_complete=is_complete)
            recording = Recording(
                run=self._run.name, place=place, window=window, options=self._options, markers=markers, **self._facts
            )
            save(export, target, recording.to_json())
            self.saved.append(target)
            _LOG.info("Saved %s.", target)

    def _window(self, steps_completed: int, *, is_whole: bool, is_complete: bool) -> Window:
        first, started_ns = self._window_start
        return Window(
            window=len(self.saved),
            step_first=first,
            step_last=max(first, steps_completed - is_whole),
            is_last_step_whole=is_whole,
            steps_completed=steps_completed,
            reason=self.reason,
            is_complete=is_complete,
            started_ns=started_ns,
            ended_ns=time.time_ns(),
        )
