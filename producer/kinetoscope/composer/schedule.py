"""Composer's schedule, which restarts in each epoch, and how schedules are called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.profiler import ProfilerAction as TorchAction

from ..errors import ScheduleError
from .actions import TORCH_ACTIONS, ProfilerAction

if TYPE_CHECKING:
    from collections.abc import Callable

    from .state import State

_FROM_TORCH = {torch_action: action for action, torch_action in TORCH_ACTIONS.items()}


def action_of(schedule: Callable[..., object], state: State) -> ProfilerAction:
    """Return a schedule's action for the next batch; a schedule of torch's kind, which takes a number, works too.

    Raises:
        ScheduleError: It returned something other than an action.
    """
    answer = schedule(int(state.timestamp.batch)) if _takes_number(schedule) else schedule(state)
    if isinstance(answer, TorchAction):
        return _FROM_TORCH[answer]
    try:
        return ProfilerAction(getattr(answer, "value", answer))  # Composer's own actions have the same values
    except ValueError:
        raise ScheduleError(f"The schedule returned {answer!r}; it must return a ProfilerAction.") from None


def _takes_number(schedule: Callable[..., object]) -> bool:
    """Whether it takes a step number, like torch's schedules and our `cyclic`."""
    name = getattr(schedule, "__qualname__", type(schedule).__qualname__)
    return name in ("schedule.<locals>.schedule_fn", "Cyclic")


def cyclic_schedule(
    skip_first: int = 0, wait: int = 0, warmup: int = 1, active: int = 4, repeat: int = 1
) -> Callable[[State], ProfilerAction]:
    """Return a schedule that in each epoch skips some batches, then repeats: wait, warm up, record and save.

    The last batch of an epoch ends a recording if the epoch's length is known. In the epoch in which a training
    resumes, it counts from the batch at which the training resumes.

    Args:
        skip_first: Batches at the beginning of each epoch.
        wait: Batches of a cycle that are skipped.
        warmup: Batches that are profiled and discarded.
        active: Batches that are recorded.
        repeat: How many cycles an epoch has; 0 for as many as fit.

    Raises:
        ScheduleError: A negative number, or `active=0`.
    """
    for name, value in (("skip_first", skip_first), ("wait", wait), ("warmup", warmup), ("repeat", repeat)):
        if value < 0:
            raise ScheduleError(f"{name}={value}: a schedule needs a whole number of at least 0 here.")
    if active < 1:
        raise ScheduleError(f"active={active}: a schedule needs a whole number of at least 1 here.")
    length = wait + warmup + active

    def schedule(state: State) -> ProfilerAction:
        batch = int(state.timestamp.batch_in_epoch) - skip_first - state.resumption_batch_idx
        cycle, offset = divmod(batch, length)
        if batch < 0 or 0 < repeat <= cycle or offset < wait:
            return ProfilerAction.SKIP
        if offset < wait + warmup:
            return ProfilerAction.WARMUP
        is_last_of_epoch = (
            state.dataloader_len is not None and state.timestamp.batch_in_epoch + 1 >= state.dataloader_len
        )
        is_last = offset == length - 1 or is_last_of_epoch
        return ProfilerAction.ACTIVE_AND_SAVE if is_last else ProfilerAction.ACTIVE

    return schedule
