"""Python functions: totals over all callers, in which each instant counts once."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.views.host.python_functions import VIEW, python_functions
from support.build import TraceBuilder, same


def test_a_function_has_the_time_of_all_its_calls():
    builder = TraceBuilder().python("train.py(1): main", at=0, dur=300)
    for call, at in enumerate((10, 110)):
        builder.python("train.py(5): step", at=at, dur=80).op("aten::mm", at=at + 10, dur=50)
        builder.launch(at=at + 25, dur=5, correlation=call + 1).kernel(
            "gemm", at=at + 40, dur=100, correlation=call + 1
        )
    same(
        python_functions(builder.build()),
        """
        function  kind      calls  host_self_ns  host_total_ns  device_self_ns  device_total_ns  file      line
        step      function  2      160           160            200             200              train.py  5
        main      function  1      140           300            0               200              train.py  1
        """,
    )


def test_threads_that_only_wait_are_left_out_unless_one_is_chosen():
    acquire = "<built-in method acquire of _thread.lock object at 0x7f>"
    builder = TraceBuilder().python("train.py(1): main", at=0, dur=100, thread=1)
    builder.python("train.py(7): pin", at=0, dur=900, thread=2).python(acquire, at=1, dur=890, thread=2)
    trace = builder.build()
    assert python_functions(trace)["function"].to_list() == ["main"]
    assert python_functions(trace, thread="2")["function"].to_list() == [
        "<built-in method acquire of _thread.lock object>", "pin",
    ]  # fmt: skip
    assert VIEW.events_of_row(trace, {"function": "pin", "file": "train.py", "line": 7})["python_calls"].size == 0
    alone = TraceBuilder().python(acquire, at=1, dur=890, thread=2).build()
    assert python_functions(alone).height == 1


def test_recursion_counts_each_instant_once():
    builder = TraceBuilder().python("f.py(1): f", at=0, dur=30).python("f.py(9): g", at=5, dur=20)
    trace = builder.python("f.py(1): f", at=10, dur=10).build()
    assert python_functions(trace).select("function", "calls", "host_self_ns", "host_total_ns").rows() == [
        ("f", 2, 20, 30), ("g", 1, 10, 20),
    ]  # fmt: skip


def test_the_events_of_a_row_are_the_functions_calls():
    builder = TraceBuilder().python("f.py(1): f", at=0, dur=30).python("<built-in function len>", at=5, dur=2)
    trace = builder.python("<built-in function len>", at=9, dur=2).build()
    key = {"function": "<built-in function len>", "file": None, "line": None}
    assert VIEW.events_of_row(trace, key)["python_calls"].tolist() == [1, 2]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=25))
def test_totals_are_the_time_in_which_the_function_is_on_the_stack(calls):
    """Each call opens after closing some of the open ones; time moves by 1 with every opening and closing."""
    now, stack, spans = 0, [], []
    for name, closings in [*calls, ("", len(calls))]:
        closed = [stack.pop() for _ in range(min(closings, len(stack)))]
        spans += [(*call, now + i) for i, call in enumerate(closed, 1)]
        now += len(closed)
        if name:
            stack.append((name, now := now + 1))
    builder = TraceBuilder()
    for name, start, end in sorted(spans, key=lambda span: span[1]):
        builder.python(f"f.py(1): {name}", at=start, dur=end - start)
    table = python_functions(builder.build())
    edges = sorted({edge for _, start, end in spans for edge in (start, end)})
    for name, total in table.select("function", "host_total_ns").rows():
        active = [any(n == name and s <= at < e for n, s, e in spans) for at, _ in pairwise(edges)]
        assert total == np.dot(active, np.diff(edges))
    covered = [any(s <= at < e for _, s, e in spans) for at, _ in pairwise(edges)]
    assert table["host_self_ns"].sum() == np.dot(covered, np.diff(edges))


def test_which_function_it_is_stands_before_its_numbers():
    assert [column.name for column in VIEW.table.columns][:3] == list(VIEW.table.key)
