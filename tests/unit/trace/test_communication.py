"""Rows that users' patterns match as communication count as communication everywhere."""

import pytest

from kinetoscope_tb.distributed.activity import communication_intervals
from kinetoscope_tb.measures.recording.contents import has_communication
from kinetoscope_tb.measures.time.breakdown import activities
from kinetoscope_tb.names.communication_patterns import CommunicationPatterns, parse_patterns
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace.communication import with_patterns
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.real_traces import FOLDER, MISSING


def patterned(trace, *lines):
    patterns, bad = parse_patterns(lines)
    assert not bad
    return with_patterns(trace, patterns)


def a_trace():
    builder = TraceBuilder().op("aten::mm", at=0, dur=10).op("mylib::exchange", at=20, dur=30)
    builder.launch(2, 2, 1).launch(25, 5, 2)
    return builder.kernel("gemm", at=5, dur=10, correlation=1).kernel("move", at=60, dur=10, correlation=2).build()


def rules(trace):
    return dict(trace.device_events.select("name", "communication_rule").cast(str).iter_rows())


def test_without_patterns_the_trace_is_the_same():
    trace = a_trace()
    assert with_patterns(trace, CommunicationPatterns()) is trace
    assert rules(trace) == {"gemm": None, "move": None}


def test_a_kernel_counts_by_its_name():
    trace = patterned(a_trace(), "^mo")
    assert rules(trace) == {"gemm": None, "move": "pattern ^mo"}
    assert trace.device_events["tensor_cores"].to_list()[1] == "no"
    kernels = VIEWS["kernels"].run(trace)
    assert dict(kernels.select("name", "is_communication").iter_rows()) == {"gemm": False, "move": True}


def test_a_range_counts_with_the_kernels_that_it_launches():
    trace = patterned(a_trace(), "range: ^mylib::")
    assert rules(trace) == {"gemm": None, "move": "launched by a collective"}
    assert trace.host_events["is_communication"].to_list() == [False, True]
    assert has_communication(trace)
    assert activities(a_trace())["Communication"][0].size == 0
    starts, ends = activities(trace)["Communication"]
    assert (ends - starts).tolist() == [30, 10]


def test_a_range_of_a_trace_without_a_device_is_a_transfer():
    trace = TraceBuilder().op("mylib::exchange", at=20, dur=30).build()
    assert communication_intervals(trace)[0].size == 0
    starts, ends = communication_intervals(patterned(trace, "range: exchange"))
    assert (ends - starts).tolist() == [30]


@pytest.mark.skipif(not FOLDER.is_dir(), reason=MISSING)
def test_a_pattern_turns_computation_of_a_real_trace_into_communication():
    trace = read(FOLDER / "single" / "sglang_B300_deepseek_r1_TP-0-DECODE.trace.json.gz")
    known = trace.device_events["is_communication"]
    patterned_trace = patterned(trace, "fused_moe|fmha")
    more = patterned_trace.device_events["is_communication"]
    assert (more | known).sum() == more.sum() > known.sum()
    names = patterned_trace.device_events.filter(more & ~known)["name"].cast(str).unique().to_list()
    assert names
    assert all("fused_moe" in name or "fmha" in name for name in names)
