"""Trees against a slow recursion: modules forward and backward, Python calls, call stacks."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.calls.call_tree import WITHIN
from kinetoscope_tb.measures.calls.module_times import OUTSIDE, UNATTRIBUTED
from kinetoscope_tb.views.host.call_stacks import call_stacks
from kinetoscope_tb.views.host.modules import modules
from kinetoscope_tb.views.host.modules_by_class import modules_by_class
from kinetoscope_tb.views.host.operators import operators
from kinetoscope_tb.views.host.python_calls import python_calls
from support import tree_oracle
from support.build import TraceBuilder
from support.examples import examples
from support.strategies import correlations, lengths, threads, times

few = examples(150)
FORWARD_THREAD = 1  # torch numbers nodes per thread, and the oracle knows of one


@st.composite
def rows(draw, *, backward=True):
    """One row as (method, arguments, keywords) of TraceBuilder."""
    at, dur, thread = draw(times), draw(lengths), draw(threads)
    match draw(st.sampled_from(["module", "module", "python", "op", "op", "forward", "backward", "launch", "kernel"])):
        case "module":
            return "module", (draw(st.sampled_from(["A_0", "B_0", "B_1"])), at, dur), {"thread": thread}
        case "python":
            return "python", (draw(st.sampled_from(["f.py(1): f", "g.py(2): g"])), at, dur), {"thread": thread}
        case "forward":
            number = {"Sequence number": draw(st.integers(0, 3))}
            return "op", ("aten::mm", at, dur), {"thread": FORWARD_THREAD, **number}
        case "backward" if backward:
            number = {"Sequence number": draw(st.integers(0, 3)), "Fwd thread id": 1}
            return "op", ("MmBackward0", at, dur), {"thread": thread, **number}
        case "launch":
            return "launch", (at, dur, draw(correlations)), {"thread": thread}
        case "kernel":
            return "kernel", ("gemm", at, dur, draw(correlations)), {}
        case _:
            return "op", (draw(st.sampled_from(["aten::add", "aten::mul"])), at, dur), {"thread": thread}


def traces(**kinds):
    def built(drawn):
        builder = TraceBuilder()
        for method, arguments, keywords in drawn:
            getattr(builder, method)(*arguments, **keywords)
        return builder.build()

    return st.lists(rows(**kinds), min_size=1, max_size=25).map(built)


def nested(trace, *, modules_only):
    """Whether no two calls overlap in part."""
    calls = tree_oracle.calls_of(trace, modules_only=modules_only)
    pairs = ((a, b) for a in calls for b in calls if a.thread == b.thread)
    return not any(a.start < b.start < a.end < b.end for a, b in pairs)


@few
@given(traces())
def test_what_holds_of_the_trees_of_any_trace(trace):
    of_modules, of_calls = modules(trace), python_calls(trace)
    if nested(trace, modules_only=True):
        assert_modules_are_those_of_a_slow_recursion(trace, of_modules)
    if trace.python_calls.height and nested(trace, modules_only=False):
        assert_python_calls_are_those_of_a_slow_recursion(trace, of_calls)
    for tree in (of_modules, of_calls):
        assert_totals_are_self_times_and_the_totals_of_the_rows_inside(tree)
    assert_forward_and_backward_parts_add_up_to_the_total(of_modules)
    whole = trace.device_events["dur_ns"].sum()
    for table in (of_modules, modules_by_class(trace), of_calls, call_stacks(trace), operators(trace)):
        assert table["device_self_ns"].sum() == whole


def assert_modules_are_those_of_a_slow_recursion(trace, table):
    host, device = tree_oracle.module_sums(trace)
    for row in table.iter_rows(named=True):
        path = {OUTSIDE: None, UNATTRIBUTED: UNATTRIBUTED}.get(row["path"], tuple(row["path"].split(WITHIN)))
        if path == UNATTRIBUTED:
            assert row["device_self_ns"] == device["unattributed"]
            continue
        assert row["host_self_ns"] == host[path, False] + host[path, True]
        if trace.device_events.height:
            assert row["device_self_ns"] == device[path, False] + device[path, True]
    places = {
        *(key[0] for key in host if key[0] and host[key]),
        *(k[0] for k in device if k != "unattributed" and k[0]),
    }
    assert {WITHIN.join(place) for place in places} <= set(table["path"])


def assert_totals_are_self_times_and_the_totals_of_the_rows_inside(table):
    for side in ("host", "device"):
        own, total = table[f"{side}_self_ns"].to_list(), table[f"{side}_total_ns"].to_list()
        inside = [0] * table.height
        for row, around in enumerate(table["parent_row"]):
            if around is not None:
                inside[around] += total[row] or 0
        assert [(o or 0) + i for o, i in zip(own, inside, strict=True)] == [t or 0 for t in total]


def assert_forward_and_backward_parts_add_up_to_the_total(table):
    for row in table.iter_rows(named=True):
        if row["forward_host_ns"] is not None:
            assert row["forward_host_ns"] + row["backward_host_ns"] == row["host_total_ns"]
            assert row["python_self_ns"] <= row["host_self_ns"]


def assert_python_calls_are_those_of_a_slow_recursion(trace, table):
    expected = tree_oracle.python_sums(trace)
    numbers = {name: str(row) for row, name in enumerate(trace.threads.select("tid").to_series())}
    paths = []
    for row in table.iter_rows(named=True):
        name = row["function"] if row["file"] is None else f"{row['file']}({row['line']}): {row['function']}"
        name = numbers[name.removeprefix("thread ")] if row["kind"] == "thread" else name
        around = () if row["parent_row"] is None else paths[row["parent_row"]]
        paths.append((*around, name))
    for path, row in zip(paths, table.iter_rows(named=True), strict=True):
        if row["kind"] in ("thread", "rest"):
            continue
        calls, host, device = expected.pop(path)
        assert (row["calls"], row["host_self_ns"], row["device_self_ns"] or 0) == (calls, host, device)
    assert not expected


@few
@given(traces(backward=False))
def test_stacks_are_the_python_calls_around_an_operator(trace):
    if not nested(trace, modules_only=False):
        return
    got = Counter()
    for name, stack, calls in call_stacks(trace).select("name", "stack", "calls").rows():
        if calls is not None:
            got[name, stack] += calls
    assert got == tree_oracle.stacks(trace)
