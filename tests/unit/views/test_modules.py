"""Modules: the tree of their calls, whose work is whose, forward and backward."""

import pytest

from kinetoscope_tb.views.host.modules import VIEW, modules
from kinetoscope_tb.views.host.modules_by_class import modules_by_class
from kinetoscope_tb.views.host.operators import operators
from support.build import TraceBuilder, same
from support.graphs import GraphRecording, Operator, joined

FORWARD = {"Sequence number": 7, "Fwd thread id": 0}
BACKWARD = {"Sequence number": 7, "Fwd thread id": 1}
NODE = "autograd::engine::evaluate_function: AddmmBackward0"
ACCUMULATES = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"


def net(calls=1):
    """A Net with a Linear in it, which runs one operator that launches one kernel, once per call."""
    builder = TraceBuilder()
    for call in range(calls):
        at = 1000 * call
        builder.module("Net_0", at=at, dur=100).module("Linear_0", at=at + 10, dur=60)
        builder.op("aten::linear", at=at + 20, dur=40).launch(at=at + 30, dur=5, correlation=call + 1)
        builder.kernel("gemm", at=at + 50, dur=200, correlation=call + 1)
    return builder


def test_self_is_without_the_modules_inside_and_total_with_them():
    same(
        modules(net().build()),
        """
        name      calls  operators  device_self_ns  device_total_ns  host_self_ns  host_total_ns  python_self_ns  parent_row
        Net_0     1      0          0               200              40            100            40              -
        Linear_0  1      1          200             200              60            60             20              0
        """,
    )


def test_the_provenance_of_a_module_is_that_of_its_device_time_with_nested_modules():
    work = (Operator("my::norm", (4,), 0, ("norm",) * 4), Operator("my::mm", (4,), 1, ("gemm",) * 4))
    captured = GraphRecording("rocm").captured(work).builder.build()
    trace = joined(GraphRecording("rocm").eager(work[:1]).replayed(work, 1).builder.build(), captured)
    expected = {
        "Model_0": "recorded, capture",
        "Model_0 / Layer_0": "recorded, capture",
        "Model_0 / Layer_1": "capture",
    }
    assert dict(modules(trace).select("path", "provenance").rows()) == expected
    classes = dict(modules_by_class(trace).select("name", "provenance").rows())
    assert classes == {"Model": "recorded, capture", "Layer": "recorded, capture"}
    assert set(modules(captured)["provenance"]) == {None}


def test_calls_from_the_same_place_are_one_row():
    same(
        modules(net(calls=3).build()),
        """
        path              calls  operators  device_total_ns  host_total_ns
        Net_0             3      0          600              300
        Net_0 / Linear_0  3      3          600              180
        """,
    )


def test_a_module_called_from_two_places_has_two_rows_and_a_recursive_one_a_row_per_level():
    trace = (
        TraceBuilder()
        .module("A_0", at=0, dur=100)
        .module("ReLU_0", at=10, dur=10)
        .module("A_0", at=30, dur=50)
        .module("ReLU_0", at=40, dur=10)
        .build()
    )
    same(
        modules(trace),
        """
        path                calls  host_self_ns  host_total_ns  parent_row
        A_0                 1      40            100            -
        A_0 / ReLU_0        1      10            10             0
        A_0 / A_0           1      40            50             0
        A_0 / A_0 / ReLU_0  1      10            10             2
        """,
    )
    same(
        modules_by_class(trace),
        """
        name  instances  calls  host_self_ns  host_total_ns
        A     1          2      80            100
        ReLU  1          2      20            20
        """,
    )


def test_modules_of_one_name_are_told_apart_by_their_number():
    trace = TraceBuilder().module("Linear", at=0, dur=10, number=3).module("Linear", at=20, dur=10, number=4).build()
    assert modules(trace)["path"].to_list() == ["Linear #3", "Linear #4"]


def test_replicas_on_several_threads_stand_side_by_side():
    trace = (
        TraceBuilder()
        .module("DataParallel_0", at=0, dur=100)
        .module("Net_1", at=20, dur=30, number=1, thread=2)
        .module("Net_2", at=20, dur=40, number=2, thread=3)
        .build()
    )
    assert modules(trace).select("path", "host_self_ns").rows() == [
        ("DataParallel_0", 100),
        ("Net_1", 30),
        ("Net_2", 40),
    ]


def backward():
    """The operator of `net` run backward on thread 2, a gradient accumulated after it, and an operator of neither."""
    return (
        TraceBuilder()
        .module("Linear_0", at=0, dur=100)
        .op("aten::linear", at=10, dur=80, **FORWARD)
        .op("aten::addmm", at=20, dur=50, **FORWARD)
        .op(NODE, at=200, dur=50, thread=2, **BACKWARD)
        .op("aten::mm", at=210, dur=30, thread=2)
        .launch(at=220, dur=5, correlation=1, thread=2)
        .kernel("gemm", at=230, dur=300, correlation=1)
        .op(ACCUMULATES, at=260, dur=10, thread=2)
        .op("aten::add_", at=300, dur=7, thread=2)
        .launch(at=301, dur=5, correlation=2, thread=2)
        .kernel("add", at=600, dur=11, correlation=2)
        .kernel("graph", at=700, dur=13)
    )


WITH_BACKWARD = """
    name               calls  operators  device_self_ns  host_self_ns  forward_device_ns  backward_device_ns  forward_host_ns  backward_host_ns
    Linear_0           1      1          300             160           0                  300                 100              60
    [outside modules]  -      1          11              7             -                  -                   -                -
    [unattributed]     -      -          13              -             -                  -                   -                -
"""


