"""Which steps are recorded.

A schedule is a function from a step's number to the profiler's action during that step: nothing, warm up (collect and
discard, so that the profiler's own start-up cost isn't in the recording), record, or record and save at its end.
`torch.profiler.schedule` makes such functions; `cyclic` makes the same ones with a description, for the metadata of
traces and for log messages about loops that are too short.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from torch.profiler import ProfilerAction
from torch.profiler import schedule as torch_schedule

from ..argument_checks import explain_unknown
from ..errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Callable

    Schedule = Callable[[int], ProfilerAction]


@dataclass(frozen=True, kw_only=True)
class Cyclic:
    """Cycles of waiting, warming up and recording; each cycle saves one window at its end.

    Args:
        wait: Steps of a cycle that run without a profiler.
        warmup: Steps that are profiled and discarded. Without any, the first recorded step includes start-up costs.
        active: Steps that are recorded.
        repeat: How many cycles; 0 for as many as there are, which is torch's default. Here it is 1: a training that
            is recorded all the time is slow and fills the disk, so you ask for that.
        skip_first: Steps before the first cycle.
        skip_first_wait: Whether the first cycle doesn't wait.
        per: `run` or `epoch`: whether the schedule restarts in each epoch; a window then ends with the epoch at the
            latest.

    Raises:
        ScheduleError: A negative number, or `active=0`.
    """

    wait: int = 0
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    skip_first: int = 0
    skip_first_wait: bool = False
    per: Literal["run", "epoch"] = "run"

    def __post_init__(self) -> None:
        for name in ("wait", "warmup", "active", "repeat", "skip_first"):
            value, least = getattr(self, name), 1 if name == "active" else 0
            if not isinstance(value, int) or value < least:
                raise ScheduleError(f"{name}={value!r}: a schedule needs a whole number of at least {least} here.")
        if self.per not in ("run", "epoch"):
            raise ScheduleError(f"per={self.per!r}: steps are counted per 'run' or per 'epoch'.")

    def __call__(self, step: int) -> ProfilerAction:
        """Return the action of `step`, counted from 0, like torch.profiler.schedule."""
        position = step - self.skip_first + (self.wait if self.skip_first_wait else 0)
        cycle, offset = divmod(position, self.wait + self.warmup + self.active)
        if step < self.skip_first or 0 < self.repeat <= cycle or offset < self.wait:
            return ProfilerAction.NONE
        if offset < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        is_last = offset == self.wait + self.warmup + self.active - 1
        return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD

    @property
    def steps_needed(self) -> int:
        """How many steps a loop must complete before the first window is saved."""
        return self.skip_first + (0 if self.skip_first_wait else self.wait) + self.warmup + self.active


@explain_unknown("cyclic", {})
def cyclic(
    wait: int = 0,
    warmup: int = 1,
    active: int = 3,
    repeat: int = 1,
    skip_first: int = 0,
    *,
    skip_first_wait: bool = False,
    per: Literal["run", "epoch"] = "run",
) -> Cyclic:
    """Skip, then `repeat` times: wait, warm up, record and save. See `Cyclic`."""
    return Cyclic(
        wait=wait,
        warmup=warmup,
        active=active,
        repeat=repeat,
        skip_first=skip_first,
        skip_first_wait=skip_first_wait,
        per=per,
    )


def validate_schedule(schedule: Schedule | None) -> Schedule | None:
    """Check a schedule.

    Raises:
        ScheduleError: It isn't a function of the step's number, or returns one and wasn't called.
    """
    factories: dict[object, str] = {torch_schedule: "schedule", cyclic: "cyclic", Cyclic: "cyclic"}
    name = next((name for factory, name in factories.items() if schedule is factory), None)
    if name is not None:
        raise ScheduleError(f"schedule={name} isn't called: write schedule={name}(wait=…, warmup=…, active=…).")
    if schedule is not None and not callable(schedule):
        raise ScheduleError(
            f"schedule={schedule!r} isn't a function of the step's number; try cyclic(wait=…, active=…)."
        )
    return schedule


def is_pure(schedule: Schedule | None) -> bool:
    """Whether a schedule depends on nothing but the step: ours and torch.profiler.schedule; others may count."""
    is_torchs = getattr(schedule, "__qualname__", "") == "schedule.<locals>.schedule_fn"
    return isinstance(schedule, Cyclic) or schedule is on_request or is_torchs


def is_per_epoch(schedule: Schedule | None) -> bool:
    """Whether a schedule restarts in each epoch."""
    return getattr(schedule, "per", "run") == "epoch"


def on_request(step: int | None = None) -> ProfilerAction:
    """A schedule that records nothing until a request arrives.

    Raises:
        ScheduleError: It is called as if it made a schedule.
    """
    if step is None:
        raise ScheduleError("on_request is a schedule itself: write schedule=on_request, without parentheses.")
    return ProfilerAction.NONE


class WindowLimit:
    """Ends windows that last too long.

    Args:
        most_s: How many seconds a window may last; None for no limit.
        clock_s: The clock.

    Raises:
        ScheduleError: The limit isn't positive.
    """

    def __init__(self, most_s: float | None = None, clock_s: Callable[[], float] = time.monotonic) -> None:
        if most_s is not None and not most_s > 0:
            raise ScheduleError(f"max_window_s={most_s!r}: it must be a positive number of seconds.")
        self._most_s, self._clock_s = most_s, clock_s
        self._start_s: float | None = None
        self._before = ProfilerAction.NONE
        self.is_set = most_s is not None
        """Whether there is a limit."""
        self.reason: str | None = None
        """Why the next step isn't recorded, contrary to the schedule."""

    def limited_action(self, action: ProfilerAction) -> ProfilerAction:
        """Return the action of the next step, given the schedule's action.

        When a window's time is over, nothing is recorded until the schedule begins another window.
        """
        if self._most_s is None:
            return action
        before, self._before, self.reason = self._before, action, None
        if action not in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            self._start_s = None
            return action
        if self._start_s is None or before is ProfilerAction.RECORD_AND_SAVE:
            self._start_s = self._clock_s()
        elif self._clock_s() - self._start_s > self._most_s:
            self.reason = "max_window_s"
            return ProfilerAction.NONE
        return action


def steps_needed(schedule: Schedule | None) -> int | None:
    """Return how many steps a loop must complete before a window is saved; None if it can't be known in advance."""
    if isinstance(schedule, Cyclic):
        return schedule.steps_needed
    if schedule is None or not is_pure(schedule):
        return None
    return next((step + 1 for step in range(1_000_000) if schedule(step).name == "RECORD_AND_SAVE"), None)


def no_window_reason(schedule: Schedule | None, completed_steps: int, *, has_stepped: bool) -> str:
    """Return why a loop's steps led to no window; `has_stepped` if it counted steps or epochs."""
    step_count = steps_needed(schedule)
    needs = "recorded none of the steps" if step_count is None else f"needs {step_count} steps"
    advice = "" if has_stepped else "; call step() after each, or loop over steps(loader)"
    return f"0 windows: the schedule {needs}, the loop made {completed_steps}{advice}"


def describe_schedule(schedule: Schedule | None) -> object:
    """Return the schedule as a JSON value: its numbers if it is a `Cyclic`, else its name; None for none."""
    if isinstance(schedule, Cyclic):
        return asdict(schedule)
    return None if schedule is None else str(getattr(schedule, "__qualname__", type(schedule).__qualname__))
