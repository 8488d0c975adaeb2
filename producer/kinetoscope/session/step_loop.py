"""Counts the steps and epochs of a training's loop, and moves the windows on at each step boundary."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from threading import get_ident
from time import monotonic_ns, time_ns
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from torch.autograd.profiler import record_function
from torch.utils.data import dataloader

from .. import process_id
from ..errors import UsageError
from ..profiling.profiler_ranges import plain_name
from ..profiling.recorder import is_inside_optimizer
from .budgeted_windows import LONG_NS, LOOK_EVERY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .recording import Recording
    from .supervisor import Supervisor
    from .window_controller import WindowController

_LOG = logging.getLogger("kinetoscope")

T = TypeVar("T")
Count = int | Callable[[T], int] | None

_CHORES_EVERY_NS = 500_000_000

_CHECKED_STEPS = 3
"""How many steps are checked for a wrong place: such a call is wrong from the first step on."""


_INSIDE_OPTIMIZER = (
    "step() was called by a hook of an optimizer, in the middle of its step; call it at the top level of the loop, "
    "after optimizer.step()."
)
_DOUBLE = (
    "step() was called in a loop over steps(), which counts the batches itself: each batch counts as one step. "
    "Remove one of the two."
)


class _Batch(NamedTuple):
    """A batch of `steps`: its samples and tokens, and whether it is the loader's last."""

    samples: int | None
    tokens: int | None
    is_last: bool


