"""Chooses which steps of a training are worth recording, within a budget.

Four things are worth a window: the first steady steps, steps that have become slower, inputs of a new size, and steps
after torch.compile compiled again. What a window costs is learned from the windows before it. This module imports
nothing but the standard library.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .budget import Budget, Ledger
from .step_times import StepTimes

if TYPE_CHECKING:
    from collections.abc import Callable

    from .step_times import Change

FIRST_STEPS, SLOW_DOWN, NEW_SIZES, RECOMPILATION = "first_steps", "slow_down", "new_sizes", "recompilation"

WARMUP = 1
_PATIENCE_STEPS, _PATIENCE_S = 1_000, 60.0
"""After so many steps, and so long, a window that was requested doesn't come any more."""
_COOLDOWN_S = 600.0
_AGAIN_S = 0.5
"""How often to ask whether the budget allows a window."""
_ONSETS = 32
_SAME_STEPS = 2


@dataclass(frozen=True)
class Choice:
    """A window that is worth recording.

    Args:
        reason: Why, as one word: `first_steps`, `slow_down`, `new_sizes` or `recompilation`.
        why: Why, as a sentence without its period.
        steps: How many steps to record.
    """

    reason: str
    why: str
    steps: int


class WindowChooser:
    """Chooses the windows of one process. It is called by the training's thread at each step.

    Args:
        budget: What recording may cost.
        completed_steps: Returns how many steps are complete.
    """

    def __init__(self, budget: Budget, completed_steps: Callable[[], int]) -> None:
        self.ledger = Ledger(budget)
        """What the windows have cost."""
        self.is_ready = True
        """Whether what earlier attempts wrote is known."""
        self._completed_steps = completed_steps
        self._times = StepTimes()
        self._pending: Choice | None = None
        self._requested_s: float | None = None
        self._requested_steps = 0
        self._due_s = 0.0
        self._later = 0
        self._onsets: deque[int] = deque(maxlen=_ONSETS)
        self._last_s: dict[str, float] = {}

    @property
    def is_steady(self) -> bool:
        """Whether the usual time of a step is known."""
        return self._times.usual_ns is not None

    # Each step

    def add_step(self, dur_ns: int, later: int = 0) -> Choice | None:
        """Add the time of a step without a profiler; return a window to record from the next step on.

        Args:
            dur_ns: The time.
            later: How many more steps have ended since.
        """
        ledger, self._later = self.ledger, later
        ledger.elapsed_s += dur_ns * 1e-9
        if ledger.open_s:
            self._end_window(dur_ns)
        change = self._times.add(dur_ns)
        if change is not None:
            self._take(change)
            self._due_s = 0.0
        if self._pending is None or ledger.elapsed_s < self._due_s:
            return None
        return self._affordable_choice(self._pending)

    def add_profiled_step(self, dur_ns: int) -> None:
        """Add the time of a step with a profiler."""
        self.ledger.elapsed_s += dur_ns * 1e-9
        self._charge_excess(dur_ns)

    def add_stop(self, dur_ns: int) -> None:
        """Add how long the training stood still between two steps, since the profiler started or ended."""
        self.ledger.elapsed_s += dur_ns * 1e-9
        self.ledger.charge(dur_ns * 1e-9)

    def _charge_excess(self, dur_ns: int) -> None:
        usual_ns = self._times.usual_ns
        if usual_ns is not None and dur_ns > usual_ns:
            self.ledger.charge((dur_ns - usual_ns) * 1e-9)

    def _end_window(self, dur_ns: int) -> None:
        """The window ended before this step, in which its events may still be freed, or other ranks be waited for."""
        self._charge_excess(dur_ns)
        self.ledger.end_window()
        self._times.rebase()
        self._requested_s = None

    # Why

    def note_sizes(self, sizes: str, step: int) -> None:
        """Inputs have sizes since a step that they didn't have before."""
        self._want(NEW_SIZES, f"the inputs have new sizes since step {step}: {sizes}")

    def note_compilation(self) -> None:
        """torch.compile has compiled again."""
        self._want(RECOMPILATION, f"torch.compile compiled again before step {self._completed_steps()}")

    def _want(self, reason: str, why: str) -> None:
        """Want a window, unless there was one for the same reason in the last minutes, or another one is pending."""
        now_s = self.ledger.elapsed_s
        if self.is_steady and self._pending is None and now_s - self._last_s.get(reason, -_COOLDOWN_S) >= _COOLDOWN_S:
            self._last_s[reason] = now_s
            self._pending = Choice(reason, why, self._steps())

    def _take(self, change: Change) -> None:
        step = self._completed_steps() - self._later
        if change.kind == "faster":
            if self._pending is not None and self._pending.reason == SLOW_DOWN:
                self._pending = None  # it is over
        elif change.kind == "steady":
            why = f"the first steady steps, of {duration(change.after_ns)}"
            self._pending = Choice(FIRST_STEPS, why, self._steps())
        elif change.kind == "crept" or not self._is_routine(step - change.steps):
            self._pending = Choice(SLOW_DOWN, _why(change, step - change.steps), self._steps())

    def _is_routine(self, onset: int) -> bool:
        """Whether steps become slower after the same number of steps again and again, as in an evaluation."""
        onsets, is_routine = [*self._onsets], False
        for earlier in onsets:
            period = onset - earlier
            before = (onset - 2 * period, onset - 3 * period)
            is_routine |= all(any(abs(step - other) <= _SAME_STEPS for other in onsets) for step in before)
        self._onsets.append(onset)
        return is_routine

    def _affordable_choice(self, choice: Choice) -> Choice | None:
        """Return the window if the budget allows it, and no other one is requested."""
        ledger = self.ledger
        if self._requested_s is not None:
            self._requested_steps += 1
            is_over = ledger.elapsed_s - self._requested_s > _PATIENCE_S and self._requested_steps > _PATIENCE_STEPS
            if not is_over:
                return None
        # Something else leaves enough for a slow-down.
        windows = 2 if choice.reason in (NEW_SIZES, RECOMPILATION) else 1
        if not self.is_ready or not ledger.affords(self._window_s(), windows):
            self._due_s = ledger.elapsed_s + _AGAIN_S
            return None
        self._pending, self._requested_s, self._requested_steps = None, ledger.elapsed_s, 0
        return choice

    def _steps(self) -> int:
        """How many steps to record: of long steps, fewer."""
        usual_s = (self._times.usual_ns or 0) * 1e-9
        return 3 if usual_s < 2 else 2 if usual_s < 20 else 1

    def _window_s(self) -> float:
        return (WARMUP + self._steps()) * (self._times.usual_ns or 0) * 1e-9

    def no_window_reason(self) -> str:
        """Return why there was no window."""
        budget = f"a budget of {self.ledger.budget}"
        if not self.is_steady:
            return f"0 windows: {budget} records from the first steady steps on, and there were none"
        first_s, elapsed_s = self.ledger.first_after_s(self._window_s()), self.ledger.elapsed_s
        return f"0 windows: {budget} allows the first one after {first_s:.0f} s, the training took {elapsed_s:.0f} s"


def _why(change: Change, onset: int) -> str:
    more = f"{100 * (change.after_ns / change.before_ns - 1):.0f} %"
    times = f"{duration(change.after_ns)} instead of {duration(change.before_ns)}"
    since = "have slowly become" if change.kind == "crept" else f"are, since step {onset},"
    return f"steps {since} {more} slower: {times}"


def duration(dur_ns: int) -> str:
    """Return a duration as a text."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if dur_ns >= size:
            return f"{dur_ns / size:.3g} {unit}"
    return f"{dur_ns / 1e3:.3g} µs"
