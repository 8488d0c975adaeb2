"""The exact test against listing every assignment."""

import itertools
import math

import numpy as np
import pytest

from kinetoscope_tb.compare.gate.permutation import MOST_EXACT, p_value


def by_listing(base, new):
    values = np.concatenate([base, new])
    sums = [values[list(members)].sum() for members in itertools.combinations(range(values.size), len(new))]
    return float(np.mean(np.asarray(sums) >= new.sum() - 1e-9))


@pytest.mark.parametrize(("base_size", "new_size"), [(1, 1), (2, 3), (5, 5), (6, 6), (3, 7)])
def test_it_counts_every_assignment(base_size, new_size):
    generator = np.random.default_rng(base_size)
    base, new = generator.normal(5, 1, base_size), generator.normal(5.5, 1, new_size)
    assert p_value(base, new) == pytest.approx(by_listing(base, new), abs=1e-12)


def test_equal_values_count_as_ties():
    base, new = np.array([1.0, 2, 2, 3]), np.array([2.0, 2, 3, 3])
    assert p_value(base, new) == pytest.approx(by_listing(base, new), abs=1e-12)
    assert p_value(np.full(6, 0.1), np.full(6, 0.1)) == 1.0


@pytest.mark.parametrize(("n", "smallest"), [(3, 1 / 20), (4, 1 / 70), (5, 1 / 252), (6, 1 / 924)])
def test_the_smallest_p_value_is_one_of_all_assignments(n, smallest):
    assert p_value(np.arange(n, dtype=float), np.arange(n, 2 * n, dtype=float)) == pytest.approx(smallest)


def test_sixteen_a_side_are_still_exact():
    n = MOST_EXACT // 2
    assert p_value(np.arange(n) + 0.0, np.arange(n) + 100.0) == pytest.approx(1 / math.comb(2 * n, n))


def test_more_are_counted_by_the_same_random_assignments_each_time():
    generator = np.random.default_rng(3)
    base, new = generator.normal(0, 1, 20), generator.normal(1, 1, 20)
    first = p_value(base, new)
    assert first == p_value(base, new)
    assert 1e-5 <= first < 0.05
    assert p_value(base, base + 1e-3) > 0.3
