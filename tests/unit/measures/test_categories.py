"""Categories of memory: which rule decides for which allocation."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.memory.categories import CategoryLevels
from kinetoscope_tb.measures.memory.levels import device_memories
from kinetoscope_tb.names.memory_categories import CATEGORIES
from kinetoscope_tb.views.memory.memory_categories import memory_categories
from kinetoscope_tb.views.memory.memory_curve import memory_curve
from kinetoscope_tb.views.memory.memory_peak_categories import memory_peak_categories
from support.build import TraceBuilder

BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"
ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def step():
    """A forward pass from 0 to 100, a backward pass from 100 to 200, an optimizer from 200 to 300."""
    builder = TraceBuilder().python("train.py(1): main", 0, 400).module("Linear_0", 10, 50)
    builder.op("aten::randn", 2, 5).op("aten::linear", 20, 30).op("aten::addmm", 22, 20).op("aten::mul", 70, 20)
    builder.op(BACKWARD, 100, 50).op(ACCUMULATE, 160, 20)
    return builder.annotation("Optimizer.step#SGD.step", 200, 100).op("aten::add_", 210, 20)


def category(begin, end, builder=None):
    """The category of an allocation of 512 bytes from one time to another."""
    builder = (builder or step()).memory(512, begin, address=8)
    trace = (builder if end is None else builder.memory(-512, end, address=8)).build()
    return CATEGORIES[CategoryLevels.of(trace, device_memories(trace)[0]).numbers[0]]


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        (25, 30, "workspace"),  # in the operator
        (25, 48, "workspace"),  # in the outermost operator
        (25, 65, "activations"),  # of a module, released soon
        (25, 120, "activations"),
        (75, 120, "activations"),  # outside modules, but saved for the backward pass
        (75, 95, "unknown"),
        (3, 120, "unknown"),  # may be the input
        (25, None, "unknown"),
        (110, 205, "gradients"),
        (110, None, "gradients"),
        (110, 170, "workspace"),
        (165, 350, "gradients"),
        (215, 220, "workspace"),
        (215, 320, "optimizer state"),
        (215, None, "optimizer state"),
        (350, None, "unknown"),
    ],
)
def test_operator_and_lifetime_decide(begin, end, expected):
    assert category(begin, end) == expected


def test_without_an_optimizer_only_accumulated_gradients_are_known():
    builder = TraceBuilder().op(BACKWARD, 100, 50).op(ACCUMULATE, 160, 20)
    assert category(165, None, builder) == "gradients"
    assert category(110, None, TraceBuilder().op(BACKWARD, 100, 50)) == "unknown"


def test_parameters_are_as_large_as_the_gradients_and_come_from_before():
    device = {"Device Type": 1, "Device Id": 0}
    builder = step().memory(512, 110, address=8, **device, **{"Total Allocated": 2512})
    trace = builder.memory(-512, 290, address=8, **device, **{"Total Allocated": 2000}).build()
    rows = memory_peak_categories(trace).select("category", "operator", "alive_bytes").rows()
    assert rows == [
        ("unknown", "[allocated before the recording]", 1488),
        ("gradients", BACKWARD, 512),
        ("parameters", "[allocated before the recording]", 512),
    ]


@given(st.lists(st.tuples(st.integers(1, 390), st.integers(1, 390), st.integers(1, 4096)), min_size=1, max_size=12))
def test_categories_add_up_to_the_allocated_memory(spans):
    builder = step()
    for address, (begin, length, size) in enumerate(spans, 1):
        builder.memory(size, begin, address=address).memory(-size, begin + length, address=address)
    trace = builder.build()
    (memory,) = device_memories(trace)
    assert CategoryLevels.of(trace, memory).levels.sum(axis=1).tolist() == memory.allocated_bytes.tolist()
    peak = memory_peak_categories(trace)
    assert peak["alive_bytes"].sum() == memory.allocated_bytes.max()


@given(st.integers(0, 4096), st.none() | st.integers(0, 400), st.none() | st.integers(0, 400))
def test_categories_are_drawn_over_the_time_of_the_curve_and_add_up_to_it(before, from_ns, to_ns):
    totals = {"Device Type": 1, "Device Id": 0}
    builder = step().memory(512, 120, address=8, **totals, **{"Total Allocated": before + 512})
    trace = builder.memory(-512, 350, address=8, **totals, **{"Total Allocated": before}).build()
    curve = memory_curve(trace, from_ns=from_ns, to_ns=to_ns)
    levels = memory_categories(trace, from_ns=from_ns, to_ns=to_ns)
    sums = levels.select("time_ns", allocated_bytes=pl.sum_horizontal(pl.col("^.*_bytes$")))
    assert (
        sums.rows() == curve.select("time_ns", "allocated_bytes").unique("time_ns", keep="last").sort("time_ns").rows()
    )
