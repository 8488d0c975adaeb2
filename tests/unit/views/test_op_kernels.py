"""Kernels of an operator: the sequences of device work that its calls launch."""

import polars as pl
import pytest

from kinetoscope_tb.measures.calls.op_calls import UNATTRIBUTED
from kinetoscope_tb.reader import read
from kinetoscope_tb.views.host import op_kernels as module
from kinetoscope_tb.views.host.op_kernels import op_kernels
from kinetoscope_tb.views.host.operators import operators
from support.build import TraceBuilder, same
from support.real_traces import FOLDER, MISSING


def calls(*kernels, inner=""):
    """A trace of calls of aten::conv2d, each of which launches these kernels (name and duration)."""
    builder, correlation = TraceBuilder(), 0
    for i, launched in enumerate(kernels):
        builder.op("aten::conv2d", at=100 * i, dur=90)
        if inner:
            builder.op(inner, at=100 * i + 1, dur=80)
        for k, (name, dur) in enumerate(launched):
            correlation += 1
            builder.launch(at=100 * i + 2 + 5 * k, dur=3, correlation=correlation)
            builder.kernel(name, at=1000 + 100 * i + 20 * k, dur=dur, correlation=correlation)
    return builder.build()


def test_long_sequences_are_told_apart():
    builder, length = TraceBuilder(), 1_500
    for call in range(3):
        builder.op("aten::conv2d", at=10_000 * call, dur=9_990)
        for k in range(length):
            name, correlation = "other" if (call, k) == (1, 0) else f"k{k}", length * call + k + 1
            builder.launch(at=10_000 * call + 2 + 5 * k, dur=3, correlation=correlation)
            builder.kernel(
                name, at=100_000 + 10 * correlation, dur=5 if name == "other" else 1, correlation=correlation
            )
    sums = op_kernels(builder.build(), name="aten::conv2d")
    assert sums.select("calls", "device_events", "device_total_ns").rows() == [(2, 3_000, 3_000), (1, 1_500, 1_504)]


def test_calls_with_the_same_sequence_are_one_row_and_repeats_are_counted():
    trace = calls([("pad", 2), ("gemm", 10), ("gemm", 12)], [("pad", 2), ("gemm", 10), ("gemm", 14)], [("winograd", 7)])
    same(
        op_kernels(trace, name="aten::conv2d"),
        """
        name          sequence       calls  device_events  device_total_ns  mean_ns
        aten::conv2d  pad → gemm ×2  2      6            50               25
        aten::conv2d  winograd       1      1            7                7
        """,
    )


def test_what_an_operator_inside_launches_belongs_to_both():
    same(
        op_kernels(calls([("gemm", 10)], inner="aten::cudnn_convolution")),
        """
        name                     sequence  calls  device_total_ns
        aten::conv2d             gemm      1      10
        aten::cudnn_convolution  gemm      1      10
        """,
    )


def test_of_calls_of_one_name_in_each_other_the_innermost_counts():
    trace = (
        TraceBuilder()
        .op("f", at=0, dur=100)
        .op("g", at=10, dur=50)
        .op("f", at=20, dur=20)
        .launch(at=25, dur=2, correlation=1)
        .launch(at=70, dur=2, correlation=2)
        .kernel("inner", at=30, dur=5, correlation=1)
        .kernel("outer", at=80, dur=3, correlation=2)
        .build()
    )
    same(
        op_kernels(trace, name="f"),
        """
        name  sequence  calls  device_total_ns
        f     inner     1      5
        f     outer     1      3
        """,
    )
    assert operators(trace).filter(pl.col("name") == "f")["device_total_ns"].to_list() == [8]


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_the_sequences_of_each_operator_add_up_to_its_device_total():
    trace = read(FOLDER / "claims" / "hta_mtia_rank_0.json.gz")  # calls of one name lie in each other there
    sums = op_kernels(trace).group_by("name").agg(pl.col("device_total_ns").sum().alias("sequences_ns"))
    both = operators(trace).join(sums, on="name").filter(pl.col("name") != UNATTRIBUTED)
    assert both.height > 90
    assert both.filter(pl.col("device_total_ns") != pl.col("sequences_ns")).is_empty()


def test_the_order_is_that_of_the_launches_on_all_streams():
    trace = (
        TraceBuilder()
        .op("f", at=0, dur=100)
        .launch(at=10, dur=2, correlation=1)
        .launch(at=20, dur=2, correlation=2)
        .kernel("late", at=90, dur=5, correlation=1, stream=7)
        .kernel("early", at=30, dur=5, correlation=2, stream=8)
        .build()
    )
    assert op_kernels(trace, name="f")["sequence"].to_list() == ["late → early"]


def test_calls_that_launch_nothing_are_there():
    same(
        op_kernels(calls([("gemm", 10)], []), name="aten::conv2d"),
        """
        name          sequence  calls  device_events  device_total_ns  mean_ns
        aten::conv2d  gemm      1      1            10               10
        aten::conv2d  -         1      0            0                -
        """,
    )


def test_only_calls_with_the_asked_shapes_count():
    trace = (
        TraceBuilder()
        .op("aten::mm", at=0, dur=10, **{"Input Dims": [[2, 2], [2, 2]]})
        .launch(at=2, dur=2, correlation=1)
        .op("aten::mm", at=20, dur=10, **{"Input Dims": [[4, 4], [4, 4]]})
        .launch(at=22, dur=2, correlation=2)
        .kernel("small", at=30, dur=5, correlation=1)
        .kernel("large", at=40, dur=9, correlation=2)
        .build()
    )
    rows = op_kernels(trace, name="aten::mm", input_shapes="[[4, 4], [4, 4]]")
    assert rows["sequence"].to_list() == ["large"]


def test_beyond_a_thousand_sequences_the_least_are_one_row(monkeypatch):
    monkeypatch.setattr(module, "MOST_SEQUENCES", 1)
    trace = calls([("a", 10)], [("b", 5)], [("c", 3)])
    same(
        op_kernels(trace, name="aten::conv2d"),
        """
        name          sequence           calls  device_total_ns
        aten::conv2d  a                  1      10
        aten::conv2d  [other sequences]  2      8
        """,
    )


def test_of_a_long_sequence_the_first_names_are_written_out(monkeypatch):
    monkeypatch.setattr(module, "MOST_NAMES", 2)
    trace = calls([("a", 1), ("b", 1), ("a", 1), ("c", 1)])
    assert op_kernels(trace)["sequence"].to_list() == ["a → b → and 2 more"]
