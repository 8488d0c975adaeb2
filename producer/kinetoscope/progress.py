"""How far a training has come: what file names, schedules, scalars and metadata count by.

This module imports nothing but the standard library.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from .errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What is complete at one moment. The fields have the names of Composer's format variables.

    Args:
        epoch: Completed epochs.
        batch: Completed batches, over all epochs: the number of the batch that comes next.
        batch_in_epoch: Completed batches of the epoch that is under way.
        sample: Completed samples, as far as the program counts them.
        sample_in_epoch: Samples of the epoch that is under way.
        token: Completed tokens, as far as the program counts them.
        token_in_epoch: Tokens of the epoch that is under way.
        total_wct: Seconds that all completed batches took, from the end of one to the end of the next.
        epoch_wct: Seconds that the batches of the epoch that is under way took.
        batch_wct: Seconds that the last completed batch took.

    Raises:
        UsageError: A negative number, or an epoch that has more of something than the whole.
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
            raise UsageError(f"{negative[0]}={getattr(self, negative[0])!r}: nothing completes less than zero of it.")
        for unit in ("batch", "sample", "token"):
            whole, part = getattr(self, unit), getattr(self, f"{unit}_in_epoch")
            if part > whole:
                raise UsageError(f"{unit}_in_epoch={part} is more than {unit}={whole}, which counts over all epochs.")

    def to_json(self) -> dict[str, Any]:
        """Return the format variables by name."""
        return asdict(self)


class ProgressCounter:
    """Counts a training's progress.

    Args:
        start: What was complete before: where a resumed training goes on.
        clock_ns: Where the time comes from.
    """

    def __init__(self, start: Progress | None = None, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._progress = self._start = start or Progress()
        self._clock_ns = clock_ns
        self._total_ns, self._epoch_ns = (round(s * 1e9) for s in (self._progress.total_wct, self._progress.epoch_wct))
        self._last_ns = clock_ns()

    @property
    def progress(self) -> Progress:
        """What is complete now."""
        return self._progress

    @property
    def start(self) -> Progress:
        """What was complete before anything was counted here."""
        return self._start

    def begin(self) -> None:
        """Let the first batch begin now."""
        self._last_ns = self._clock_ns()

    def end_batch(self, samples: int | None = None, tokens: int | None = None) -> None:
        """Count a batch, which begins where the last one ended.

        Args:
            samples: How many samples it held; None adds nothing.
            tokens: How many tokens it held; None adds nothing.
        """
        now_ns, was = self._clock_ns(), self._progress
        batch_ns, self._last_ns = now_ns - self._last_ns, now_ns
        self._total_ns += batch_ns
        self._epoch_ns += batch_ns
        samples, tokens = samples or 0, tokens or 0
        self._progress = Progress(
            epoch=was.epoch,
            batch=was.batch + 1,
            batch_in_epoch=was.batch_in_epoch + 1,
            sample=was.sample + samples,
            sample_in_epoch=was.sample_in_epoch + samples,
            token=was.token + tokens,
            token_in_epoch=was.token_in_epoch + tokens,
            total_wct=self._total_ns / 1e9,
            epoch_wct=self._epoch_ns / 1e9,
            batch_wct=batch_ns / 1e9,
        )

    def end_epoch(self) -> bool:
        """Count an epoch; return whether there was one: without a batch since the last one there was none."""
        if not self._progress.batch_in_epoch:
            return False
        self._epoch_ns = 0
        self._progress = replace(
            self._progress,
            epoch=self._progress.epoch + 1,
            batch_in_epoch=0,
            sample_in_epoch=0,
            token_in_epoch=0,
            epoch_wct=0.0,
        )
        return True
