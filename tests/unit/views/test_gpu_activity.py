"""Activity over time: exact parts of the numbers that `gpus` shows."""

import polars as pl
import pytest

from kinetoscope_tb.views.device.gpu_activity import PARTS, gpu_activity
from kinetoscope_tb.views.device.gpus import gpus
from kinetoscope_tb.views.device.idle import idle
from support.build import TraceBuilder


def two_kernels():
    return (
        TraceBuilder()
        .step(1, 0, 2400)
        .launch(0, 0, 1)
        .launch(1, 1, 2)
        .launch(3, 1, 3)
        .kernel("a", 0, 15, 1, **{"blocks per SM": 0.5})
        .kernel("b", 10, 10, 2, stream=8, **{"blocks per SM": 0.25})
        .kernel("c", 100, 5, 3, device=1)
        .build()
    )


def test_each_part_has_its_busy_share_and_the_share_of_its_multiprocessors():
    table = gpu_activity(two_kernels()).filter(pl.col("device") == 0)
    assert table.height == PARTS + 1
    assert table.head(3).select("time_ns", "dur_ns", "utilization_frac", "sm_efficiency_frac").rows() == [
        (0, 10, 1.0, 0.5),
        (10, 10, 1.0, (5 * 0.75 + 5 * 0.25) / 10),
        (20, 10, 0.0, 0.0),
    ]
    assert table.tail(1).select("time_ns", "dur_ns", "utilization_frac").rows() == [(2400, 0, None)]


def test_a_part_that_is_not_in_the_recording_has_no_utilization():
    builder = TraceBuilder().step(1, 0, 100).kernel("k", 40, 30, stream=0)
    for correlation in range(1, 21):
        builder = builder.launch(0, 5, correlation).kernel("a", 5, 15, correlation, stream=correlation)
    trace = builder.build()
    table = gpu_activity(trace, from_ns=0, to_ns=100)
    assert table.filter(pl.col("utilization_frac").is_null())["time_ns"].to_list() == [*range(20, 40), *range(70, 101)]
    assert table["utilization_frac"].mean() == 0.9
    assert gpus(trace)["utilization_frac"].to_list() == [0.45]


def test_a_device_of_which_only_launches_are_not_recorded_is_idle_between_its_work():
    trace = TraceBuilder().step(1, 0, 100).kernel("a", 5, 15).kernel("k", 40, 30).build()
    shares = gpu_activity(trace, from_ns=0, to_ns=100)["utilization_frac"]
    assert idle(trace).filter(pl.col("scope") == "device")["not_shown_ns"].item() == 55
    assert shares.null_count() == 1
    assert shares.mean() == gpus(trace)["utilization_frac"].item() == 0.45


def test_where_work_is_missing_too_it_is_not_known_whether_the_device_was_idle():
    trace = TraceBuilder().step(1, 0, 100).kernel("a", 5, 15).kernel("k", 40, 30)
    for correlation in range(1, 6):
        trace = trace.launch(correlation, 1, correlation)
    assert gpu_activity(trace.build(), from_ns=0, to_ns=100)["utilization_frac"].null_count() > 50


def test_one_device_alone_is_shown_where_it_is_chosen():
    assert gpu_activity(two_kernels(), device=1)["device"].unique().to_list() == [1]


def test_without_blocks_per_sm_the_efficiency_is_missing():
    assert gpu_activity(two_kernels()).filter(pl.col("device") == 1)["sm_efficiency_frac"].null_count() == PARTS + 1


def test_a_range_has_parts_of_its_own():
    table = gpu_activity(two_kernels(), from_ns=12, to_ns=16).filter(pl.col("device") == 0)
    assert table.select("time_ns", "sm_efficiency_frac").rows() == [
        (12, 0.75),
        (13, 0.75),
        (14, 0.75),
        (15, 0.25),
        (16, None),
    ]
    assert gpu_activity(two_kernels(), from_ns=50, to_ns=20).filter(pl.col("device") == 0)["time_ns"].to_list() == [50]


def means(trace):
    weighted = [
        ((pl.col(c) * pl.col("dur_ns")).sum() / pl.col("dur_ns").filter(pl.col(c).is_not_null()).sum()).alias(c)
        for c in ("utilization_frac", "sm_efficiency_frac")
    ]
    return gpu_activity(trace).group_by("device", maintain_order=True).agg(weighted)


def test_the_means_are_the_numbers_of_the_device():
    whole = gpus(two_kernels())
    for name in ("utilization_frac", "sm_efficiency_frac"):
        assert means(two_kernels())[name].to_list() == pytest.approx(whole[name].fill_null(float("nan")), nan_ok=True)
