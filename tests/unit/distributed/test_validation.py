"""Summaries that can't be used, as another program may have written them."""

from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.distributed.validation import problem_of
from support.simulated import Truth, simulated, summary_of


@pytest.fixture(scope="module")
def summary():
    return summary_of(simulated(Truth(ranks=2, steps=2)), 0)


def test_a_recorded_one_is_valid(summary):
    assert summary.segments.height
    assert problem_of(summary) == ""


@pytest.mark.parametrize(
    ("frame", "column", "value"),
    [("segments", "step", NONE), ("segments", "sync_point", 10**6), ("calls", "step", 2), ("calls", "bytes", -2)],
)
def test_a_number_out_of_range_is_named(summary, frame, column, value):
    whole = getattr(summary, frame)
    odd = whole.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(value).otherwise(column).cast(whole.schema[column]).alias(column)
    )
    assert problem_of(replace(summary, **{frame: odd})) == f"its {frame} have {value} as {column}"
