"""Where a level changed: found soon, placed right, and nothing where nothing changed."""

from statistics import NormalDist

import numpy as np
import pytest

from kinetoscope_tb.history.change_points import FEWEST_RUNS, changes, confirmed_changes, spread


def level(size, at=0.0, seed=0):
    return at + 0.01 * np.random.default_rng(seed).standard_normal(size)


def test_a_shift_is_seen_within_four_runs_and_placed_at_its_first_run():
    values = np.concatenate([level(40), level(4, np.log(1.06), 1)])
    assert confirmed_changes(values) == [40]


def test_each_of_several_changes_is_a_point():
    values = np.concatenate([level(40), level(40, 0.06, 1), level(40, 0.02, 2)])
    assert confirmed_changes(values) == [40, 80]


@pytest.mark.parametrize("odd", [[50], [20, 50, 51]])
def test_a_few_odd_runs_are_no_change_of_level(odd):
    histories = [level(100, seed=seed) for seed in range(40)]
    for values in histories:
        values[odd] += 1.0
    assert sum(bool(confirmed_changes(values)) for values in histories) <= 2  # one or two of a hundred


def test_a_small_lasting_change_takes_more_runs():
    values = np.concatenate([level(60), level(40, 0.012, 1)])
    (first,) = confirmed_changes(values)
    assert abs(first - 60) <= 3
    assert confirmed_changes(values[:64]) == []


def test_what_later_runs_do_not_confirm_is_taken_back():
    values = np.concatenate([level(30), level(4, 0.02, 1), level(160, 0.0, 2)])
    assert len(changes(values)) > len(confirmed_changes(values))


def even_level(size, at=0.0):
    """As many values at even distances in a normal distribution, in any order."""
    values = [NormalDist(at, 0.01).inv_cdf((nth + 0.5) / size) for nth in range(size)]
    return np.random.default_rng(0).permutation(values)


def test_a_shift_after_few_runs_counts_whole_though_it_is_larger_than_their_spread():
    assert confirmed_changes(np.concatenate([even_level(20), even_level(4, 0.019)])) == [20]
    assert confirmed_changes(-np.concatenate([even_level(20), even_level(4, 0.019)])) == [20]


def test_equal_runs_and_rounding_are_no_change():
    assert confirmed_changes(np.zeros(100)) == []
    assert confirmed_changes(np.arange(100) % 2 * 1e-5) == []


@pytest.mark.parametrize("size", [0, 1, FEWEST_RUNS - 1])
def test_too_few_runs_have_no_change(size):
    assert confirmed_changes(np.arange(size, dtype=float)) == []


def test_the_spread_is_that_around_the_levels():
    assert spread(np.array([1.0, 3.0, 11.0, 13.0]), [2]) == pytest.approx(np.sqrt(2))
    assert np.isnan(spread(np.array([1.0]), []))
