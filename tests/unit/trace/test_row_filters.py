"""Masks of rows by name."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from kinetoscope_tb.names.kernels import step_number
from kinetoscope_tb.trace.row_filters import device_ends, is_operator, is_operator_of_all, is_step, name_mask
from support.build import TraceBuilder
from support.graphs import GraphRecording, Operator, joined


def test_all_steps_are_asked_for_once():
    texts = ["ProfilerStep#1", "aten::mm", "ProfilerStep#23", "ProfilerStep#", "ProfilerStep#4a", " ProfilerStep#5 "]
    names, calls = pl.Series(texts, dtype=pl.Enum(texts)), []
    mask = name_mask(names, lambda name: calls.append(name) or step_number(name) is not None)
    assert mask.tolist() == [True, False, True, False, False, True]
    assert sorted(calls) == sorted(set(texts) - {"ProfilerStep#23"})
    assert name_mask(pl.Series([], dtype=pl.Enum([])), str.isupper).tolist() == []


def recording():
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100).annotation("forward", 5, 80)
    return builder.op("aten::mm", 10, 50).op("aten::add", 70, 5).kernel("gemm", 20, 60).kernel("add", 90, 7).build()


def test_operators_steps_and_ends_are_those_of_the_rows():
    trace = recording()
    host, device = trace.host_events, trace.device_events
    assert is_operator(trace).tolist() == (host["kind"] == "operator").to_list()
    assert host["name"].filter(pl.Series(is_step(trace))).to_list() == ["ProfilerStep#1", "ProfilerStep#2"]
    assert device_ends(trace).tolist() == (device["start_ns"] + device["dur_ns"]).to_list()


@pytest.mark.parametrize("function", [is_operator, is_step, device_ends])
def test_they_are_computed_once_counted_as_results_and_stay_as_they_are(function):
    trace = recording()
    array = function(trace)
    assert trace.results.held_bytes == array.nbytes > 0
    assert function(replace(trace).with_allocating_calls(None)) is not array  # of another recording
    assert function(trace.with_allocating_calls(None)) is array is function(trace)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0


def test_operators_that_graphs_replay_stand_behind_the_recorded_ones():
    work = (Operator("my::norm", (4,), 0, ("norm",) * 4), Operator("my::mm", (4,), 1, ("gemm",) * 4))
    captured = GraphRecording("rocm").captured(work).builder.build()
    trace = GraphRecording("rocm").eager(work[:1]).replayed(work, 1).builder.build()
    assert is_operator_of_all(trace) is is_operator(trace)
    whole = joined(trace, captured)
    assert is_operator(whole) is is_operator(trace)
    assert whole.all_host_events.height > trace.host_events.height
    assert is_operator_of_all(whole).tolist() == (whole.all_host_events["kind"] == "operator").to_list()
