"""Answers per category: each once, and only for categories that occur."""

import numpy as np
import polars as pl

from kinetoscope_tb.arrays.gather import map_categories

NAMES = pl.Series(["b", None, "a", "b"], dtype=pl.Enum(["a", "b", "unused"]))


def test_each_category_that_occurs_is_asked_once():
    calls = []
    assert map_categories(NAMES, lambda name: calls.append(name) or name == "b").tolist() == [True, False, False, True]
    assert calls == ["a", "b"]


def test_a_missing_name_has_the_missing_answer():
    assert map_categories(NAMES, len, missing=-1).tolist() == [1, -1, 1, 1]
    assert map_categories(NAMES, str.upper, missing=None).tolist() == ["B", None, "A", "B"]


def test_columns_without_names_or_rows():
    empty = pl.Series([], dtype=pl.Enum(["a"]))
    assert map_categories(empty, len).size == 0
    nothing = pl.Series([None, None], dtype=pl.Enum([]))
    assert np.array_equal(map_categories(nothing, len), [False, False])
