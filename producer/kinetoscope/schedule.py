"""Which steps are recorded.

A schedule is a function from a step's number to what the profiler does during that step: nothing, warm up (collect
and throw away, so that the profiler's own start-up cost isn't in the recording), record, or record and save at its
end. `torch.profiler.schedule` makes such functions; `cyclic` makes the same ones with a description, so that a trace
can say how it was scheduled and a loop that was too short can be told by how much.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from .errors import ScheduleError

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch.profiler import ProfilerAction

    Schedule = Callable[[int], ProfilerAction]


@dataclass(frozen=True, kw_only=True)
class Cyclic:
    """Cycles of waiting, warming up and recording; each cycle saves one window at its end.

    Args:
        wait: Steps of a cycle that run without a profiler.
        warmup: Steps that are profiled and thrown away. With none, the first recorded step holds start-up costs.
        active: Steps that are recorded.
        repeat: How many cycles; 0 goes on until the end.
        skip_first: Steps before the first cycle.

    Raises:
        ScheduleError: A negative number, or nothing to record.
    """

    wait: int = 0
    warmup: int = 1
    active: int = 3
    repeat: int = 1
    skip_first: int = 0

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = 1 if name == "active" else 0
            if not isinstance(value, int) or value < least:
                raise ScheduleError(f"{name}={value!r}: a schedule needs a whole number of at least {least} here.")

    def __call__(self, step: int) -> ProfilerAction:
        """Return what to do during `step`, counted from 0; defined as torch.profiler.schedule defines it."""
        from torch.profiler import ProfilerAction

        cycle, place = divmod(step - self.skip_first, self.wait + self.warmup + self.active)
        if step < self.skip_first or 0 < self.repeat <= cycle or place < self.wait:
            return ProfilerAction.NONE
        if place < self.wait + self.warmup:
            return ProfilerAction.WARMUP
        is_last = place == self.wait + self.warmup + self.active - 1
        return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD

    @property
    def steps_needed(self) -> int:
        """How many steps a loop must complete until the first window is saved."""
        return self.skip_first + self.wait + self.warmup + self.active


def cyclic(wait: int = 0, warmup: int = 1, active: int = 3, repeat: int = 1, skip_first: int = 0) -> Cyclic:
    """Skip, then `repeat` times: wait, warm up, record and save. See `Cyclic`."""
    return Cyclic(wait=wait, warmup=warmup, active=active, repeat=repeat, skip_first=skip_first)


def steps_needed(schedule: Schedule | None) -> int | None:
    """How many steps a loop must complete until a window is saved; None for a function that may not be asked ahead."""
    if isinstance(schedule, Cyclic):
        return schedule.steps_needed
    # What torch.profiler.schedule returns is a pure function; any other one may count its calls.
    if schedule is None or getattr(schedule, "__qualname__", "") != "schedule.<locals>.schedule_fn":
        return None
    return next((step + 1 for step in range(1_000_000) if schedule(step).name == "RECORD_AND_SAVE"), None)


def description(schedule: Schedule | None) -> object:
    """The schedule as a JSON value: its numbers where it tells them, else its name; None for none."""
    if isinstance(schedule, Cyclic):
        return asdict(schedule)
    return None if schedule is None else str(getattr(schedule, "__qualname__", type(schedule).__qualname__))
