"""The runs of a history that may be compared with the newest one, and the levels between the changes of their steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .change_points import FEWEST_RUNS, Floats, confirmed_changes, smallest_change, spread
from .recorded_run import Parts, RecordedRun

_OF_ONE_JOB = {"program": "program", "devices": "device", "ranks": "number of ranks", "phases": "phase of a server"}


@dataclass(frozen=True)
class Level:
    """Runs between two changes.

    Args:
        first: Index of the first of them among all runs of the history.
        runs: The runs.
    """

    first: int
    runs: tuple[RecordedRun, ...]

    @cached_property
    def parts(self) -> Parts:
        """The parts of the average step, as sums over the runs: divided by their number they are means."""
        names = dict.fromkeys(name for run in self.runs for name in run.parts)
        return {name: sum(run.parts.get(name, 0) for run in self.runs) for name in names}

    @cached_property
    def step_ns(self) -> float:
        """The mean of the average steps."""
        return sum(self.parts.values()) / len(self.runs)


@dataclass(frozen=True)
class Series:
    """The comparable runs of a history.

    Args:
        runs: All runs, in order of time.
        reasons: For each of them why it isn't compared; empty if it is.
    """

    runs: tuple[RecordedRun, ...]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, runs: Sequence[RecordedRun], name: str = "") -> Series:
        """The series that the run of this name belongs to, else the newest measured one.

        Args:
            runs: All runs, in order of time.
            name: Of one of them.
        """
        with_steps = [run for run in runs if not _why_unmeasured(run)]
        model = next((run for run in with_steps if run.name == name), with_steps[-1] if with_steps else None)
        reasons = [_why_unmeasured(run) or (_difference(run, model) if model else "") for run in runs]
        return cls(tuple(runs), tuple(reasons))

    @cached_property
    def indices(self) -> list[int]:
        """Those of the comparable runs among all."""
        return [index for index, reason in enumerate(self.reasons) if not reason]

    @cached_property
    def is_long_enough(self) -> bool:
        """Whether a change could be seen."""
        return len(self.indices) >= FEWEST_RUNS

    @cached_property
    def levels(self) -> list[Level]:
        """The levels in order; one if nothing changed, none without comparable runs."""
        if not self.indices:
            return []
        ends = [*self._firsts, len(self.indices)]
        parts = [self.indices[start:end] for start, end in zip([0, *self._firsts], ends, strict=True)]
        return [Level(part[0], tuple(self.runs[index] for index in part)) for part in parts]

    @cached_property
    def spread_frac(self) -> float:
        """The standard deviation of the runs around their levels, as a share of the step; NaN of too few."""
        return spread(self._logarithms, self._firsts) if self.indices else float("nan")

    @cached_property
    def finds_frac(self) -> float:
        """The change that the next few runs would show in most cases; NaN if there are too few runs before."""
        return smallest_change(self.spread_frac, len(self.levels[-1].runs)) if self.levels else float("nan")

    @cached_property
    def _logarithms(self) -> Floats:
        return np.log([float(self.runs[index].step_ns) for index in self.indices])

    @cached_property
    def _firsts(self) -> list[int]:
        return confirmed_changes(self._logarithms)


def _why_unmeasured(run: RecordedRun) -> str:
    if not run.summaries:
        return "no summary"
    if not run.marks_steps:
        return "marks no steps"
    return "" if run.step_ns > 0 else "no complete step"


def _difference(run: RecordedRun, model: RecordedRun) -> str:
    """Why a run isn't of the same job as another one; empty if nothing known speaks against it."""
    if run.uses_device != model.uses_device:
        return f"{'with' if run.uses_device else 'without'} device work"
    for name, words in _OF_ONE_JOB.items():
        own, other = getattr(run.environment, name), getattr(model.environment, name)
        if own and other and own != other:
            return f"other {words}: {own}"
    return ""
