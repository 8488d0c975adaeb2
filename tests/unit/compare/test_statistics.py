"""The margin of the means of dependent steps."""

import numpy as np
import pytest

from kinetoscope_tb.compare.statistics import Spread, margin

NONE = np.zeros(1)  # no difference


def independent(generator, pairs, steps):
    return 100 + generator.standard_normal((pairs, steps))


def dependent(correlation):
    """Steps of a first-order process."""

    def values(generator, pairs, steps):
        noise = independent(generator, pairs, steps)
        result = noise - 100
        for step in range(1, steps):
            fresh = np.sqrt(1 - correlation**2) * (noise[:, step] - 100)
            result[:, step] = correlation * result[:, step - 1] + fresh
        return 100 + result

    return values


def long_at_times(generator, pairs, steps):
    """One step of ten is longer by 10 standard deviations."""
    return independent(generator, pairs, steps) + 10 * (generator.random((pairs, steps)) < 0.1)


def exponential(generator, pairs, steps):
    return generator.exponential(size=(pairs, steps))


def ramp(generator, pairs, steps):
    """A clock that settles, from another height in each recording."""
    height = 3 * generator.uniform(0.5, 1.5, (pairs, 1))
    return independent(generator, pairs, steps) + height * np.exp(-np.arange(steps) / 3)


def slope(generator, pairs, steps):
    """A clock that goes on rising or falling, as fast as it likes in each recording."""
    end = 3 * generator.standard_normal((pairs, 1))
    return independent(generator, pairs, steps) + end * np.linspace(0, 1, steps)


def share_beyond(kind, steps, change=0, new_steps=None, pairs=2_000):
    """How often two sides of a kind, one longer by a change, differ by more than the margin."""
    generator = np.random.default_rng(7)
    base, new = (kind(generator, pairs, number) for number in (steps, new_steps or steps))
    return share_told(base, new + change)


def share_told(base, new):
    """How often the means of the rows of two sides differ by more than the margin."""
    delta = new.mean(axis=1) - base.mean(axis=1)
    return float((np.abs(delta) > margin(Spread.of(base), Spread.of(new), delta)).mean())


EVEN = [independent, dependent(0.3), long_at_times, exponential, ramp]
STEPS = [3, 4, 6, 7, 8, 12, 16, 60]


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.slow  # many samples
def test_sides_without_a_change_rarely_differ(steps):
    """By an estimate of the correlation alone, 0.5 gives 5 %, and a slope 66 % of 60 steps."""
    assert max(share_beyond(kind, steps) for kind in EVEN) <= 0.005
    assert share_beyond(dependent(0.5), steps) <= 0.012
    assert share_beyond(dependent(0.6), steps) <= 0.025
    assert share_beyond(slope, steps) <= 0.015
    assert share_beyond(independent, steps, new_steps=6) <= 0.005


@pytest.mark.parametrize("kind", [independent, dependent(0.6), ramp])
@pytest.mark.parametrize("steps", [5, 6, 7, 8])
def test_a_change_of_20_standard_deviations_is_found(kind, steps):
    assert share_beyond(kind, steps, change=20) == 1
    assert share_beyond(kind, steps, change=20, new_steps=4) == 1


def test_a_change_of_few_standard_deviations_is_found_in_more_steps():
    assert share_beyond(independent, 8, change=5) >= 0.99
    assert share_beyond(independent, 16, change=3) >= 0.95
    assert share_beyond(independent, 60, change=1) >= 0.7
    assert share_beyond(long_at_times, 7, change=20) >= 0.95


# Steps in ms of two recordings, the first of which are a bit longer than the rest.
SETTLING = np.array([[14.69, 14.7, 14.673, 14.547, 14.576, 14.605, 14.608, 14.613]])
LONGER = np.array([[15.957, 16.098, 16.004, 16.133, 16.178, 16.06, 16.141, 16.153]])


def test_slightly_longer_first_steps_hide_no_clean_change():
    assert share_told(SETTLING, LONGER) == share_told(LONGER, SETTLING) == 1
    assert share_told(SETTLING, SETTLING[:, ::-1]) == 0


def test_a_change_within_the_drift_of_both_sides_is_no_evidence():
    generator, at = np.random.default_rng(3), np.linspace(0, 1, 60)
    base, new = (100 + sign * 5 * at + generator.standard_normal((1, 60)) / 10 for sign in (-1, 1))
    spreads = Spread.of(base), Spread.of(new)
    assert share_told(base, new) == 0
    assert margin(*spreads, NONE)[0] == pytest.approx(10, rel=0.02)
    assert spreads[0].drift[0] == pytest.approx(5, rel=0.02)


@pytest.mark.parametrize("steps", [2, 3, 8, 16])
def test_the_error_is_that_of_each_correlation_by_how_probable_it_is(steps):
    """Against matrices, as the formulas are written."""
    values = dependent(0.5)(np.random.default_rng(1), 1, steps)[0]
    ones, errors, weights = np.ones(steps), [], []
    for correlation in np.arange(20) / 20:
        matrix = correlation ** np.abs(np.subtract.outer(np.arange(steps), np.arange(steps)))
        inverse = np.linalg.inv(matrix)
        mean = ones @ inverse @ values / (ones @ inverse @ ones)
        squares = (values - mean) @ inverse @ (values - mean)
        likelihood = (np.linalg.det(matrix) * (ones @ inverse @ ones)) ** -0.5 * squares ** -((steps - 1) / 2)
        errors.append(np.sqrt(squares / (steps - 1) * matrix.mean()))
        weights.append(likelihood * np.sqrt(1 - correlation))
    padded = np.append(np.nan, np.insert(values, 1, np.nan))[None, :]
    for row in (values[None, :], padded):
        assert Spread.of(row).error[0] == pytest.approx(np.average(errors, weights=weights) ** 2)


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
    assert (margin(same, same, NONE), same.error, same.drift) == (0.0, 0.0, 0.0)


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
    assert share_told(log_normal(1, steps=8), log_normal(2, steps=8) / 8) > 0.8
