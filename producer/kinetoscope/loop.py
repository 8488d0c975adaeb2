"""How a training's loop tells its steps and epochs."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

from torch.autograd.profiler import record_function

from .batches import Count, counted, length, wait_name
from .errors import UsageError
from .recorder import is_inside_optimizer
from .surface import Surface

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .markers import Ranges
    from .progress import Progress, ProgressCounter

T = TypeVar("T")

_LOOKS_EVERY_S = 0.2

_CHECKED_STEPS = 3
"""Whoever steps at a wrong place does so from the first step on."""


class Loop(Surface):
    """The part of a Tracer that counts."""

    _counter: ProgressCounter
    _ranges: Ranges
    _is_per_epoch: bool
    _is_idle = True
    """Whether no profiler runs in this step."""
    _looks_s = 0.0
    """When to look around, by the monotonic clock."""

    @property
    def progress(self) -> Progress:
        """How far the training has come."""
        return self._counter.progress

    @property
    def completed_steps(self) -> int:
        """How many steps are complete, also before a resumed training went on."""
        return self._counter.batch

    @property
    def step_num(self) -> int:
        """The same, by torch.profiler's name."""
        return self._counter.batch

    @property
    def _has_stepped(self) -> bool:
        return self._counter.progress is not self._counter.start

    def steps(self, loader: Iterable[T], *, samples: Count[T] = None, tokens: Count[T] = None) -> Iterator[T]:
        """Return the loader's batches; when the loop comes back for the next one, a step is complete.

        When there are no more, an epoch is. The wait for each batch is recorded the way torch's DataLoader records its
        own.

        Args:
            loader: Gives the batches.
            samples: How many samples a batch holds, or what tells it of one.
            tokens: The same for tokens.
        """
        if not self._enabled:
            return iter(loader)
        self._check_place("count steps")
        return self._counted(loader, samples, tokens)

    def _counted(self, loader: Iterable[T], samples: Count[T], tokens: Count[T]) -> Iterator[T]:
        iterator, expected, seen = iter(loader), length(loader), 0
        wait = wait_name(iterator)
        while True:
            if seen != expected:  # after the last batch, there is only the news that there are no more
                self._ranges.begin_step(self.completed_steps)
            is_marked = wait is not None and self._ranges.is_recording
            try:
                with record_function(str(wait)) if is_marked else nullcontext():
                    batch = next(iterator)
            except StopIteration:
                self._end_epoch(goes_on=False)
                return
            self._ranges.begin_step(self.completed_steps)
            counts = counted(samples, batch), counted(tokens, batch)
            yield batch
            seen += 1
            self._advance(*counts, is_last=seen == expected)

    def step(self, *, samples: int | None = None, tokens: int | None = None) -> None:
        """Say that a step is complete. Only at the top level of a loop, where no other range of the step is open.

        Args:
            samples: How many samples its batch held.
            tokens: How many tokens.

        Raises:
            UsageError: On another thread, outside the Tracer's `with`, or in a hook of an optimizer.
        """
        if self._enabled:
            counter = self._counter
            if counter.here < _CHECKED_STEPS and is_inside_optimizer():
                raise UsageError(
                    "step() was called by a hook of an optimizer, in the middle of its step; call it at the top level "
                    "of the loop, after optimizer.step()."
                )
            self._advance(samples, tokens, is_last=False)

    def begin_step(self) -> None:
        """Say that a step begins, where it doesn't with the end of the one before; nothing if one has begun."""
        if self._enabled:
            self._check_place("count steps")
            self._ranges.begin_step(self.completed_steps)

    def epoch(self, *, goes_on: bool = True) -> None:
        """Say that an epoch is complete. With no step since the last one this is no news: `steps` says it, too.

        Args:
            goes_on: Whether a step that has begun goes on: False if only `begin_step` will begin one.
        """
        if self._enabled:
            self._check_place("count epochs")
            if not goes_on:
                self._ranges.end_step(is_complete=False)
            self._end_epoch(goes_on=self._ranges.is_step_open)

    def _end_epoch(self, *, goes_on: bool) -> None:
        if self._counter.end_epoch() and self._is_per_epoch:
            self._ranges.end_step(is_complete=False)
            self._move(closes=True)
            self._resume(goes_on=goes_on)

    def _advance(self, samples: int | None, tokens: int | None, *, is_last: bool) -> None:
        self._check_place("count steps")
        counter, was_idle = self._counter, self._is_idle
        if is_last or not was_idle:
            self._ranges.end_step()
        dur_ns = counter.end_batch(samples, tokens)
        self._attendant.stepped(counter.batch - 1, dur_ns, samples, tokens, is_idle=self._is_idle)
        if time.monotonic() >= self._looks_s:
            self._looks_s = time.monotonic() + _LOOKS_EVERY_S
            self._look()
        self._move(closes=is_last and self._counter.end_epoch() and self._is_per_epoch)
        if is_last or not was_idle or not self._is_idle:  # else all is as before, as in most steps of a training
            self._resume(goes_on=not is_last)

    def _resume(self, *, goes_on: bool) -> None:
        self._attendant.step_begins()
        if goes_on:
            self._ranges.begin_step(self._counter.batch)
        else:
            self._ranges.resume()

    def _look(self) -> None:
        """Do what has to be done between two steps now and then."""
        raise NotImplementedError

    def _move(self, *, closes: bool) -> None:
        """Go on to what the schedule says of the next step; `closes` if no window goes on beyond this point."""
        raise NotImplementedError
