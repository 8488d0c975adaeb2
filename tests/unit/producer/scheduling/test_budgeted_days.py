"""24 days of step times, with slow-downs that are known: what a budget records of them, and what that costs.

Days differ in their steps' length, noise (also with heavy tails, and correlated), drift, checkpoints, evaluations (in one
step, or as steps of their own), loaders that stall, and restarts.
"""

import random
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest

from kinetoscope.scheduling.budget import DAY_S, budget_from
from kinetoscope.scheduling.window_chooser import FIRST_STEPS, SLOW_DOWN, WARMUP, WindowChooser

BUDGET = budget_from("0.5%, 300 MB/day")
WITHIN = 20
UNAFFORDABLE_S, UNAFFORDABLE_STEPS = 2400, 1000
"""After a start, or a slow-down, no other one is planted so long: the budget may not allow another window yet."""


@dataclass
class Day:
    """One day of one job.

    Args:
        step_s: The usual time of a step.
        noise: Standard deviation of its logarithm.
        correlation: Of a step's noise with that of the next one.
        tail: The share of steps that a loader delays, by up to twice their time.
        drift: By how much steps become slower and faster again over the day.
        saves_every: Steps between two checkpoints, each of 20 s and followed by three slow steps.
        evaluates_every: Steps between two evaluations.
        evaluation: Their steps, and how long these take in usual steps; without any, one step takes a minute more.
        starts: How often the job starts.
        slow_downs: How many there are.
    """

    step_s: float
    noise: float = 0.02
    correlation: float = 0.0
    tail: float = 0.0
    drift: float = 0.0
    saves_every: int = 0
    evaluates_every: int = 0
    evaluation: tuple[int, float] = (0, 1.0)
    starts: int = 1
    slow_downs: int = 4


DAYS = [
    Day(0.1, noise=0.01, saves_every=5000),
    Day(0.1, noise=0.03, tail=0.01, drift=0.04),
    Day(0.15, noise=0.02, correlation=0.4, saves_every=2000, starts=2),
    Day(0.2, noise=0.04, evaluates_every=5000),
    Day(0.2, noise=0.005, tail=0.03, saves_every=1000, starts=3),
    Day(0.25, noise=0.03, evaluates_every=4000, evaluation=(50, 0.4)),
    Day(0.3, noise=0.02, evaluates_every=5000, evaluation=(60, 1.6)),
    Day(0.3, noise=0.02, drift=0.06, correlation=0.3),
    Day(0.4, noise=0.03, tail=0.02, saves_every=700, evaluates_every=3000),
    Day(0.4, noise=0.01, drift=0.03, starts=4),
    Day(0.5, noise=0.04),
    Day(0.5, noise=0.02, tail=0.05, saves_every=500),
    Day(0.5, noise=0.03, correlation=0.5, drift=0.02),
    Day(0.6, noise=0.02, saves_every=300, starts=2, slow_downs=6),
    Day(0.7, noise=0.015, evaluates_every=2000, evaluation=(30, 0.5), saves_every=900),
    Day(0.8, noise=0.03, tail=0.01),
    Day(1.0, noise=0.02, drift=0.05, saves_every=400),
    Day(1.0, noise=0.04, starts=3),
    Day(1.2, noise=0.01, correlation=0.6, tail=0.02),
    Day(1.5, noise=0.03, evaluates_every=1500, slow_downs=6),
    Day(2.0, noise=0.02, saves_every=250),
    Day(2.5, noise=0.03, tail=0.03, drift=0.03),
    Day(4.0, noise=0.02, saves_every=100, starts=2),
    Day(8.0, noise=0.03, slow_downs=3),
]


