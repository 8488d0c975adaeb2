"""Launches, copies and durations against slow, obvious counting."""

from collections import Counter

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.calls.launch_outcomes import launch_outcomes
from kinetoscope_tb.measures.time.duration_bins import histogram
from kinetoscope_tb.views import VIEWS
from support import oracle
from support.examples import examples
from support.strategies import builders

few = examples(60)


def spans(frame):
    return [(start, start + dur) for start, dur in frame.select("start_ns", "dur_ns").rows()]


@few
@given(builders())
def test_what_holds_of_the_launches_of_any_trace(builder):
    trace = builder.build()
    assert_each_call_has_what_became_of_it(trace)
    assert_all_device_time_is_in_every_view_that_splits_it(trace)
    assert_launches_of_all_operators_and_of_none_are_the_calls_that_launched(trace)


def assert_each_call_has_what_became_of_it(trace):
    device = trace.device_events.with_row_index("row")
    for call, found in enumerate(launch_outcomes(trace).rows(named=True)):
        mine = device.filter(pl.col("launch") == call)
        assert (found["device_rows"], found["device_ns"]) == (mine.height, mine["dur_ns"].sum())
        if not mine.height:
            assert found["delay_ns"] is None
            continue
        first = mine.row(0, named=True)
        same_stream = (pl.col("stream") == first["stream"]) & (pl.col("device") == first["device"])
        before = spans(device.filter(same_stream & (pl.col("row") < first["row"])))
        expected = oracle.launch_outcome(spans(trace.launches)[call], spans(mine)[0], before)
        assert (found["delay_ns"], found["hit_empty_queue"]) == expected


@few
@given(st.lists(st.integers(0, 10**12) | st.integers(0, 1000)))
def test_each_duration_falls_into_its_bin(durations):
    table = histogram({"n": np.array(durations, np.int64)}, {"sum": np.array(durations, np.int64)})
    counted = Counter(map(oracle.bin_of, durations))
    assert {(a, b): n for a, b, n, _ in table.rows() if n} == counted
    assert table["sum"].sum() == sum(durations)
    assert table["to_ns"].to_list()[:-1] == table["from_ns"].to_list()[1:]


def assert_all_device_time_is_in_every_view_that_splits_it(trace):
    total = trace.device_events["dur_ns"].sum()
    sums = {
        name: VIEWS[name].run(trace)[column].sum()
        for name, column in (
            ("kernels", "total_ns"),
            ("kernels_by_op", "total_ns"),
            ("kernel_durations", "total_ns"),
            ("copies", "total_ns"),
            ("launches", "device_total_ns"),
        )
    }
    assert sums["kernels"] == sums["kernels_by_op"] == sums["kernel_durations"]
    assert sums["kernels"] + sums["copies"] == total
    assert sums["launches"] == total


def assert_launches_of_all_operators_and_of_none_are_the_calls_that_launched(trace):
    launching = launch_outcomes(trace).with_columns(trace.launches["op"]).filter(pl.col("device_rows") > 0)
    inside = launching.filter(pl.col("op") >= 0).height
    assert (VIEWS["operators"].run(trace)["launches"].sum() or 0) == inside
    assert VIEWS["launches"].run(trace)["launching_calls"].sum() == launching.height
