"""A training's progress: the counts that file names, schedules, curves and metadata use.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from .errors import UsageError

Step = tuple[str, int, int, int, int, int | None, int | None]
"""A complete step: `s`, its number, start and end in Unix ns, the ns since the previous step's end, and its samples and
tokens if the program counts them. A plain tuple, since the training's thread makes one at each step."""


@dataclass(frozen=True, kw_only=True)
class Progress:
    """A training's progress at one moment. The fields have the names of Composer's format variables.

    Args:
        epoch: Completed epochs.
        batch: Completed batches, over all epochs: the number of the next batch.
        batch_in_epoch: Completed batches of the current epoch.
        sample: Completed samples, if the program counts them.
        sample_in_epoch: Completed samples of the current epoch.
        token: Completed tokens, if the program counts them.
        token_in_epoch: Completed tokens of the current epoch.
        total_wct: Seconds that all completed batches took, from the end of one to the end of the next.
        epoch_wct: Seconds that the batches of the current epoch took.
        batch_wct: Seconds that the last completed batch took.

    Raises:
        UsageError: A negative number, or an epoch with more of something than the whole training.
    """

    epoch: int = 0
    batch: int = 0
    batch_in_epoch: int = 0
    sample: int = 0
    sample_in_epoch: int = 0
    token: int = 0
    token_in_epoch: int = 0
    total_wct: float = 0.0
    epoch_wct: float = 0.0
    batch_wct: float = 0.0

    def __post_init__(self) -> None:
        negative = [name for name, value in vars(self).items() if value < 0]
        if negative:
            raise UsageError(f"{negative[0]}={getattr(self, negative[0])!r}: it can't be negative.")
        for unit in ("batch", "sample", "token"):
            whole, part = getattr(self, unit), getattr(self, f"{unit}_in_epoch")
            if part > whole:
                raise UsageError(f"{unit}_in_epoch={part} is more than {unit}={whole}, which counts over all epochs.")

    def to_json(self) -> dict[str, Any]:
        """Return the format variables by name."""
        return asdict(self)


class ProgressCounter:
    """Counts a training's progress; a `Progress` is made of it on request.

    Args:
        start: The progress at which a resumed training continues.
        clock_ns: The clock.
    """

    def __init__(self, start: Progress | None = None, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.start = start = start or Progress()
        """The progress at the start."""
        self._progress: Progress | None = start
        self.epoch, self.batch = start.epoch, start.batch
        self._epoch_batch, self._epoch_here = start.batch - start.batch_in_epoch, 0
        self._origin = start.batch
        self._sample, self._sample_in_epoch = start.sample, start.sample_in_epoch
        self._token, self._token_in_epoch = start.token, start.token_in_epoch
        self._clock_ns = clock_ns
        self.last_ns = 0
        """When the last batch ended, on that clock."""
        self.double_calls = 0
        """How many batches were counted by two calls, and so once."""
        self.begin()

    @property
    def here(self) -> int:
        """How many batches were counted here: the number of the next batch for schedules."""
        return self.batch - self._origin

    @property
    def here_in_epoch(self) -> int:
        """The same for the current epoch.

        In the epoch in which a training resumes from a checkpoint, it begins with 0 there; later epochs are counted as
        a whole.
        """
        return self.here - self._epoch_here

    @property
    def batch_in_epoch(self) -> int:
        """Completed batches of the current epoch."""
        return self.batch - self._epoch_batch

    @property
    def progress(self) -> Progress:
        """The current progress."""
        if self._progress is None:
            self._progress = Progress(
                epoch=self.epoch,
                batch=self.batch,
                batch_in_epoch=self.batch_in_epoch,
                sample=self._sample,
                sample_in_epoch=self._sample_in_epoch,
                token=self._token,
                token_in_epoch=self._token_in_epoch,
                total_wct=(self.last_ns - self._origin_ns) / 1e9,
                epoch_wct=(self.last_ns - self._epoch_origin_ns) / 1e9,
                batch_wct=(self.last_ns - self._previous_ns) / 1e9,
            )
        return self._progress

    def continue_at(self, here: int, *, skips: bool) -> None:
        """Let schedules continue with a batch, as if those before it had been counted here.

        Args:
            here: Its number.
            skips: Whether those that are missing count as completed, so that `batch` isn't smaller.
        """
        before, has_stepped = self.here, self.has_stepped
        skipped_batches = max(0, here - self.batch) if skips else 0
        self.start = replace(self.start, batch=self.start.batch + skipped_batches)
        self._progress = None if has_stepped else self.start
        self.batch += skipped_batches
        self._epoch_batch += skipped_batches
        self._origin = self.batch - here
        self._epoch_here += here - before

    @property
    def has_stepped(self) -> bool:
        """Whether a batch or an epoch was counted here."""
        return self._progress is not self.start

    def current_step(self) -> tuple[int, int]:
        """Return the number of the current batch, and when it began, on the clock."""
        return self.batch, self.last_ns

    def begin(self) -> None:
        """Begin the first batch now."""
        self.last_ns = now_ns = self._clock_ns()
        # Each batch begins where the last one ended, so sums of durations are differences of times.
        self._origin_ns, self._epoch_origin_ns, self._previous_ns = (
            now_ns - round(seconds * 1e9)
            for seconds in (self.start.total_wct, self.start.epoch_wct, self.start.batch_wct)
        )

    def end_batch(self, samples: int | None = None, tokens: int | None = None) -> int:
        """Count a batch, which begins where the last one ended; return how many ns it took.

        Args:
            samples: How many samples it had; None adds nothing.
            tokens: How many tokens it had; None adds nothing.

        Raises:
            UsageError: A negative number.
        """
        if samples or tokens:
            self._add(samples or 0, tokens or 0)
        self._progress = None
        self.batch += 1
        self._previous_ns = previous_ns = self.last_ns
        self.last_ns = now_ns = self._clock_ns()
        return now_ns - previous_ns

    def _add(self, samples: int, tokens: int) -> None:
        if samples < 0 or tokens < 0:
            raise UsageError(f"samples={samples!r}, tokens={tokens!r}: they can't be negative.")
        self._sample += samples
        self._sample_in_epoch += samples
        self._token += tokens
        self._token_in_epoch += tokens

    def end_epoch(self) -> bool:
        """Count an epoch, unless no batch was counted since the last one; return whether it was counted."""
        if not self.batch_in_epoch:
            return False
        self._progress = None
        self.epoch += 1
        self._epoch_batch, self._epoch_here, self._epoch_origin_ns = self.batch, self.here, self.last_ns
        self._sample_in_epoch = self._token_in_epoch = 0
        return True
