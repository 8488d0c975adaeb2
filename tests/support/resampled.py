"""Recordings made of real steps: whether something changed is known of them, for the gate and for histories.

A recording is a block bootstrap of the steps of a real one, in blocks of neighbors, so that steps stay correlated; times
a factor of its own, which stands for what differs between processes. The factors of both sides have one distribution.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kinetoscope_tb.compare.gate.decision import Question, Sample, decide
from kinetoscope_tb.compare.headline import lengths
from kinetoscope_tb.errors import TraceError
from kinetoscope_tb.history.change_points import changes, confirmed_changes
from kinetoscope_tb.measures.time.step_subset import has_steps
from kinetoscope_tb.reader import read

Floats = NDArray[np.float64]

FEWEST_STEPS, BLOCK = 4, 3
_MOST_BYTES = 4_000_000  # of a file: enough recordings are smaller


def real_steps(folders: Sequence[Path]) -> list[Floats]:
    """The step lengths of every small recording below the folders that has enough of them."""
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.json*")):
        if path.stat().st_size > _MOST_BYTES:
            continue
        try:
            trace = read(path)
        except TraceError:
            continue
        if has_steps(trace) and len(steps := lengths(trace)) >= FEWEST_STEPS:
            found.append(steps)
    return found


def recorded_sets(path: Path) -> dict[str, tuple[Floats, Floats]]:
    """Mean steps of both sides of each set: `{"quiet00-a0": [step lengths], …}`, the sides a and b by turns."""
    sides: dict[str, dict[str, list[float]]] = {}
    for name, steps in sorted(json.loads(path.read_text()).items()):
        of_set, turn = name.split("-")
        sides.setdefault(of_set, {}).setdefault(turn[0], []).append(float(np.mean(steps)))
    return {name: (np.array(both["a"]), np.array(both["b"])) for name, both in sides.items()}


def bootstraps(steps: Floats, size: int, generator: np.random.Generator) -> Floats:
    """So many means of as many steps, drawn in blocks of neighbors from a circle of them."""
    starts = generator.integers(steps.size, size=(size, -(-steps.size // BLOCK)))
    drawn = steps[(starts[:, :, None] + np.arange(BLOCK)) % steps.size]
    return drawn.reshape(size, -1)[:, : steps.size].mean(axis=1)


def runs(steps: Floats, spread: float, size: int, generator: np.random.Generator, *, has_tails: bool = False) -> Floats:
    """The mean steps of so many recordings in which nothing changed; with the spread between them if that is above 0.

    The variation of the steps is shrunk where it alone would exceed the spread, so that the spread is what it says.
    """
    own_spread = float(np.log(bootstraps(steps, 32, generator)).std(ddof=1))
    if spread and own_spread > spread / 2:
        steps = steps.mean() * (steps / steps.mean()) ** (spread / 2 / own_spread)
        own_spread = spread / 2
    factor_spread = np.sqrt(max(0.0, spread**2 - own_spread**2))
    factors = generator.standard_t(3, size) / np.sqrt(3) if has_tails else generator.standard_normal(size)
    return bootstraps(steps, size, generator) * np.exp(factor_spread * factors)


def pair(
    steps: Floats, spread: float, growth: float, n: int, generator: np.random.Generator, *, has_tails: bool = False
) -> Sample:
    """Two sides of `n` recordings each, of which the second one takes longer by `growth`."""
    values = runs(steps, spread, 2 * n, generator, has_tails=has_tails)
    return Sample("step", values[:n], values[n:] * (1 + growth))


def false_points(histories: Sequence[Floats]) -> tuple[int, int]:
    """How many changes are reported of histories in which nothing changed, at the end and run by run."""
    points = alarms = 0
    for values in np.log(histories):
        firsts = changes(values)
        points, alarms = points + len(confirmed_changes(values, firsts)), alarms + len(firsts)
    return points, alarms


def is_shift_seen(values: Floats, growth: float, at: int) -> bool:
    """Whether a history that takes longer from a run on has a change there, to within two runs."""
    shifted = np.concatenate([values[:at], values[at:] * (1 + growth)])
    return any(abs(first - at) <= 2 for first in confirmed_changes(np.log(shifted)))


def outcomes(samples: Iterator[Sample], question: Question) -> Counter[str]:
    """How often each answer was given."""
    return Counter(decide([sample], question)[0].outcome for sample in samples)
