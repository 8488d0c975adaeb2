"""The gate keeps its rates over resampled pairs of real recordings; `make bench ARGS=--gate` runs many more."""

from pathlib import Path

import numpy as np
import pytest

from kinetoscope_tb.compare.gate.decision import Question
from support.real_traces import CASES
from support.resampled import outcomes, pair, real_steps

SAMPLES = Path(__file__).parents[2] / "samples"
PAIRS = 400
QUESTION = Question()


@pytest.fixture(scope="module")
def recordings():
    return real_steps([SAMPLES, CASES])


def said(recordings, spread, growth, n, seed, pairs=PAIRS):
    generator = np.random.default_rng(seed)
    choices = generator.integers(len(recordings), size=pairs)
    return outcomes((pair(recordings[at], spread, growth, n, generator) for at in choices), QUESTION)


@pytest.mark.parametrize("spread", [0.0, 0.01, 0.05])
def test_where_nothing_changed_it_alarms_in_one_of_a_hundred_at_most(recordings, spread):
    # 400 pairs at 1 % give 10 or more alarms in less than 1 of 100 cases.
    assert said(recordings, spread, 0.0, 6, 1)["regression"] < 10


def test_six_a_side_find_three_percent_at_a_spread_of_one(recordings):
    assert said(recordings, 0.01, 0.03, 6, 2)["regression"] >= 0.95 * PAIRS


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_too_few_recordings_for_the_rate_never_tell_anything(recordings, n):
    for growth in (0.0, 0.5):
        assert said(recordings, 0.01, growth, n, 3, 50) == {"cannot tell": 50}


def test_too_few_recordings_for_the_spread_never_say_that_nothing_changed(recordings):
    answers = said(recordings, 0.05, 0.0, 6, 4)
    assert set(answers) <= {"cannot tell", "regression", "improvement"}


def test_a_loss_is_called_no_regression_in_one_of_twenty_at_most(recordings):
    for spread in (0.005, 0.01, 0.02):
        assert said(recordings, spread, 0.03, 8, 5)["no regression"] <= 0.05 * PAIRS
