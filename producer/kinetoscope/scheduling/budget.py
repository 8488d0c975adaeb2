"""How much recording may cost: a share of a training's time, and bytes a day.

This module imports nothing but the standard library: the decision what to record is the same in a simulation.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..byte_sizes import bytes_in, size_text
from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection

DEFAULT_SHARE = 0.005
DAY_S = 86_400.0

_MARGIN = 0.2
"""The part of the share that windows which cost more than expected may use."""
_GROWTH = 1.25
"""The next window is expected to cost so much more than the most expensive of the last ones; still more after few."""
_REMEMBERED = 8
_START_S, _START_BYTES, _BYTES_PER_S = 2.0, 4 << 20, 20 << 20
"""What the first window is expected to cost besides its steps, whose time it may double, and its trace's size: that of
three operators per 10 µs."""


@dataclass(frozen=True)
class Budget:
    """What recording may cost.

    Args:
        share: The share of the training's time that recording may take.
        bytes_per_day: How many bytes the traces of all ranks may have in any 24 hours; None for any number.
    """

    share: float = DEFAULT_SHARE
    bytes_per_day: int | None = None

    def __str__(self) -> str:
        """Return it as `budget_from` reads it."""
        size = "" if self.bytes_per_day is None else f", {size_text(self.bytes_per_day)}/day"
        return f"{self.share * 100:g}%{size}"


def budget_from(text: str) -> Budget:
    """Parse a budget: `0.5%`, `2 GB/day`, or both with a comma between.

    Raises:
        UsageError: It is nothing of this.
    """
    share, size = DEFAULT_SHARE, None
    parts = [part.strip() for part in str(text).split(",")]
    try:
        for part in parts:
            amount, _, period = part.partition("/")
            if part.endswith("%"):
                share = float(part[:-1]) / 100
            elif period.strip().lower() == "day":
                size = bytes_in(amount)
            else:
                raise ValueError(part)
        is_valid = 0 < share < 1 and size != 0 and len({part.endswith("%") for part in parts}) == len(parts)
    except ValueError:  # also a UsageError
        is_valid = False
    if not is_valid:
        advice = "write a share of the training's time, bytes a day, or both: '0.5%, 2 GB/day'."
        raise UsageError(f"budget={text!r}: {advice}")
    return Budget(share, size)


class Ledger:
    """What one process's windows have cost so far.

    Args:
        budget: What they may cost.
    """

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.ranks = 1
        """How many ranks share the bytes."""
        self.elapsed_s = 0.0
        """How long the training has run."""
        self.lost_s = 0.0
        """How much of that recording took."""
        self.open_s = 0.0
        """How much of that is of a window that hasn't ended."""
        self._costs_s: deque[float] = deque(maxlen=_REMEMBERED)
        self._sizes: deque[tuple[float, int]] = deque()
        self._unknown_sizes: deque[float] = deque()

    def charge(self, lost_s: float) -> None:
        """Add time that a window took from the training."""
        self.lost_s += lost_s
        self.open_s += lost_s

    def end_window(self) -> None:
        """The window's costs are complete, but for the size of its trace."""
        self._costs_s.append(self.open_s)
        self._unknown_sizes.append(self.elapsed_s)
        self.open_s = 0.0

    def add_bytes(self, size: int, age_s: float | None = None) -> None:
        """Add the size of a trace: of the oldest window whose size is unknown, or of an earlier attempt of that age."""
        if age_s is None:
            ended_s = self._unknown_sizes.popleft() if self._unknown_sizes else self.elapsed_s
            self._sizes.append((ended_s, size))
        else:
            self._sizes.appendleft((self.elapsed_s - age_s, size))

    def affords(self, window_s: float, windows: int = 1) -> bool:
        """Whether the budget allows so many more windows.

        Args:
            window_s: How long the steps of one take without the profiler.
            windows: How many.
        """
        spendable_s = (1 - _MARGIN) * self.budget.share * self.elapsed_s
        if self.lost_s + windows * self.expected_s(window_s) > spendable_s:
            return False
        limit = self.budget.bytes_per_day
        return limit is None or self._affords_bytes(window_s, limit / self.ranks)

    def expected_s(self, window_s: float) -> float:
        """How much time a window is expected to take from the training."""
        costs_s = self._costs_s
        return _cost_bound(costs_s) if costs_s else _START_S + window_s

    def first_after_s(self, window_s: float) -> float:
        """After how many seconds the budget allows the first window."""
        return self.expected_s(window_s) / ((1 - _MARGIN) * self.budget.share)

    def _affords_bytes(self, window_s: float, limit: float) -> bool:
        sizes = [size for ended_s, size in self._sizes if ended_s > self.elapsed_s - DAY_S]
        newest = [size for _, size in self._sizes][-_REMEMBERED:]
        bound = _cost_bound(newest) if newest else min(_START_BYTES + _BYTES_PER_S * window_s, limit / 2)
        return sum(sizes) + (len(self._unknown_sizes) + 1) * bound <= limit


def _cost_bound(costs: Collection[float]) -> float:
    return (_GROWTH + 1 / len(costs)) * max(costs)
