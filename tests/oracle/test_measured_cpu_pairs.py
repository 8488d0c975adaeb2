"""Predictions of changes against what they did on a CPU: trainings before and after, timed without a profiler.

`samples/cpu_pairs` has each recording before the change, and by how much the recording after it says that its target
takes less time. Where all cores are busy, what runs at the same time slows down (two ranks on two cores, with gloo's
threads): by how much, the recorder's processor times say, though not for each part of the step.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from blind.pairs import MOST_NOISE, Measurement, prediction
from kinetoscope_tb.reader import read

FOLDER = Path(__file__).parents[2] / "samples" / "cpu_pairs"
MEASURED = {row["name"]: Measurement(**row) for row in json.loads((FOLDER / "measured.json").read_text())}
SHARES_CORES = ("overlap", "ranks")
MOST_MEDIAN_ERROR, MOST_ERROR, COVERAGE = 0.05, 0.15, 0.9  # the second of nineteen in twenty
MOST_ERROR_OF_SHARED_CORES = 0.2  # measured 2026-11-29: 0.182


@cache
def predicted(name):
    return prediction(MEASURED[name], read(FOLDER / f"{name}.pt.trace.json.gz"))


def errors(names):
    return [predicted(name).error for name in names]


def shares_cores(name):
    return name.startswith(SHARES_CORES)


def test_sixty_pairs_were_measured_well_enough():
    assert len(MEASURED) >= 60
    assert max(measured.noise for measured in MEASURED.values()) <= MOST_NOISE


def test_half_of_the_predicted_steps_are_off_by_a_twentieth_at_most():
    assert np.median(errors(MEASURED)) <= MOST_MEDIAN_ERROR  # measured 2026-11-29: 0.027


def test_hardly_a_predicted_step_is_far_off():
    assert np.quantile(errors(MEASURED), 0.95) <= MOST_ERROR  # measured 2026-11-29: 0.129


def test_where_cores_are_shared_predicted_steps_are_hardly_further_off():
    assert np.quantile(errors(filter(shares_cores, MEASURED)), 0.95) <= MOST_ERROR_OF_SHARED_CORES


def test_no_change_for_the_better_is_predicted_to_be_one_for_the_worse():
    assert [name for name in MEASURED if predicted(name).has_wrong_sign] == []


def test_nine_of_ten_measured_savings_lie_in_their_range():
    assert np.mean([predicted(name).is_in_range for name in MEASURED]) >= COVERAGE  # measured 2026-11-29: 1.0


def test_a_range_is_much_smaller_than_the_step():
    """A range from nothing to the whole step would have every saving in it."""
    widths = [predicted(name).most - predicted(name).least for name in MEASURED]
    assert np.median(widths) <= 0.2  # measured 2026-11-29: 0.168


@pytest.mark.parametrize("name", MEASURED)
def test_a_prediction_lies_in_its_own_range(name):
    item = predicted(name)
    assert 0 <= item.least <= item.saved <= item.most <= 1
