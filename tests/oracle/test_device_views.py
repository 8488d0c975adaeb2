"""Copies, launches, graphs and GPUs of real traces, against values that were counted by hand."""

import polars as pl
import pytest

from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support.real_traces import FOLDER, MISSING

here = pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)


@here
def test_copies_and_launches_of_an_h100_are_what_a_script_over_its_events_counts():
    """A dictionary of runtime rows by correlation, and loops: 432 device rows, all of them with their call."""
    trace = read(FOLDER / "single" / "ncompass_h100nvl_test_trace.pt.trace.json")
    columns = ("direction", "is_pageable", "calls", "moved_bytes", "total_ns")
    assert VIEWS["copies"].run(trace).select(columns).rows() == [
        ("HtoD", True, 6, 2_678_824, 61_250),
        ("fill", None, 30, 10_560, 28_829),
        ("DtoH", False, 12, 48, 19_137),
    ]
    table = VIEWS["launches"].run(trace).filter(pl.col("launching_calls") > 0).sort("call")
    columns = ("call", "launching_calls", "mean_delay_ns", "empty_queue_calls", "mean_empty_queue_delay_ns")
    assert table.select(columns).rows() == [
        ("cuLaunchKernel", 30, 1523, 30, 1523),
        ("cudaLaunchKernel", 334, 2754, 275, 1261),
        ("cudaLaunchKernelExC", 20, 1423, 20, 1423),
        ("cudaMemcpyAsync", 18, 904, 18, 904),
        ("cudaMemsetAsync", 30, 1410, 30, 1410),
    ]


@here
def test_a_replay_of_421_kernels_is_one_launch_of_one_graph():
    trace = read(FOLDER / "single" / "tracelens_vllm_decode_graph_execution.json.gz")
    columns = ("graph", "launches", "mean_device_events", "device_total_ns", "max_span_ns", "gap_ns")
    assert VIEWS["graphs"].run(trace).select(columns).rows() == [("#1", 1, 421.0, 10_388_482, 10_388_902, 420)]
