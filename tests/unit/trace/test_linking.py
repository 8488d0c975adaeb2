"""From a device row back to the call, the operator and the step that it belongs to."""

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.views.host.operators import operators
from support.build import TraceBuilder, same


def names(trace, column="op"):
    """(device row, launching operator) by name."""
    ops = trace.host_events["name"].cast(str).to_list()
    pairs = zip(trace.device_events["name"].cast(str), trace.device_events[column], strict=True)
    return [(name, ops[row] if row != NONE else None) for name, row in pairs]


def test_one_call_may_launch_many_kernels():
    trace = (
        TraceBuilder()
        .op("aten::graph", 0, 50)
        .launch(10, 5, 3, name="cudaGraphLaunch")
        .kernel("a", 20, 5, 3)
        .kernel("b", 30, 5, 3)
        .build()
    )
    assert names(trace) == [("a", "aten::graph"), ("b", "aten::graph")]


def test_the_innermost_operator_launches():
    trace = TraceBuilder().op("outer", 0, 50).op("inner", 10, 20).launch(12, 5, 1).kernel("k", 60, 5, 1).build()
    assert names(trace) == [("k", "inner")]


def test_an_annotation_inside_an_operator_launches_nothing_itself():
    trace = TraceBuilder().op("outer", 0, 50).annotation("mine", 10, 20).launch(12, 5, 1).kernel("k", 60, 5, 1).build()
    assert names(trace) == [("k", "outer")]


def test_an_operator_of_another_thread_launches_nothing():
    trace = TraceBuilder().op("other", 0, 50, thread=2).launch(12, 5, 1).kernel("k", 60, 5, 1).build()
    assert names(trace) == [("k", None)]


def test_a_numeric_and_a_textual_thread_are_one():
    trace = TraceBuilder().op("a", 0, 50, thread="7").launch(12, 5, 1, thread=7).kernel("k", 60, 5, 1).build()
    assert names(trace) == [("k", "a")]


def test_external_id_helps_where_containment_finds_none():
    builder = TraceBuilder().op("a", 0, 50, thread=2, **{"External id": 9}).launch(12, 5, 1, **{"External id": 9})
    assert names(builder.kernel("k", 60, 5, 1).build()) == [("k", "a")]


def test_external_id_of_an_operator_that_does_not_cover_the_call_is_an_accident():
    builder = TraceBuilder().op("a", 100, 50, thread=2, **{"External id": 9}).launch(12, 5, 1, **{"External id": 9})
    assert names(builder.kernel("k", 60, 5, 1).build()) == [("k", None)]


def test_a_kernel_without_a_call_stays_unattributed():
    trace = TraceBuilder().op("a", 0, 50).kernel("k", 10, 5, 77).kernel("l", 20, 5, 0).build()
    assert names(trace) == [("k", None), ("l", None)]


def test_memory_belongs_to_the_innermost_operator():
    trace = TraceBuilder().op("outer", 0, 50).op("inner", 10, 20).memory(8, 15).memory(-8, 40).memory(4, 60).build()
    ops = trace.host_events["name"].cast(str).to_list()
    assert [ops[row] if row != NONE else None for row in trace.memory["op"]] == ["inner", "outer", None]


def test_device_rows_belong_to_the_step_that_launched_them():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .step(2, 100, 100)
        .launch(50, 10, 1)
        .launch(95, 10, 2)  # lies in no step wholly
        .launch(150, 10, 3)
        .kernel("a", 110, 5, 1)
        .kernel("b", 120, 5, 2)
        .kernel("c", 160, 5, 3)
        .build()
    )
    assert trace.device_events["step"].to_list() == [0, NONE, 1]


def test_nesting_is_by_time_on_one_thread():
    trace = (
        TraceBuilder().op("a", 0, 100).op("b", 0, 100).op("c", 10, 20).op("d", 30, 20).op("e", 0, 100, thread=2).build()
    )
    same(
        trace.host_events.select("name", "parent", "depth", "self_ns"),
        """
        name  parent  depth  self_ns
        a     -1      0      0
        b     0       1      60
        c     1       2      20
        d     1       2      20
        e     -1      0      100
        """,
    )


def test_a_range_that_outlasts_the_one_it_began_in_is_its_sibling_and_is_counted():
    trace = TraceBuilder().op("a", 0, 100).op("b", 10, 40).op("c", 30, 40).build()
    assert trace.host_events["parent"].to_list() == [-1, 0, 0]
    assert trace.host_events["self_ns"].to_list() == [40, 40, 40]
    assert [(f.rule, f.count) for f in trace.diagnostics] == [("host_overlap", 1)]


def test_touching_ranges_are_siblings():
    trace = TraceBuilder().op("a", 0, 10).op("b", 10, 5).op("c", 10, 0).build()
    assert trace.host_events["parent"].to_list() == [-1, -1, 1]


def test_runtime_calls_are_no_self_time():
    trace = (
        TraceBuilder()
        .op("a", 0, 100)
        .launch(10, 20, 1)
        .launch(15, 5, 2, cat="cuda_driver")
        .op("b", 50, 20)
        .launch(55, 5, 3)
        .build()
    )
    assert dict(zip(trace.host_events["name"].cast(str), trace.host_events["self_ns"], strict=True)) == {
        "a": 60,
        "b": 15,
    }


def test_a_backend_s_annotation_is_the_operator_s_own_time_and_another_annotation_is_not():
    def own(annotation):
        trace = (
            TraceBuilder()
            .op("record_param_comms", at=0, dur=100)
            .annotation(annotation, at=10, dur=70)
            .launch(at=20, dur=30, correlation=1)
            .build()
        )
        return trace.host_events["self_ns"].to_list()

    assert own("my part") == [30, 40]
    assert own("nccl:all_reduce") == [70, 0]


def test_an_annotation_of_a_backend_s_own_thread_keeps_its_time():
    trace = TraceBuilder().annotation("gloo:all_reduce", at=0, dur=50).launch(at=10, dur=5, correlation=1).build()
    assert trace.host_events["self_ns"].to_list() == [45]


def test_a_call_that_wraps_one_of_the_same_name_is_seen_once():
    trace = TraceBuilder().op("mm", 0, 100).op("mm", 10, 80).op("mm", 20, 20).op("other", 50, 5).build()
    assert trace.host_events["is_repeat"].to_list() == [False, True, False, False]


def test_an_operator_that_only_wraps_another_overload_of_itself_is_called_once():
    trace = TraceBuilder().op("aten::sum", 10, 50).op("aten::sum.dim_IntList", 20, 30).build()
    assert trace.host_events["is_repeat"].to_list() == [False, True]
    row = operators(trace).row(0, named=True)
    assert (row["name"], row["calls"], row["host_self_ns"], row["host_total_ns"]) == ("aten::sum", 1, 50, 50)