@dataclass
class Outcome:
    """What was recorded on a day.

    Args:
        windows: Reason and step of each window.
        planted: First and last step of each slow-down.
        starts: The first step after each start.
        shares: What recording took of the time, after each window and at the end of each start.
        sizes: When each trace was written, and how large it is.
    """

    windows: list[tuple[str, int]] = field(default_factory=list)
    planted: list[tuple[int, int]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    sizes: list[tuple[float, int]] = field(default_factory=list)

    def found(self) -> int:
        """How many slow-downs have a window that begins within 20 steps."""
        steps = [step for reason, step in self.windows if reason == SLOW_DOWN]
        return sum(any(first <= step <= first + WITHIN for step in steps) for first, _ in self.planted)

    def needless(self) -> list[tuple[str, int]]:
        """The windows without a cause: no first steps, and in no slow-down."""
        return [
            (reason, step)
            for reason, step in self.windows
            if reason != FIRST_STEPS and not any(first <= step <= last for first, last in self.planted)
        ]


def times(day, chance, steps):
    """The times of a day's steps without slow-downs, in seconds."""
    noise = chance.standard_normal(steps)
    if day.correlation:
        for step in range(1, steps):
            noise[step] = day.correlation * noise[step - 1] + (1 - day.correlation**2) ** 0.5 * noise[step]
    logs = day.noise * noise + day.drift * np.sin(np.linspace(0, 2 * np.pi, steps))
    late = chance.random(steps) < day.tail
    values = day.step_s * np.exp(logs) * (1 + late * chance.uniform(0.3, 2, steps))
    if day.saves_every:
        saves = np.arange(day.saves_every, steps, day.saves_every)
        values[saves] += 20
        for after in (1, 2, 3):
            values[np.minimum(saves + after, steps - 1)] *= 1.3
    for begin in range(day.evaluates_every, steps, day.evaluates_every or steps):
        length, factor = day.evaluation
        if length:
            values[begin : begin + length] *= factor
        else:
            values[begin] += 60
    return values


def plant(day, chance, values, starts):
    """Slow some steps down; return the first and last step of each slow-down."""
    free, planted = int(UNAFFORDABLE_S / day.step_s) + UNAFFORDABLE_STEPS, []
    for _ in range(1000):
        first, length = int(chance.integers(0, len(values))), int(chance.integers(200, 2000))
        last = first + length
        taken = [*((start, start) for start in [*starts, len(values)]), *planted]
        if len(planted) < day.slow_downs and all(first > b + free or last < a - free // 4 for a, b in taken):
            values[first:last] *= chance.uniform(1.1, 1.2) if len(planted) % 2 else chance.uniform(1.2, 2.5)
            planted.append((first, last))
    return sorted(planted)


def live(day, seed):
    """Live through a day; return its outcome."""
    chance = np.random.default_rng(seed)
    values = times(day, chance, int(DAY_S / day.step_s))
    outcome = Outcome(starts=sorted(int(len(values) * n / day.starts) for n in range(day.starts)))
    outcome.planted = plant(day, chance, values, outcome.starts)
    durations = (values * 1e9).astype(np.int64).tolist()
    now_s = 0.0
    for begin, end in pairwise([*outcome.starts, len(values)]):
        now_s += train(durations, begin, end, now_s, outcome, random.Random(seed))
    return outcome


def train(durations, begin, end, now_s, outcome, chance):
    """Take the steps of one start; return how long they took with what recording cost."""
    step, true_lost_s = begin, 0.0
    chooser = WindowChooser(BUDGET, lambda: step)
    ledger = chooser.ledger
    for ended_s, size in outcome.sizes:
        ledger.add_bytes(size, age_s=now_s - ended_s)
    actions = iter(())
    while step < end:
        duration, is_profiled = durations[step], next(actions, False)
        step += 1
        if is_profiled:
            slower = int(duration * chance.uniform(1.05, 1.6))
            chooser.add_profiled_step(slower)
            true_lost_s += (slower - duration) / 1e9
            if is_profiled == "last":
                stop = int(1e9 * chance.lognormvariate(0, 0.4))
                chooser.add_stop(stop)
                true_lost_s += stop / 1e9
                size = int(chance.uniform(3e6, 9e6))
                outcome.sizes.append((now_s + ledger.elapsed_s, size))
                outcome.shares.append(true_lost_s / ledger.elapsed_s)
                ledger.add_bytes(size)
            continue
        choice = chooser.add_step(duration)
        if choice is not None:
            start = int(3e8 * chance.random())
            chooser.add_stop(start)
            true_lost_s += start / 1e9
            outcome.windows.append((choice.reason, step))
            actions = iter(["profiled"] * (WARMUP + choice.steps - 1) + ["last"])
    outcome.shares.append(true_lost_s / ledger.elapsed_s)
    return ledger.elapsed_s


def most_bytes_a_day(sizes):
    """The most bytes in any 24 hours."""
    return max(sum(size for at, size in sizes if ended <= at < ended + DAY_S) for ended, _ in sizes)


@pytest.fixture(scope="module")
def outcomes():
    return [live(day, seed) for seed, day in enumerate(DAYS)]


def test_slow_downs_are_recorded_within_20_steps(outcomes):
    planted, found = sum(len(o.planted) for o in outcomes), sum(o.found() for o in outcomes)
    assert planted >= 80
    assert found >= 0.95 * planted, [(n, o.found(), len(o.planted)) for n, o in enumerate(outcomes)]


def test_few_windows_are_needless(outcomes):
    needless = [o.needless() for o in outcomes]
    assert sum(map(len, needless)) <= len(DAYS), needless
    assert max(map(len, needless)) <= 3, needless


def test_each_start_has_its_first_steady_steps(outcomes):
    for outcome in outcomes:
        assert [reason for reason, _ in outcome.windows].count(FIRST_STEPS) == len(outcome.starts)


def test_the_budget_is_never_exceeded(outcomes):
    for outcome in outcomes:
        assert max(outcome.shares) <= BUDGET.share
        assert most_bytes_a_day(outcome.sizes) <= BUDGET.bytes_per_day
