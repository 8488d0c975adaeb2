"""The margin of the means of dependent steps."""

import numpy as np
import pytest

from kinetoscope_tb.compare.statistics import Spread, margin

NONE = np.zeros(1)  # no difference


def dependent(correlation, steps, seed, pairs=4_000):
    """Rows of steps of a first-order process: two sides without a difference."""
    noise = np.random.default_rng(seed).standard_normal((pairs, steps))
    values = noise.copy()
    for step in range(1, steps):
        values[:, step] = correlation * values[:, step - 1] + np.sqrt(1 - correlation**2) * noise[:, step]
    return values


def share_beyond(correlation, steps):
    """How often two sides without a difference differ by more than the margin."""
    return share_told(*(dependent(correlation, steps, seed) for seed in (1, 2)))


def share_told(base, new):
    """How often the means of the rows of two sides differ by more than the margin."""
    delta = new.mean(axis=1) - base.mean(axis=1)
    return float((np.abs(delta) > margin(Spread.of(base), Spread.of(new), delta)).mean())


@pytest.mark.parametrize(("correlation", "steps", "most"), [(0, 6, 0.01), (0, 48, 0.01), (0.6, 48, 0.025)])
def test_dependent_steps_count_as_fewer(correlation, steps, most):
    """Without the correction 0.6 gives 20 %."""
    assert share_beyond(correlation, steps) <= most


def test_steps_that_follow_each_other_are_worth_less_than_shuffled_ones():
    rising, shuffled = np.arange(8.0)[None, :], np.array([[0.0, 7, 1, 6, 2, 5, 3, 4]])
    limits = [float(margin(Spread.of(values), Spread.of(values), NONE)[0]) for values in (shuffled, rising)]
    assert limits[1] > 2 * limits[0]


def test_one_value_on_a_side_gives_no_margin():
    several, single = Spread.of(np.array([[1.0, 2, 4]])), Spread.of(np.array([[1.0]]))
    assert np.isnan(margin(several, single, NONE))
    assert np.isnan(margin(single, several, NONE))
    assert margin(several, several, NONE) > 0


def test_values_without_variation_have_no_noise():
    same = Spread.of(np.full((1, 5), 7.0))
    assert (margin(same, same, NONE), same.correlation) == (0.0, 0.0)


SLOW, FAST = np.array([[693.0, 472, 165, 323, 1442, 651]]), np.array([[95.0, 63, 76, 48, 39, 35]])


def test_one_long_step_does_not_hide_that_every_step_is_shorter():
    assert share_told(SLOW, FAST) == share_told(FAST, SLOW) == 1
    delta = FAST.mean(axis=1) - SLOW.mean(axis=1)
    assert 0 < margin(Spread.of(SLOW), Spread.of(FAST), delta)[0] < -delta[0]


def test_a_mean_that_one_step_moves_against_all_others_is_not_told_by_their_logarithms():
    new = np.where(FAST == 95, 9_000, FAST)
    assert share_told(SLOW, new) == 0


def test_of_a_value_that_is_zero_only_the_variance_counts():
    some = np.where(FAST == 35, 0, FAST)
    assert np.isnan(Spread.of(some).log_mean)
    assert share_told(SLOW, some) == 0


def log_normal(seed, steps=6, pairs=4_000):
    return np.exp(0.6 * np.random.default_rng(seed).standard_normal((pairs, steps)))


def test_two_tests_together_tell_no_more_of_equal_sides_than_one_may():
    assert share_told(log_normal(1), log_normal(2)) < 0.01
    assert share_told(log_normal(1), log_normal(2) / 8) > 0.8
