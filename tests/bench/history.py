"""The rates of `kinetoscope history`, measured: false points where nothing changed, and shifts that are seen."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from bounds import line

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.real_traces import CASES, FOLDER
from support.resampled import false_points, is_shift_seen, real_steps, runs

ROOT = Path(__file__).parents[2]
HISTORIES, QUICK_HISTORIES = 1000, 50
LENGTH, SPREAD, GROWTH, WITHIN = 200, 0.01, 0.03, 4


def report_history(*, is_quick: bool = False) -> None:
    """Print the rates over resampled histories."""
    count = QUICK_HISTORIES if is_quick else HISTORIES
    recordings = real_steps([ROOT / "samples", CASES, *([] if is_quick else [FOLDER])])
    print(f"history: {count:,} histories a line, resampled from {len(recordings)} real recordings")
    generator = np.random.default_rng(13)

    def histories(spread: float, length: int, *, has_tails: bool) -> list[np.ndarray]:
        choices = generator.integers(len(recordings), size=count)
        return [runs(recordings[at], spread, length, generator, has_tails=has_tails) for at in choices]

    most = 1 + 3 * float(np.sqrt(1000 / (count * LENGTH)))  # by three standard errors
    for spread, has_tails in ((SPREAD, False), (SPREAD, True), (0.05, False), (0.0, False)):
        points, alarms = false_points(histories(spread, LENGTH, has_tails=has_tails))
        name = f"spread {100 * spread:g} %{', heavy tails' if has_tails else ''}"
        runs_of_all = count * LENGTH
        print(line(f"false points in 1,000 runs, {name}", [1000 * points / runs_of_all], most, ""))
        print(line("  run by run", [1000 * alarms / runs_of_all], None, ""))
    for at in (20, 40, 60, 100):
        for has_tails in (False, True):
            rows = histories(SPREAD, at + WITHIN, has_tails=has_tails)
            seen = 100 * sum(is_shift_seen(values, GROWTH, at) for values in rows) / count
            name = f"3 % after {at} runs{', heavy tails' if has_tails else ''}"
            print(line(name, [seen], 95 if at >= 40 else None, "%", at_least=True))
