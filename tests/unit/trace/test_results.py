"""What was computed of a trace: once for all who ask, counted as it enters, and freed with the trace."""

import gc
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from weakref import ref

import numpy as np
import pytest

from kinetoscope_tb.trace import results as results_module
from kinetoscope_tb.trace.results import Results
from kinetoscope_tb.views import VIEWS
from support.machine import Machine
from support.waiting import LIMIT_S


class Subject:
    """Stands for a trace."""

    def __init__(self):
        self.results = Results(self)


@pytest.fixture
def subject():
    return Subject()


def zeros(_subject, size):
    return np.zeros(size, np.int8)


def test_a_result_is_computed_once_for_the_same_function_and_arguments(subject):
    results = subject.results
    first = results.get(zeros, 10).result()
    assert results.get(zeros, 10).result() is first
    assert results.get(zeros, 20).result() is not first


def test_the_size_of_a_result_is_counted_once(subject, monkeypatch):
    subject.results.get(zeros, 1_000)
    measured, of = [], results_module.HeldArrays.of
    monkeypatch.setattr(results_module.HeldArrays, "of", lambda *values: measured.append(values) or of(*values))
    for _ in range(3):
        subject.results.get(zeros, 1_000)
        subject.results.get(zeros, 500)
    assert [array.size for (array,) in measured] == [500]
    assert subject.results.held_bytes == 1_500


def test_an_array_that_several_results_hold_counts_once_and_as_long_as_one_of_them_is_cached(subject):
    shared, results = np.zeros(1_000, np.int8), subject.results

    def part(_subject, stop):
        return shared[:stop]

    for stop in range(5):
        results.get(part, stop, most=2)
    assert results.held_bytes == 1_000
    results.get(zeros, 10)
    results.put(zeros, np.zeros(7, np.int8))
    results.put(zeros, np.zeros(5, np.int8))
    assert results.held_bytes == 1_000 + 10 + 5


def test_what_the_trace_holds_itself_does_not_count():
    trace = Machine().steps(lambda _: None, 2)
    trace.results.get(lambda trace: {"rows": trace.host_events, "more": np.zeros(9, np.int8)})
    assert trace.results.held_bytes == 9


def test_a_cached_property_counts_from_the_next_result_on(subject):
    @dataclass(frozen=True)
    class Curve:
        size: int

        @cached_property
        def values(self):
            return np.zeros(self.size, np.int8)

    def curve(_subject, size):
        return Curve(size)

    assert subject.results.get(curve, 100).result().values.size == 100
    subject.results.get(curve, 1)
    assert subject.results.held_bytes == 100


def test_of_large_results_only_a_few_of_a_function_are_cached(subject):
    computed = []

    def a(_subject, number):
        computed.append(("a", number))

    def b(_subject, number):
        computed.append(("b", number))

    for function, number in ((a, 1), (a, 2), (b, 1), (a, 1), (a, 3), (a, 1), (b, 1), (a, 2)):
        subject.results.get(function, number, most=2)
    assert computed == [("a", 1), ("a", 2), ("b", 1), ("a", 3), ("a", 2)]


def test_what_waits_for_a_thread_is_computed_by_the_one_that_needs_it_now(subject):
    waiting = []
    later = subject.results.get(zeros, 10, submit=waiting.append)
    assert not later.done()
    now = subject.results.get(zeros, 10)
    assert later is now
    assert later.done()
    (begin,) = waiting
    begin()
    assert later.result() is now.result()


def test_what_another_thread_computes_is_waited_for(subject):
    begun, may_end, calls = threading.Event(), threading.Event(), []

    def slow(_subject):
        calls.append(1)
        begun.set()
        assert may_end.wait(LIMIT_S)
        return 1

    with ThreadPoolExecutor(2) as pool:
        answer = subject.results.get(slow, submit=pool.submit)
        assert begun.wait(LIMIT_S)
        asked = pool.submit(lambda: subject.results.get(slow).result())
        may_end.set()
        assert (answer.result(LIMIT_S), asked.result(LIMIT_S), len(calls)) == (1, 1, 1)


def test_a_failure_is_the_answer_of_who_waits_for_it_but_is_not_cached_for_who_computes(subject):
    calls = []

    def fragile(_subject):
        calls.append(1)
        raise ValueError(f"{len(calls)}")

    for expected in ("1", "2"):
        with pytest.raises(ValueError, match=expected):
            subject.results.get(fragile).result()
    polled = [subject.results.get(fragile, submit=lambda begin: begin()) for _ in range(3)]
    assert {str(future.exception()) for future in polled} == {"3"}


def test_a_result_that_was_dropped_while_it_was_computed_counts_nothing(subject):
    waiting: list[object] = []
    dropped: Future[object] = subject.results.get(zeros, 10, submit=waiting.append, most=1)
    subject.results.get(zeros, 20, most=1)
    for begin in waiting:
        begin()
    assert dropped.result(LIMIT_S).size == 10
    assert subject.results.held_bytes == 20


def test_a_trace_is_freed_with_its_results_without_a_search_for_cycles():
    gc.collect()
    gc.disable()
    try:
        machine = Machine()
        trace = machine.steps(lambda _: None, 3)
        for view in VIEWS.values():
            if not view.is_missing(trace):
                view.run(trace)
        dropped = ref(trace)
        del trace, machine
        assert dropped() is None
    finally:
        gc.enable()
