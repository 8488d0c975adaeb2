"""What was written comes back: the same columns of the same types, whatever is in them."""

import io
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.engine.cache import trace_entry
from kinetoscope_tb.engine.cache.columns import Reader, Writer, reading
from kinetoscope_tb.engine.cache.values import BrokenEntry
from kinetoscope_tb.trace import Diagnostic
from kinetoscope_tb.trace.meta import Meta
from support.build import TraceBuilder
from support.trace_entries import SOURCE, assert_same, reopened, written


def a_trace():
    return (
        TraceBuilder(distributedInfo={"rank": 3}, huge=2**70, nothing=None, text="é\u2028\ud800", nan=float("nan"))
        .window(0, 400)
        .step(1, at=0, dur=100)
        .op("aten::mm", at=10, dur=30, **{"Input Dims": [[2, 2], [2, 2]], "External id": 1})
        .op("another", at=50, dur=10)
        .launch(at=15, dur=5, correlation=1)
        .kernel("ampere_sgemm", at=25, dur=50, correlation=1, **{"blocks per SM": 2.0})
        .kernel("z", at=85, dur=5)
        .memory(64, at=12)
        .python("f.py(1): f", at=5, dur=60)
        .build()
    )


def test_a_collective_without_a_name_is_kept():
    trace = TraceBuilder().op("record_param_comms", 1, 5, **{"Process Group Name": "0", "Group size": 2}).build()
    assert trace.collectives["name"].to_list() == [None]
    assert_same(reopened(trace), trace)


def test_a_trace_comes_back_as_it_was():
    assert_same(reopened(a_trace()), a_trace())


def test_a_trace_without_a_single_event_comes_back():
    empty = TraceBuilder().build()
    assert_same(reopened(empty), empty)


def frame_back(frame):
    """The frame, written and read again by itself."""
    file = io.BytesIO()
    writer = Writer(file, trace_entry.MAGIC)
    place = writer.frame(frame)
    writer.end({"frame": place})
    reader = Reader.of(file.getvalue(), trace_entry.MAGIC)
    return reader.frame(reader.head["frame"], dict(frame.schema)), file.getvalue()


def assert_same_frame(got, frame):
    assert got.schema == frame.schema
    for column, dtype in frame.schema.items():
        if dtype == pl.Enum:
            assert got[column].dtype.categories.to_list() == dtype.categories.to_list()
    assert got.equals(frame, null_equal=True)


def test_odd_values_come_back():
    texts = ["", "b", "a", "\0", "é\u2028", "same", "unused", "\U0001f600"]
    odd = pl.DataFrame(
        {
            "enum": pl.Series([None, "a", "b", "", "\0", "\U0001f600"], dtype=pl.Enum(texts)),
            "only_null": pl.Series([None] * 6, dtype=pl.Enum([])),
            "float": [float("nan"), 1e308, 0.0, -0.0, float("inf"), 5e-324],
            "integer": [2**63 - 1, -(2**63), 7, 0, 1, -1],
            "small": pl.Series([127, -128, 7, 0, 1, -1], dtype=pl.Int16),
            "flag": [True, True, False, True, True, False],
            "text": ["x", None, "", "\0", "é\U0001f600", "\u2028"],
            "several": pl.Series([[i, -i, 2**40] for i in range(6)], dtype=pl.Array(pl.Int64, 3)),
        },
    )
    assert_same_frame(frame_back(odd)[0], odd)
    assert_same_frame(frame_back(odd.clear())[0], odd.clear())
    diagnostic = Diagnostic("rule", 3, "words", first_offset=2**62, level="loss")
    trace = replace(a_trace(), diagnostics=(diagnostic,), meta=Meta({"a": [1, {"b": None}]}, 7), origin_ns=-5)
    assert_same(reopened(trace), trace)


@pytest.mark.parametrize("values", [[1, None], [1.0, None], [True, None], [[1]], [b"x"]])
def test_what_has_no_form_is_not_written(values):
    with pytest.raises(TypeError):
        frame_back(pl.DataFrame({"x": values}))


@given(st.lists(st.sampled_from(["a", "b", "c", None, "d"])), st.permutations(["a", "b", "c", "d"]))
def test_enums_keep_their_order_and_their_nulls(values, categories):
    frame = pl.DataFrame({"x": pl.Series(values, dtype=pl.Enum(categories))})
    assert_same_frame(frame_back(frame)[0], frame)


def test_an_enum_of_many_texts_takes_the_room_of_its_texts_once():
    texts = [f"file_{i}.py({i}): a_function_with_a_long_name_{i}" for i in range(70_000)]
    frame = pl.DataFrame({"x": pl.Series([i * 7919 % 70_000 for i in range(200_000)], dtype=pl.UInt32)})
    frame = frame.with_columns(pl.col("x").cat.to(pl.Enum(texts)))
    got, data = frame_back(frame)
    assert_same_frame(got, frame)
    assert len(data) < 2_000_000


def test_what_is_the_same_a_million_times_comes_back():
    frame = pl.DataFrame({"x": np.zeros(1_000_000, np.int64), "y": ["same"] * 1_000_000})
    got, data = frame_back(frame)
    assert_same_frame(got, frame)
    assert len(data) < 500_000


BUILT = a_trace()
WHOLE = written(BUILT).getvalue()


def outcome(data):
    """`same`, or that it was seen to be broken; anything else fails the test."""
    try:
        trace = trace_entry.read(Reader.of(data, trace_entry.MAGIC))
    except BrokenEntry:
        return "broken"
    assert_same(trace, BUILT)
    return "same"


@pytest.mark.parametrize("end", [0, 1, 17, 18, 60, len(WHOLE) // 2, len(WHOLE) - 19, len(WHOLE) - 1])
def test_a_part_of_an_entry_is_broken(end):
    assert outcome(WHOLE[:end]) == "broken"


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_a_changed_byte_is_seen_where_it_matters(at, change):
    data = bytearray(WHOLE)
    data[at] ^= change
    assert outcome(bytes(data)) == ("same" if at < len(trace_entry.MAGIC) else "broken")


@given(st.binary(max_size=200))
def test_what_is_no_entry_is_broken(data):
    assert outcome(data) == "broken"
    assert outcome(trace_entry.MAGIC + data + trace_entry.MAGIC) == "broken"


def test_zeros_that_a_lost_block_leaves_are_seen():
    assert outcome(WHOLE[:100] + bytes(400) + WHOLE[500:]) == "broken"
    assert outcome(bytes(len(WHOLE))) == "broken"


def test_an_entry_says_what_it_is_of():
    assert trace_entry.source_of(reading(WHOLE), len(WHOLE)) == SOURCE