class StepLoop:
    """Counts one training's steps, on the thread that owns the recording.

    Args:
        recording: The recording.
        controller: Opens and closes windows between two steps.
        supervisor: Supervises the steps.
        chores: Functions that are called between two steps now and then.
    """

    def __init__(
        self,
        recording: Recording,
        controller: WindowController,
        supervisor: Supervisor,
        chores: Sequence[Callable[[], None]],
    ) -> None:
        self._counter, self._ranges = recording.counter, recording.annotations.ranges
        self._owner, self._error_log = recording.owner, recording.error_log
        self._controller, self._actions, self._supervisor = controller, controller.actions, supervisor
        self._triggers, self._budgeted_windows = supervisor.triggers, supervisor.budgeted_windows
        self._chores, self._chores_due_ns = chores, 0
        self._checked_until = self._counter.batch + _CHECKED_STEPS
        self._batch: _Batch | None = None
        """The batch of `steps` whose step isn't complete; None outside of such a loop."""

    def steps(self, loader: Iterable[T], samples: Count[T], tokens: Count[T]) -> Iterator[T]:
        """Yield the loader's batches and count them; see `Tracer.steps`.

        Raises:
            UsageError: On another thread, or outside the Tracer's `with`.
        """
        self._owner.check("count steps")
        return self._counted_batches(loader, samples, tokens)

    def _counted_batches(self, loader: Iterable[T], samples: Count[T], tokens: Count[T]) -> Iterator[T]:
        iterator, total, count = iter(loader), length(loader), 0
        wait = _wait_name(iterator)
        while True:
            if count != total:  # after the last batch, the loader only reports that there are no more
                self._ranges.begin_step(self._counter.batch)
            is_marked = wait is not None and self._ranges.is_recording
            try:
                with record_function(str(wait)) if is_marked else nullcontext():
                    batch = next(iterator)
            except StopIteration:
                self._end_epoch(goes_on=False)
                return
            self._ranges.begin_step(self._counter.batch)
            if self._budgeted_windows is not None:
                self._budgeted_windows.add_batch(batch)
            count += 1
            self._batch = open_batch = _Batch(count_of(samples, batch), count_of(tokens, batch), is_last=count == total)
            try:
                yield batch
            finally:  # also if the loop is left with `break`
                is_complete, self._batch = self._batch is not open_batch, None
            if not is_complete:
                self.end_step(open_batch.samples, open_batch.tokens, is_last=open_batch.is_last)

    def begin_step(self) -> None:
        """Begin a step, unless one has begun; see `Tracer.begin_step`.

        Raises:
            UsageError: On another thread, or outside the Tracer's `with`.
        """
        self._owner.check("count steps")
        self._ranges.begin_step(self._counter.batch)

    def continue_at(self, step: int) -> None:
        """Let the schedule continue with a step; see `Tracer.schedule_step`.

        The steps before it count as completed, but not within an open window, which doesn't have them.
        """
        self._counter.continue_at(step, skips=not self._controller.is_recording)
        self._triggers.idle_until = 0

    def end_step(self, samples: int | None, tokens: int | None, *, is_last: bool = False) -> None:
        """End a step, and an epoch if it is the last one; see `Tracer.step`.

        Raises:
            UsageError: On another thread, outside the Tracer's `with`, or in a hook of an optimizer.
        """
        counter, controller, supervisor = self._counter, self._controller, self._supervisor
        if counter.batch < self._checked_until and is_inside_optimizer():
            raise UsageError(_INSIDE_OPTIMIZER)
        if self._owner.ids != (process_id.pid, get_ident()):
            self._owner.check("count steps")
        if self._batch is not None:
            samples, tokens, is_last = self._complete_batch(self._batch, samples, tokens)
        was_idle = controller.is_idle
        if is_last or not was_idle:
            self._ranges.end_step()
        dur_ns = counter.end_batch(samples, tokens)
        start_ns, now_ns = supervisor.step_start_ns, time_ns()
        supervisor.step_start_ns = now_ns
        step = ("s", counter.batch - 1, start_ns, now_ns, dur_ns, samples, tokens)
        for take in supervisor.step_consumers:
            take(step)
        if was_idle:
            for add in supervisor.duration_consumers:
                add(now_ns - start_ns)
            windows = self._budgeted_windows
            if windows is not None and (not counter.batch % LOOK_EVERY or now_ns - start_ns > LONG_NS):
                windows.look()
        else:
            supervisor.add_profiled_duration(now_ns - start_ns)
        if counter.last_ns >= self._chores_due_ns:
            self._do_chores()
        if was_idle and not is_last and counter.batch < self._triggers.idle_until:
            return  # as in most steps of a training
        controller.move(closes=is_last and counter.end_epoch() and self._actions.is_per_epoch)
        if is_last or not was_idle or not controller.is_idle:  # mostly, nothing changes
            self._resume(goes_on=not is_last)

    def _complete_batch(
        self, batch: _Batch, samples: int | None, tokens: int | None
    ) -> tuple[int | None, int | None, bool]:
        """Return the arguments of the step that the program's `step()` ends, which `steps` then doesn't count again."""
        self._batch = None
        if not self._counter.double_calls:
            _LOG.warning("%s", _DOUBLE)
        self._counter.double_calls += 1
        return samples or batch.samples, tokens or batch.tokens, batch.is_last

    def end_epoch(self, *, goes_on: bool) -> None:
        """End an epoch; see `Tracer.epoch`.

        Raises:
            UsageError: On another thread, or outside the Tracer's `with`.
        """
        self._owner.check("count epochs")
        if not goes_on:
            self._ranges.end_step(is_complete=False)
        self._end_epoch(goes_on=self._ranges.is_step_open)

    def _end_epoch(self, *, goes_on: bool) -> None:
        if self._counter.end_epoch() and self._actions.is_per_epoch:
            self._ranges.end_step(is_complete=False)
            self._controller.move(closes=True)
            self._resume(goes_on=goes_on)

    def _resume(self, *, goes_on: bool) -> None:
        self._supervisor.begin_step()
        if goes_on:
            self._ranges.begin_step(self._counter.batch)
        else:
            self._ranges.resume()

    def _do_chores(self) -> None:
        self._chores_due_ns = monotonic_ns() + _CHORES_EVERY_NS
        with self._error_log.catch("Periodic work of the recording failed"):
            for chore in self._chores:
                chore()
        self._supervisor.begin_step()


def length(loader: Iterable[object]) -> int | None:
    """Return how many batches there will be; None if the loader doesn't know."""
    try:
        return len(loader)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):
        return None


def _wait_name(iterator: Iterator[object]) -> str | None:
    """Return the name for the wait for a batch, in the form of torch's DataLoader; None for its own iterators."""
    torch_iterator = getattr(dataloader, "_BaseDataLoaderIter", None)
    if torch_iterator is not None and isinstance(iterator, torch_iterator):
        return None
    return f"enumerate(DataLoader)#{plain_name(type(iterator).__name__)}.__next__"


def count_of(count: Count[T], batch: T) -> int | None:
    """How many samples or tokens a batch has: a constant, a function of the batch, or None if unknown."""
    return count(batch) if callable(count) else count
