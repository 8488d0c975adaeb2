"""Arrays that grow: whatever is appended, in whatever parts, comes back, in the narrowest type that was needed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.arrays.constants import repeat_value, stores_one
from kinetoscope_tb.reader.scan import columns
from kinetoscope_tb.reader.scan.columns import GrowingArray, narrow

NUMBERS = st.sampled_from([-1, 0, 7, 127, 128, -129, 2**15, 2**31, -(2**63), 2**63 - 1])
PARTS = st.lists(st.one_of(st.lists(NUMBERS, max_size=5), st.tuples(NUMBERS, st.integers(0, 5))), max_size=8)


def appended(parts):
    """(the column, the values)"""
    column, values = GrowingArray(), []
    for part in parts:
        if isinstance(part, tuple):
            value, size = part
            column.append(repeat_value(narrow(np.array([value], np.int64)), size))
            values += [value] * size
        else:
            column.append(narrow(np.array(part, np.int64)))
            values += part
    return column, values


@given(PARTS)
def test_what_was_appended_comes_back(parts):
    column, values = appended(parts)
    assert column.array().tolist() == values
    if values:
        assert column.array().dtype == narrow(np.array(values, np.int64)).dtype


@given(PARTS, st.integers(0, 4))
def test_what_is_kept_grows_on(parts, kept):
    column, values = appended(parts)
    mask = np.arange(len(values)) % 5 <= kept
    column.keep(mask)
    column.append(np.array([3], np.int8))
    assert column.array().tolist() == [value for value, keep in zip(values, mask, strict=True) if keep] + [3]


def test_one_value_is_stored_once_until_another_follows():
    column = GrowingArray()
    for _ in range(3):
        column.append(np.full(1000, 7, np.int64))
    assert stores_one(column.array())
    before = column.array()
    column.append(np.array([8], np.int16))
    assert not stores_one(column.array())
    assert column.array().tolist() == [7] * 3000 + [8]
    assert before.tolist() == [7] * 3000


@pytest.mark.parametrize("huge", [1, 1 << 40])
def test_large_arrays_have_pages_of_their_own(monkeypatch, huge):
    monkeypatch.setattr(columns, "_LARGE_BYTES", 64)
    monkeypatch.setattr(columns, "_HUGE_BYTES", huge)
    column, values = GrowingArray(), np.arange(10_000)
    for first in range(0, values.size, 1000):
        column.append(narrow(values[first : first + 1000]))
    assert column.array().tolist() == values.tolist()
