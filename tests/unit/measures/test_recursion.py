"""Calls in a call of the same name count once."""

from __future__ import annotations

import numpy as np
import polars as pl

from kinetoscope_tb.measures.calls.recursion import without_recursion

NAMES = ("forward", "hook", None)


def calls(rows):
    """A frame of calls: (name, thread, start, end)."""
    name, thread, start, end = zip(*rows, strict=True)
    frame = pl.DataFrame({"thread": pl.Series(thread, dtype=pl.Int32), "start_ns": start, "end_ns": end})
    kind = pl.Enum([text for text in NAMES if text])
    return frame.with_columns(pl.Series("name", name, kind), dur_ns=pl.col("end_ns") - pl.col("start_ns"))


def spans(frame):
    return frame.select("name", "thread", "start_ns", "end_ns").rows()


def test_the_outer_one_of_nested_calls_counts():
    rows = [("hook", 1, 0, 100), ("hook", 1, 10, 100), ("hook", 1, 20, 30), ("hook", 1, 100, 110)]
    assert spans(without_recursion(calls(rows))) == [rows[0], rows[3]]


def test_calls_of_other_names_and_threads_count():
    rows = [("hook", 1, 0, 100), ("forward", 1, 10, 90), ("hook", 1, 20, 80), ("hook", 2, 10, 50), ("hook", 3, 20, 40)]
    assert spans(without_recursion(calls(rows))) == [row for row in rows if row != rows[2]]


def test_names_as_texts_and_no_names_count_like_names_of_an_enum():
    rng = np.random.default_rng(4)
    columns = zip(*(rng.integers(0, most, 300) for most in (3, 3, 60, 9)), strict=True)
    rows = [(NAMES[name], int(thread), int(start), int(start + dur)) for name, thread, start, dur in columns]
    frame = calls(sorted(rows, key=lambda row: row[1:]))
    end = pl.col("end_ns").cum_max().shift(1).over("name", "thread")
    expected = frame.filter(end.is_null() | (pl.col("end_ns") > end))
    assert 0 < expected.height < frame.height
    assert without_recursion(frame).equals(expected)
    as_texts = frame.with_columns(pl.col("name").cast(pl.String))
    assert without_recursion(as_texts).equals(expected.with_columns(pl.col("name").cast(pl.String)))