def test_backward_work_belongs_to_the_module_of_its_forward_operator_by_sequence_number():
    same(modules(backward().build()), WITH_BACKWARD)


def test_an_arrow_tells_the_forward_operator_too():
    builder = backward()
    for event in builder.events:
        event["args"] = {k: v for k, v in event["args"].items() if k not in BACKWARD}
    same(modules(builder.arrow(5, start=(1, 20), end=(2, 200)).build()), WITH_BACKWARD)


def test_an_arrow_decides_between_threads_that_count_alike():
    trace = (
        TraceBuilder()
        .module("A_0", at=0, dur=100, thread=1)
        .op("aten::mm", at=10, dur=10, thread=1, **FORWARD)
        .module("B_0", at=0, dur=100, thread=2)
        .op("aten::mm", at=10, dur=10, thread=2, **FORWARD)
        .op("MmBackward0", at=200, dur=50, thread=3, **BACKWARD)
        .op("MmBackward0", at=300, dur=70, thread=3, **{**BACKWARD, "Fwd thread id": 2})
        .arrow(1, start=(2, 10), end=(3, 200))
        .arrow(2, start=(1, 10), end=(3, 300))
        .build()
    )
    assert modules(trace).select("name", "backward_host_ns").rows() == [("A_0", 70), ("B_0", 50)]


def test_of_operators_with_one_number_the_last_one_made_the_node():
    trace = (
        TraceBuilder()
        .module("Dropout_0", at=0, dur=20)
        .op("aten::empty", at=5, dur=5, **FORWARD)
        .module("Linear_0", at=30, dur=20)
        .op("aten::mm", at=35, dur=5, **FORWARD)
        .op("MmBackward0", at=100, dur=9, **BACKWARD)
        .build()
    )
    assert modules(trace).select("name", "backward_host_ns").rows() == [("Dropout_0", 0), ("Linear_0", 9)]


def test_a_gradient_after_work_of_no_module_belongs_to_none():
    trace = (
        TraceBuilder()
        .module("Linear_0", at=0, dur=100)
        .op("aten::mm", at=10, dur=10, **FORWARD)
        .op(NODE, at=200, dur=10, **BACKWARD)
        .op("autograd::engine::evaluate_function: MulBackward0", at=220, dur=10)
        .op(ACCUMULATES, at=240, dur=10)
        .build()
    )
    assert modules(trace).select("name", "backward_host_ns", "host_self_ns").rows() == [
        ("Linear_0", 10, 110),
        ("[outside modules]", None, 20),
    ]


def test_the_backward_of_a_backward_belongs_to_the_first_module():
    trace = (
        TraceBuilder()
        .module("Linear_0", at=0, dur=100)
        .op("aten::mm", at=10, dur=10, **FORWARD)
        .op("MmBackward0", at=200, dur=50, **BACKWARD)
        .op("aten::mm", at=210, dur=10, **{"Sequence number": 8})
        .op("MmBackward0", at=300, dur=20, **{"Sequence number": 8, "Fwd thread id": 1})
        .build()
    )
    assert modules(trace)["backward_host_ns"].to_list() == [70]


def test_a_module_that_the_backward_pass_calls_again_is_a_row_of_its_own():
    trace = (
        TraceBuilder()
        .module("Net_0", at=0, dur=60)
        .module("Block_0", at=0, dur=50)
        .op("aten::mm", at=10, dur=10, **FORWARD)
        .op("CheckpointFunctionBackward", at=200, dur=100, thread=2, **BACKWARD)
        .module("Block_0", at=210, dur=60, thread=2)
        .op("aten::mm", at=220, dur=10, thread=2)
        .build()
    )
    same(
        modules(trace),
        """
        path             calls  operators  forward_host_ns  backward_host_ns
        Net_0            1      0          60               40
        Net_0 / Block_0  1      1          50               40
        Block_0          1      1          60               0
        """,
    )


def test_device_time_adds_up_to_that_of_the_operators():
    trace = backward().build()
    assert modules(trace)["device_self_ns"].sum() == operators(trace)["device_self_ns"].sum() == 324
    assert modules_by_class(trace)["device_self_ns"].sum() == 324


@pytest.mark.parametrize("cat", ["user_annotation", "cpu_op"])
def test_lightning_s_hooks_and_modules_make_the_tree_where_there_are_no_stacks(cat):
    trace = (
        TraceBuilder()
        .event(cat, "[pl][profile]run_training_batch", at=0, dur=100)
        .event(cat, "[pl][module]torch.nn.modules.linear.Linear: model.fc", at=10, dur=50)
        .op("aten::linear", at=20, dur=10)
        .build()
    )
    same(
        modules(trace),
        """
        name                calls  operators  host_self_ns  host_total_ns  attribute  parent_row
        run_training_batch  1      0          50            100            -          -
        Linear: model.fc    1      1          50            50             model.fc   0
        """,
    )


def test_lightning_only_names_a_module_that_the_stacks_tell_already():
    trace = (
        TraceBuilder()
        .module("Linear_0", at=0, dur=100)
        .annotation("[pl][module]torch.nn.modules.linear.Linear: model.fc", at=10, dur=80)
        .op("aten::linear", at=20, dur=10)
        .build()
    )
    assert modules(trace).select("name", "attribute", "operators", "host_self_ns").rows() == [
        ("Linear_0", "model.fc", 1, 100)
    ]


def test_stacks_without_a_module_are_missing_with_the_option_that_records_modules():
    trace = TraceBuilder().python("f.py(1): f", at=0, dur=10).op("aten::mm", at=1, dur=2).build()
    assert VIEW.is_missing(trace)
    assert "with_stack=True" in VIEW.hint
