"""Kernels that overlap others of their stream."""

import pytest

from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.reader import read
from support.build import TraceBuilder
from support.real_traces import FOLDER, MISSING


def rules(trace):
    return {found.rule: found for found in diagnose(trace) if found.rule in {"kernels_overlap", "kernel_covers_others"}}


def stream_of(*kernels):
    builder = TraceBuilder()
    for at, dur in kernels:
        builder.kernel("k", at, dur)
    return builder.build()


def test_kernels_one_after_the_other_are_as_they_should_be():
    assert rules(stream_of((0, 100), (100, 100), (250, 50))) == {}


def test_many_small_overlaps_are_dependent_launches():
    diagnostics = rules(stream_of(*((i * 90, 100) for i in range(10))))
    overlap = diagnostics["kernels_overlap"]
    assert (overlap.count, overlap.level) == (9, "note")
    assert "9 of 10 kernels begin before" in overlap.consequence
    assert "9.9 % more than the time in which any kernel of their stream runs" in overlap.consequence  # 1000 of 910 ns


def test_kernels_of_different_streams_may_overlap():
    builder = TraceBuilder().kernel("a", 0, 100, stream=7).kernel("b", 0, 100, stream=8)
    assert rules(builder.build()) == {}


def test_a_kernel_that_covers_many_later_ones_has_a_wrong_duration():
    diagnostics = rules(stream_of((0, 3_400_000_000), *((i * 1000, 900) for i in range(1, 20))))
    assert diagnostics["kernel_covers_others"].count == 1
    assert "the longest for 3.4 s, the first is `k`" in diagnostics["kernel_covers_others"].consequence
    assert "kernels_overlap" not in diagnostics  # the others follow each other


@pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
def test_the_kernels_of_a_b300_overlap_by_dependent_launch():
    trace = read(FOLDER / "single/sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz")
    diagnostic = rules(trace)["kernels_overlap"]
    assert (diagnostic.count, diagnostic.level) == (355, "note")
    assert "355 of 393 kernels" in diagnostic.consequence
