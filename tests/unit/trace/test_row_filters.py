"""Masks of rows by name."""

from __future__ import annotations

import polars as pl

from kinetoscope_tb.names.kernels import step_number
from kinetoscope_tb.trace.row_filters import name_mask


def test_all_steps_are_asked_for_once():
    texts = ["ProfilerStep#1", "aten::mm", "ProfilerStep#23", "ProfilerStep#", "ProfilerStep#4a", " ProfilerStep#5 "]
    names, calls = pl.Series(texts, dtype=pl.Enum(texts)), []
    mask = name_mask(names, lambda name: calls.append(name) or step_number(name) is not None)
    assert mask.tolist() == [True, False, True, False, False, True]
    assert sorted(calls) == sorted(set(texts) - {"ProfilerStep#23"})
    assert name_mask(pl.Series([], dtype=pl.Enum([])), str.isupper).tolist() == []
