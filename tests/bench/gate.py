"""The gate's rates, measured: alarms where nothing changed, losses found, and recordings too few to tell."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from bounds import line

sys.path.insert(0, str(Path(__file__).parents[1]))

from kinetoscope_tb.compare.gate.decision import OF_ALARM, Question, Sample
from support.real_traces import CASES, FOLDER
from support.resampled import outcomes, pair, real_steps, recorded_sets

ROOT = Path(__file__).parents[2]
PAIRS, QUICK_PAIRS = 10_000, 500
FEW = 8  # recordings a side; of more, whose tests take longer, a tenth of the pairs
SETS = "KINETOSCOPE_GATE_SETS"  # a file of recorded sets, as `support.resampled.recorded_sets` reads it


def report_gate(*, is_quick: bool = False) -> None:
    """Print the rates over resampled pairs, and over recorded sets if a file of them is named."""
    pairs = QUICK_PAIRS if is_quick else PAIRS
    recordings = real_steps([ROOT / "samples", CASES, *([] if is_quick else [FOLDER])])
    print(
        f"gate: {pairs:,} pairs a line, {pairs // 10:,} of many recordings, resampled from {len(recordings)} real recordings"
    )
    question = Question()

    generator = np.random.default_rng(11)

    def rates(spread: float, growth: float, n: int, *, has_tails: bool = False) -> dict[str, float]:
        choices = generator.integers(len(recordings), size=pairs if n <= FEW else pairs // 10)
        samples = (pair(recordings[at], spread, growth, n, generator, has_tails=has_tails) for at in choices)
        return {answer: 100 * count / choices.size for answer, count in outcomes(samples, question).items()}

    alarms = []
    for spread, has_tails in ((0.0, False), (0.01, False), (0.01, True), (0.02, False), (0.05, False), (0.3, True)):
        tails = ", heavy tails" if has_tails else ""
        alarms.append(rates(spread, 0.0, 6, has_tails=has_tails).get("regression", 0.0))
        print(line(f"alarms, spread {100 * spread:g} %{tails}", alarms[-1:], _most_percent(pairs), "%"))
    print(line("alarms, all of these", [float(np.mean(alarms))], 1, "%"))
    for spread, growth, n in ((0.01, 0.03, 6), (0.02, 0.03, 17), (0.05, 0.1, 12)):
        found = rates(spread, growth, n).get("regression", 0.0)
        print(line(f"{100 * growth:g} % at {100 * spread:g} %, {n} a side", [found], 95, "%", at_least=True))
    for n in (1, 2, 3, 4):
        unknown = rates(0.01, 0.5, n).get("cannot tell", 0.0)
        print(line(f"{n} a side: cannot tell", [unknown], 100, "%", at_least=True))
    print(line("6 a side at 5 %: no regression", [rates(0.05, 0.0, 6).get("no regression", 0.0)], 0.001, "%"))
    if os.environ.get(SETS):
        report_sets(Path(os.environ[SETS]), question)


def _most_percent(pairs: int) -> float:
    """What a true rate of 1 % measures at most, by three standard errors, among so many pairs."""
    return 1 + 300 * float(np.sqrt(0.01 * 0.99 / pairs))


def report_sets(path: Path, question: Question) -> None:
    """Print how often recorded sets in which nothing changed alarm: as recorded, and parted in every other way."""
    sets = recorded_sets(path)
    for kind in sorted({name.rstrip("0123456789") for name in sets}):
        sides = [both for name, both in sets.items() if name.startswith(kind)]
        own = outcomes((Sample("step", *both) for both in sides), question)
        alarms = outcomes((sample for both in sides for sample in _every_way(*both)), question)
        print(f"  {kind}: {len(sides)} sets as recorded: {dict(own)}")
        print(line(f"{kind}: alarms, parted every way", [100 * alarms["regression"] / alarms.total()], 1, "%"))
    print(f"  a loss below {100 * OF_ALARM * question.find:g} % is no alarm")


def _every_way(base: np.ndarray, new: np.ndarray) -> Iterator[Sample]:
    """All ways to part the recordings of a set into two sides."""
    values = np.concatenate([base, new])
    for members in combinations(range(values.size), base.size):
        is_base = np.isin(np.arange(values.size), members)
        yield Sample("step", values[is_base], values[~is_base])
