"""The guess where two sequences run side by side."""

import numpy as np
import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.compare.alignment.guess import path_guess


def test_equal_sequences_run_side_by_side():
    assert path_guess(np.arange(5), np.arange(5)).tolist() == [0, 1, 2, 3, 4, 5]


def test_what_only_one_side_has_moves_the_path():
    first, second = np.array([7, 1, 2, 3]), np.array([7, *[9] * 100, 1, 2, 3])
    assert path_guess(first, second).tolist() == [0, 1, 102, 103, 104]


def test_what_runs_in_another_order_and_what_is_unknown_say_nothing():
    first, second = np.array([5, NONE, 1, 2, 3, NONE]), np.array([NONE, 1, 2, 3, NONE, 5])
    assert path_guess(first, second)[2:].tolist() == pytest.approx([4 / 3, 2, 3, 4, 6])


def test_without_anything_in_common_the_path_is_straight():
    assert path_guess(np.array([1, 2]), np.array([3, 4, 5, 6])).tolist() == [0, 2, 4]
