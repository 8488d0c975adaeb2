"""Traces written to an entry of the cache and read from it again."""

import io
from dataclasses import fields

import polars as pl

from kinetoscope_tb.engine.cache import trace_entry
from kinetoscope_tb.engine.cache.columns import Reader
from kinetoscope_tb.trace import Trace

SOURCE = {"path": "/logdir/a.json", "stamp": [1, 2], "version": "v"}


def written(trace):
    file = io.BytesIO()
    trace_entry.write(file, trace, SOURCE)
    return file


def reopened(trace):
    return trace_entry.read(Reader.of(written(trace).getvalue(), trace_entry.MAGIC))


def assert_same(got, expected):
    """Equal to the last bit: NaN equals NaN, and codes of enums are compared too."""
    for field in (field for field in fields(Trace) if field.compare):
        one, other = getattr(got, field.name), getattr(expected, field.name)
        if not isinstance(other, pl.DataFrame):
            assert one == other or repr(one) == repr(other), field.name  # NaN differs from itself
            continue
        assert one.schema == other.schema
        for column, dtype in other.schema.items():
            if dtype == pl.Enum:
                assert one[column].dtype.categories.to_list() == dtype.categories.to_list()
                assert one[column].to_physical().equals(other[column].to_physical(), null_equal=True)
        assert one.equals(other, null_equal=True), field.name
        assert all(one[column].n_chunks() == 1 for column in one.columns)
