"""Pairs of sides made of real steps: what a gate says where nothing changed, and where something did, is known of them.

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


def bootstrap(steps: Floats, generator: np.random.Generator) -> float:
    """The mean of as many steps, drawn in blocks of neighbors from a circle of them."""
    starts = generator.integers(steps.size, size=-(-steps.size // BLOCK))
    return float(steps[(starts[:, None] + np.arange(BLOCK)) % steps.size].ravel()[: steps.size].mean())


def pair(
    steps: Floats, spread: float, growth: float, n: int, generator: np.random.Generator, *, has_tails: bool = False
) -> Sample:
    """Two sides of `n` recordings each; with the spread between them if `spread` is above 0.

    The variation of the steps is shrunk where it alone would exceed the spread, so that the spread is what it says.
    """
    own = np.array([bootstrap(steps, generator) for _ in range(32)])
    own_spread = float(np.log(own).std(ddof=1))
    if spread and own_spread > spread / 2:
        steps = steps.mean() * (steps / steps.mean()) ** (spread / 2 / own_spread)
        own_spread = spread / 2
    factor_spread = np.sqrt(max(0.0, spread**2 - own_spread**2))
    factors = generator.standard_t(3, 2 * n) / np.sqrt(3) if has_tails else generator.standard_normal(2 * n)
    values = np.array([bootstrap(steps, generator) for _ in range(2 * n)]) * np.exp(factor_spread * factors)
    return Sample("step", values[:n], values[n:] * (1 + growth))


def outcomes(samples: Iterator[Sample], question: Question) -> Counter[str]:
    """How often each answer was given."""
    return Counter(decide([sample], question)[0].outcome for sample in samples)
