"""Results about a trace are computed once, also by several threads at once, and don't keep the trace alive."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from weakref import ref

import pytest

from kinetoscope_tb.measures.time import idle_causes
from kinetoscope_tb.trace.results import once_per_trace
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.machine import Machine


def counting():
    calls = []

    @once_per_trace
    def count(trace, *arguments):
        calls.append(arguments)
        return len(calls)

    return count, calls


def a_trace():
    return TraceBuilder().op("aten::mm", 0, 10).build()


def test_each_trace_and_each_argument_has_its_own_result():
    count, _ = counting()
    one = a_trace()
    other = replace(one)  # equal, but another trace
    assert [count(one), count(one), count(one, 1), count(other), count(one, 1), count(other)] == [1, 1, 2, 3, 2, 3]


def test_threads_that_come_at_once_wait_for_one_computation():
    count, calls = counting()
    trace, start = a_trace(), threading.Barrier(8)

    def ask(_):
        start.wait()
        return count(trace)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(ask, range(8))) == {1}
    assert len(calls) == 1


def test_a_failure_is_not_cached():
    fails = [True, False]

    @once_per_trace
    def fragile(trace):
        if fails.pop(0):
            raise ValueError("once")
        return 1

    trace = a_trace()
    with pytest.raises(ValueError, match="once"):
        fragile(trace)
    assert fragile(trace) == 1


def test_results_go_with_their_trace():
    trace = Machine().steps(lambda _: None, 2)
    for view in ("idle", "gaps", "advice", "critical_path"):
        if not VIEWS[view].is_missing(trace):
            VIEWS[view].run(trace)
    gone = ref(trace)
    del trace
    gc.collect()
    assert gone() is None


def test_the_views_of_idle_time_split_the_gaps_of_a_device_once(monkeypatch):
    splits, split = [], idle_causes._parts
    monkeypatch.setattr(idle_causes, "_parts", lambda trace, whole: splits.append(whole) or split(trace, whole))
    machine = Machine()
    trace = machine.steps(lambda _: machine.kernel(1_000_000), 3)
    for view in ("advice", "idle", "gaps"):
        VIEWS[view].run(trace)
    assert len(splits) == 1  # one device with one stream: the same gaps for the worker, the device and the stream
