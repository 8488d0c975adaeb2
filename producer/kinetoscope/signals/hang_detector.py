"""Detects steps that hang: that last far longer than usual.

A step with a checkpoint or an evaluation does that too, so what it means is for the reader of the reports.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_AFTER_S = 30.0
_TIMES_USUAL = 10
_TIMES_IN_FIRST_STEP = 4  # it may compile and load anything
_WATCH_AFTER_S = 1.0


@dataclass(frozen=True)
class Excess:
    """A step that lasts longer than its limit.

    Args:
        limit_s: The limit.
        previous_check_s: How long the step had lasted when it was within the limit for the last time; 0 if that was
            before the step.
    """

    limit_s: float
    previous_check_s: float


class HangReports(Protocol):
    """Knows where the training is."""

    def watch(self) -> None:
        """Compare where the training is with where it was at the last call."""

    def write(self, reason: str, excess: Excess | None = None) -> None:
        """Write where the training is.

        Args:
            reason: `step`, or the signal to which the process doesn't react.
            excess: How the step exceeds its limit; None for a signal.

        Raises:
            OSError: The run's folder doesn't allow it.
        """


class HangDetector:
    """Reports a step that lasts longer than the limit, and again whenever it has lasted twice as long.

    Args:
        reports: Writes the reports.
        current_step: Returns which step began last, and when on the clock.
        usual_ns: Returns the usual duration of a step; None in the first one.
        clock_ns: A clock.
    """

    def __init__(
        self,
        reports: HangReports,
        current_step: Callable[[], tuple[int, int]],
        usual_ns: Callable[[], int | None],
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._reports, self._current_step, self._usual_ns, self._clock_ns = reports, current_step, usual_ns, clock_ns
        self._after_s: float | None = DEFAULT_AFTER_S
        self._step: int | None = None
        self._times_limit = 1
        self._previous_check_s = 0.0

    def set_limit(self, after_s: float | None) -> None:
        """Report steps that last longer, and longer than ten usual steps; the first one has four times as long.

        Args:
            after_s: In seconds; None for no reports, also of signals.

        Raises:
            UsageError: Not a positive number.
        """
        if after_s is not None and after_s <= 0:
            raise UsageError(
                f"hang_after_s={after_s!r}: how many seconds a step may take, such as {DEFAULT_AFTER_S:.0f}."
            )
        self._after_s = after_s

    @property
    def is_on(self) -> bool:
        """Whether anything is reported."""
        return self._after_s is not None

    @property
    def has_reported_step(self) -> bool:
        """Whether the current step was reported."""
        return self._times_limit > 1 and self._step == self._current_step()[0]

    def check(self) -> None:
        """Watch a step that lasts for a second, and report it if it lasts too long.

        Raises:
            OSError: The run's folder doesn't allow it.
        """
        step, start_ns = self._current_step()
        elapsed_s = (self._clock_ns() - start_ns) / 1e9
        if self._after_s is None or elapsed_s < _WATCH_AFTER_S:
            return
        if step != self._step:
            self._step, self._times_limit, self._previous_check_s = step, 1, 0.0
        self._reports.watch()
        limit_s = self._times_limit * self._limit_s(self._after_s)
        if elapsed_s > limit_s:
            self._times_limit *= 2
            self._reports.write("step", Excess(limit_s, self._previous_check_s))
        self._previous_check_s = elapsed_s

    def report_signal(self, signal: str) -> None:
        """Report where the training is when the process doesn't react to a signal.

        Raises:
            OSError: The run's folder doesn't allow it.
        """
        if self.is_on:
            self._reports.watch()
            self._reports.write(signal)

    def _limit_s(self, after_s: float) -> float:
        usual_ns = self._usual_ns()
        if usual_ns is None:
            return _TIMES_IN_FIRST_STEP * after_s
        return max(after_s, _TIMES_USUAL * usual_ns / 1e9)
