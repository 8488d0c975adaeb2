"""Counters of a GPU that were sampled, in steps and while kernels ran."""

import numpy as np
import pytest

from kinetoscope_tb.reader import read
from kinetoscope_tb.timeline.counters.counters import counters
from kinetoscope_tb.views.device.gpu_counters import gpu_counters
from support.build import TraceBuilder, same

US = 1_000


def sampled(*samples, name="SM Active (%)", device=0):
    """A trace with samples of (time in µs, value)."""
    built = TraceBuilder().step(1, 0, 100 * US).step(2, 100 * US, 100 * US)
    built.kernel("long", 50 * US, 50 * US).kernel("short", 150 * US, 5 * US)
    for at, value in samples:
        built.event("", name, at * US, None, ph="C", pid=f"GPU {device} Counters", **{"": value})
    return built


def test_a_sample_holds_until_the_next_one():
    built = sampled((0, 10.0), (50, 30.0), (100, 50.0), (150, 70.0))
    same(
        gpu_counters(built.build(), per="step"),
        """
        device  counter    unit  name  mean_value  kernel_value  min_value  max_value  samples  interval_ns
        0       SM Active  %     1     20.0        30.0          10.0       30.0       2        50000
        0       SM Active  %     2     60.0        70.0          50.0       70.0       2        50000
        """,
    )


def test_a_kernel_shorter_than_the_time_between_samples_has_no_value():
    rows = gpu_counters(sampled((0, 10.0), (50, 30.0), (100, 50.0), (150, 70.0)).build(), per="kernel")
    assert rows.select("name", "mean_value").rows() == [("long", 30.0), ("short", None)]


def test_an_unknown_value_counts_for_no_time():
    rows = gpu_counters(sampled((0, 10.0), (50, None), (100, 50.0), (150, 70.0)).build())
    assert rows["mean_value"].to_list() == [pytest.approx((10 + 50 + 70) / 3)]


def test_the_counters_of_torch_2_15_are_those_that_were_made(torch_2_15):
    rows = gpu_counters(read(torch_2_15 / "cuspy/cuspy_counters.json.gz"))
    assert dict(rows.select("counter", "unit").iter_rows()) == {
        "Fan Speed": "%", "HBM BW": "%", "Memory Clock": "MHz", "NVLink RX": None, "Power": "W", "SM Active": "%",
        "SM Clock": "MHz", "Temperature": "C", "smsp__inst_executed.sum": None,
    }  # fmt: skip
    values = {name: (low, high) for name, low, high in rows.select("counter", "min_value", "max_value").iter_rows()}
    assert values["SM Active"] == (0.0, 100.0)
    assert values["HBM BW"] == (0.0, 80.0)  # the last one lies behind the step


def test_the_timeline_draws_them_with_their_device_and_unit(torch_2_15):
    curves = counters(read(torch_2_15 / "cuspy/cuspy_counters_nan.json.gz"))
    names = {(curve.name, curve.unit, curve.index) for curve in curves}
    assert {("Power", "W", 0), ("SM Clock", "MHz", 0), ("SM Active", "%", 0)} <= names
    assert "Cycles" not in {curve.name for curve in curves}
    recorded = (curve for curve in curves if curve.name != "GPU utilization")  # it has a gap before the first kernel
    assert sum(np.isnan(curve.curve[1]).sum() for curve in recorded) == 1
