"""Which advice is about a row of a view."""

from __future__ import annotations

import numpy as np

from kinetoscope_tb.advice.about_row import advice_about
from kinetoscope_tb.advice.model import Advice, Candidate
from kinetoscope_tb.advice.trace_advice import TraceAdvice
from support.build import TraceBuilder


def rules(trace, events, *advice, counted=(True, True), is_named=lambda _: False):
    findings = TraceAdvice(advice, 1, 1, np.array(counted))
    return [claim.rule for claim in advice_about(trace, findings, events, is_named)]


def about_kernels(*rows):
    return Advice("slow", "t", "e", "a", 1, "high", "kernels", candidate=Candidate("", rows=np.array(rows)))


def two_steps():
    """In each of two steps an operator launches a kernel of 30 ns and one of 10 ns."""
    built = TraceBuilder()
    for step in range(2):
        at = step * 1000
        built.step(step + 1, at, 900).op("aten::mm", at + 10, 100)
        for i, dur in enumerate((30, 10)):
            number = 1 + 2 * step + i
            built.launch(at + 20 + 10 * i, 5, number).kernel(f"k{i}", at + 50 + 50 * i, dur, number)
    return built.build()


def test_a_row_belongs_to_advice_about_most_of_its_device_time():
    trace = two_steps()
    ops = {"host_events": np.flatnonzero((trace.host_events["name"] == "aten::mm").to_numpy())}
    assert rules(trace, {"device_events": np.array([0])}, about_kernels(0, 2)) == ["slow"]
    assert rules(trace, {"device_events": np.array([1])}, about_kernels(0, 2)) == []
    assert rules(trace, ops, about_kernels(0, 2)) == ["slow"]
    assert rules(trace, ops, about_kernels(1, 3)) == []
    assert rules(trace, {"launches": np.array([0, 1])}, about_kernels(0)) == ["slow"]


def test_only_steps_that_advice_is_about_count():
    trace = two_steps()
    first_rows = {"device_events": np.array([0, 2])}
    assert rules(trace, first_rows, about_kernels(2), counted=(False, True)) == ["slow"]
    assert rules(trace, {"device_events": np.array([0])}, about_kernels(0), counted=(False, True)) == []


def test_advice_about_communication_or_copies_is_about_all_of_it():
    built = TraceBuilder().step(1, 0, 900).launch(0, 5, 1).memcpy(10, 50, 1).launch(60, 5, 2)
    trace = built.kernel("ncclDevKernel_AllReduce_Sum_f32", 100, 50, 2).build()
    both = [Advice(rule, "t", "e", "a", 1, "high", "exposed_time") for rule in ("communication", "copies")]
    names = trace.device_events["name"].to_list()
    for row, name in enumerate(names):
        expected = "communication" if name.startswith("nccl") else "copies"
        assert rules(trace, {"device_events": np.array([row])}, *both, counted=(True,)) == [expected]


def test_a_row_that_advice_names_belongs_to_it_without_events():
    claim = Advice("late", "t", "e", "a", 1, "high", "gaps", "host late")
    assert rules(two_steps(), {}, claim, is_named=lambda claim: claim.filter == "host late") == ["late"]
