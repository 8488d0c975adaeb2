"""Histories resampled from real recordings keep the stated rates; `make bench ARGS=--history` runs many more."""

from pathlib import Path

import numpy as np
import pytest

from support.real_traces import CASES
from support.resampled import false_points, is_shift_seen, real_steps, runs

SAMPLES = Path(__file__).parents[2] / "samples"
HISTORIES, LENGTH = 30, 200


@pytest.fixture(scope="module")
def recordings():
    return real_steps([SAMPLES, CASES])


def histories(recordings, length, count, seed, **options):
    generator = np.random.default_rng(seed)
    choices = generator.integers(len(recordings), size=count)
    return [runs(recordings[at], 0.01, length, generator, **options) for at in choices]


@pytest.mark.parametrize("has_tails", [False, True])
def test_where_nothing_changed_there_is_at_most_one_point_in_a_thousand_runs(recordings, has_tails):
    # 6,000 runs at one point in 1,000 give 13 or more in less than 1 of 100 cases.
    points, _ = false_points(histories(recordings, LENGTH, HISTORIES, 1, has_tails=has_tails))
    assert points < 13


def test_a_shift_of_three_percent_at_a_spread_of_one_is_seen_within_four_runs(recordings):
    # 100 shifts at 95 % give 88 or fewer in less than 1 of 100 cases.
    rows = histories(recordings, 104, 100, 2)
    assert sum(is_shift_seen(values, 0.03, 100) for values in rows) > 88
