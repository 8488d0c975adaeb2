"""The margin of the means of dependent steps."""

import numpy as np
import pytest

from kinetoscope_tb.compare.statistics import Spread, margin


def dependent(correlation, steps, seed, pairs=4_000):
    """Rows of steps of a first-order process: two sides without a difference."""
    noise = np.random.default_rng(seed).standard_normal((pairs, steps))
    values = noise.copy()
    for step in range(1, steps):
        values[:, step] = correlation * values[:, step - 1] + np.sqrt(1 - correlation**2) * noise[:, step]
    return values


def share_beyond(correlation, steps):
    """How often two sides without a difference differ by more than the margin."""
    base, new = (dependent(correlation, steps, seed) for seed in (1, 2))
    limit = margin(Spread.of(base), Spread.of(new))
    return float((np.abs(base.mean(axis=1) - new.mean(axis=1)) > limit).mean())


@pytest.mark.parametrize(("correlation", "steps", "most"), [(0, 6, 0.01), (0, 48, 0.01), (0.6, 48, 0.025)])
def test_dependent_steps_count_as_fewer(correlation, steps, most):
    """Without the correction 0.6 gives 20 %."""
    assert share_beyond(correlation, steps) <= most


def test_steps_that_follow_each_other_are_worth_less_than_shuffled_ones():
    rising, shuffled = np.arange(8.0)[None, :], np.array([[0.0, 7, 1, 6, 2, 5, 3, 4]])
    limits = [float(margin(Spread.of(values), Spread.of(values))[0]) for values in (shuffled, rising)]
    assert limits[1] > 2 * limits[0]


def test_one_value_on_a_side_gives_no_margin():
    several, single = Spread.of(np.array([[1.0, 2, 4]])), Spread.of(np.array([[1.0]]))
    assert np.isnan(margin(several, single))
    assert np.isnan(margin(single, several))
    assert margin(several, several) > 0


def test_values_without_variation_have_no_noise():
    same = Spread.of(np.full((1, 5), 7.0))
    assert (margin(same, same), same.correlation) == (0.0, 0.0)
