"""The profiler's action in the next step, from the schedule, the window's time limit, and requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.profiler import ProfilerAction

from ..errors import ScheduleError
from ..scheduling.schedule import is_per_epoch, is_pure, no_window_reason, validate_schedule

_LOOK_AHEAD = 32
"""How many steps of a pure schedule are evaluated at once: in a row a call takes 0.3 µs, in a training, whose data has
driven it from the caches, 8."""

if TYPE_CHECKING:
    from ..job.selection import Selection
    from ..progress import ProgressCounter
    from ..scheduling.schedule import Schedule, WindowLimit
    from .supervisor import Supervisor


class StepActions:
    """The actions of one Tracer's steps.

    Args:
        schedule: What to do in each step; None to record all of them.
        limit: How long a window may last.
        selection: Which ranks record.
        counter: The steps so far.
        supervisor: Has the requests.

    Raises:
        ScheduleError: The schedule isn't a function.
    """

    def __init__(
        self,
        schedule: Schedule | None,
        limit: WindowLimit,
        selection: Selection,
        counter: ProgressCounter,
        supervisor: Supervisor,
    ) -> None:
        self._schedule, self._limit = validate_schedule(schedule), limit
        self._selection, self._counter, self._supervisor = selection, counter, supervisor
        self._is_pure = is_pure(schedule) and not limit.is_set
        self.idle_until = 0
        """By the schedule alone, there is nothing to do in the steps before this one; 0 if each has to be asked for."""
        self.is_per_epoch = is_per_epoch(schedule)
        """Whether the schedule restarts in each epoch, with which a window then ends at the latest."""

    @property
    def has_schedule(self) -> bool:
        """Whether there is a schedule, which defines where a window ends."""
        return self._schedule is not None

    @property
    def limit_reason(self) -> str | None:
        """Why the next step isn't recorded, contrary to the schedule; None if it is."""
        return self._limit.reason

    def next(self) -> ProfilerAction:
        """Return the action of the next step.

        Raises:
            ScheduleError: The schedule returned something other than an action.
        """
        if self._schedule is None:
            return self._limit.limited(ProfilerAction.RECORD if self._selection.is_selected else ProfilerAction.NONE)
        counter = self._counter
        step = counter.here_in_epoch if self.is_per_epoch else counter.here
        action = self._schedule(step)
        if not isinstance(action, ProfilerAction):
            raise ScheduleError(f"The schedule returned {action!r} for step {step}; it must return a ProfilerAction.")
        if self._limit.is_set:
            action = self._limit.limited(action)
        self.idle_until = counter.batch + self._idle_steps(self._schedule, step) if self._is_pure else 0
        return self._supervisor.action(counter.batch, action)

    def _idle_steps(self, schedule: Schedule, step: int) -> int:
        """Return how many steps from this one on a pure schedule leaves out; at most `_LOOK_AHEAD`."""
        none = ProfilerAction.NONE
        return next((ahead for ahead in range(_LOOK_AHEAD) if schedule(step + ahead) is not none), _LOOK_AHEAD)

    def no_window_reason(self) -> str:
        """Return why the steps so far led to no window."""
        return no_window_reason(self._schedule, self._counter.here, has_stepped=self._counter.has_stepped)
