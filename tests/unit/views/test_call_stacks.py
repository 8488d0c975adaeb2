"""Call stacks: from where an operator was called, as torch wrote it or as Python's calls tell."""

import numpy as np

from kinetoscope_tb.measures.python.call_stacks import stacks_as_text
from kinetoscope_tb.views.host import call_stacks as module
from kinetoscope_tb.views.host.call_stacks import VIEW, call_stacks, events_of_row
from kinetoscope_tb.views.host.operators import operators
from support.build import TraceBuilder, same
from support.graphs import GraphRecording, Operator, joined

FORWARD = {"Sequence number": 7, "Fwd thread id": 0}
BACKWARD = {"Sequence number": 7, "Fwd thread id": 1}


def stacks(trace, **arguments):
    columns = call_stacks(trace, **arguments).select("stack", "is_forward_stack", "calls")
    return [(stack and stack.split("\n"), of_forward, calls) for stack, of_forward, calls in columns.rows()]


def test_stacks_are_those_that_torch_wrote_with_the_operator():
    stack = {"Call stack": "f.py(3): f;main.py(1): <module>;"}
    trace = (
        TraceBuilder()
        .op("aten::mm", at=0, dur=10, **stack)
        .op("aten::mm", at=20, dur=30, **stack)
        .op("aten::mm", at=60, dur=5, **{"Call stack": "g.py(2): g;"})
        .build()
    )
    same(
        call_stacks(trace, name="aten::mm"),
        """
        name      stack                                 is_forward_stack  calls  host_self_ns  host_total_ns
        aten::mm  f.py(3): f < main.py(1): <module>     False          2      40            40
        aten::mm  g.py(2): g                            False          1      5             5
        """,
    )


def test_stacks_are_rebuilt_from_the_python_calls_around_the_operator():
    trace = (
        TraceBuilder()
        .python("main.py(1): <module>", at=0, dur=100)
        .python("nn.Module: Linear_0", at=10, dur=50)
        .op("aten::linear", at=20, dur=30)
        .op("aten::addmm", at=25, dur=20)
        .op("aten::addmm", at=70, dur=10)
        .op("aten::addmm", at=200, dur=10)
        .build()
    )
    assert stacks(trace, name="aten::addmm") == [
        (["nn.Module: Linear_0", "main.py(1): <module>"], False, 1),
        (["main.py(1): <module>"], False, 1),
        (None, None, 1),
    ]


def test_an_operator_without_a_written_stack_has_that_of_the_operator_around_it():
    trace = (
        TraceBuilder()
        .op("aten::linear", at=0, dur=30, **{"Call stack": "f.py(3): f;"})
        .op("aten::addmm", at=5, dur=20)
        .build()
    )
    assert stacks(trace, name="aten::addmm") == [(["f.py(3): f"], False, 1)]


def test_backward_work_has_the_frames_of_its_forward_operator():
    trace = (
        TraceBuilder()
        .python("model.py(7): forward", at=0, dur=50)
        .op("aten::mm", at=10, dur=10, **FORWARD)
        .python("train.py(2): backward", at=60, dur=200)
        .op("MmBackward0", at=100, dur=50, **BACKWARD)
        .op("aten::mm", at=110, dur=30)
        .op("aten::add_", at=200, dur=5)
        .build()
    )
    assert stacks(trace, name="MmBackward0") == [(["model.py(7): forward"], True, 1)]
    assert stacks(trace, name="aten::mm") == [
        (["model.py(7): forward"], True, 1),
        (["model.py(7): forward"], False, 1),
    ]
    assert stacks(trace, name="aten::add_") == [(["train.py(2): backward"], False, 1)]


def test_python_that_the_backward_pass_calls_is_the_stack_of_what_it_runs():
    trace = (
        TraceBuilder()
        .python("model.py(7): forward", at=0, dur=50)
        .op("MyFunction", at=10, dur=10, **FORWARD)
        .op("MyFunctionBackward", at=100, dur=50, thread=2, **BACKWARD)
        .python("model.py(9): backward", at=110, dur=30, thread=2)
        .op("aten::mul", at=120, dur=10, thread=2)
        .build()
    )
    assert stacks(trace, name="aten::mul") == [(["model.py(9): backward"], False, 1)]


def test_backward_stacks_that_torch_wrote_say_less_than_those_of_the_forward_operator():
    forward, backward = (
        {"Call stack": "model.py(7): forward;"},
        {"Call stack": "<built-in run_backward>;train.py(2): f;"},
    )
    inside = {"Call stack": "model.py(9): backward;<built-in run_backward>;train.py(2): f;"}
    trace = (
        TraceBuilder()
        .op("aten::mm", at=0, dur=10, **FORWARD, **forward)
        .op("MmBackward0", at=100, dur=50, **BACKWARD, **backward)
        .op("aten::t", at=110, dur=10, **backward)
        .op("aten::mul", at=130, dur=10, **inside)
        .build()
    )
    assert stacks(trace, name="aten::t") == [(["model.py(7): forward"], True, 1)]
    assert stacks(trace, name="aten::mul")[0][0][0] == "model.py(9): backward"


def test_stacks_that_differ_in_the_address_of_an_object_are_one():
    builder = TraceBuilder()
    for at in (0, 20):
        frame = f"<built-in method mm of type object at 0x7f{at}>"
        builder.op("aten::mm", at=at, dur=10, **{"Call stack": f"{frame};f.py(1): f;"})
    assert stacks(builder.build()) == [(["<built-in method mm of type object>", "f.py(1): f"], False, 2)]


def test_an_empty_stack_is_none():
    trace = TraceBuilder().op("aten::mm", at=0, dur=1, **{"Call stack": ""}).build()
    assert VIEW.is_missing(trace)
    assert stacks(trace) == [(None, None, 1)]


def test_only_calls_with_the_shapes_count():
    builder = TraceBuilder().python("f.py(1): f", at=0, dur=100)
    for at, shapes in ((0, [[2, 2]]), (20, [[3, 3]]), (40, [[3, 3]])):
        builder.op("aten::relu", at=at, dur=10, **{"Input Dims": shapes})
    trace = builder.build()
    assert stacks(trace, name="aten::relu") == [(["f.py(1): f"], False, 3)]
    assert stacks(trace, name="aten::relu", input_shapes="[[3, 3]]") == [(["f.py(1): f"], False, 2)]
    assert stacks(trace, name="aten::relu", input_shapes="[]") == []


def test_times_and_memory_are_those_of_the_operator_split_by_stack():
    trace = (
        TraceBuilder()
        .python("f.py(1): f", at=0, dur=50)
        .op("aten::mm", at=10, dur=30)
        .launch(at=15, dur=5, correlation=1)
        .kernel("gemm", at=30, dur=100, correlation=1)
        .memory(64, at=12)
        .op("aten::mm", at=100, dur=10)
        .kernel("lost", at=300, dur=7)
        .build()
    )
    parts, whole = call_stacks(trace), operators(trace)
    assert parts.select("stack", "device_self_ns", "host_self_ns", "host_self_bytes").rows() == [
        ("f.py(1): f", 100, 25, 64), (None, 7, None, None), (None, 0, 10, 0),
    ]  # fmt: skip
    for amount in ("calls", "device_self_ns", "device_total_ns", "host_self_ns", "host_total_ns", "host_self_bytes"):
        assert parts[amount].sum() == whole[amount].sum()


def test_replayed_calls_of_a_graph_have_the_stacks_of_its_capture():
    work = (Operator("my::norm", (4,), 0, ("norm",) * 4), Operator("my::mm", (4,), 1, ("gemm",) * 4))
    captured = GraphRecording("rocm", has_text=True).captured(work).builder.build()
    recorded = GraphRecording("rocm", has_text=True).eager(work[:1]).replayed(work, 1).builder.build()
    trace = joined(recorded, captured)
    same(
        call_stacks(trace).select("name", "stack", "calls", "device_self_ns"),
        """
        name      stack                                     calls  device_self_ns
        my::norm  nn.Module: Layer_0 < nn.Module: Model_0  2      8000
        my::mm    nn.Module: Layer_1 < nn.Module: Model_0  1      4000
        """,
    )
    assert call_stacks(trace)["device_self_ns"].sum() == operators(trace)["device_self_ns"].sum()
    key = call_stacks(trace).select("name", "stack", "is_forward_stack").row(1, named=True)
    replayed = trace.device_events["name"].gather(events_of_row(trace, key)["device_events"])
    assert replayed.to_list() == ["gemm"] * 4


def test_too_many_stacks_end_with_one_row_of_all_others(monkeypatch):
    monkeypatch.setattr(module, "MOST_STACKS", 1)
    builder = TraceBuilder()
    for i in range(3):
        builder.python(f"f.py({i}): f", at=100 * i, dur=90).op("aten::mm", at=100 * i + 10, dur=10 + i)
    rows = call_stacks(builder.build(), name="aten::mm").select("name", "stack", "calls", "host_self_ns").rows()
    assert rows == [("aten::mm", "f.py(2): f", 1, 12), ("aten::mm", "[other stacks]", 2, 21)]
    assert call_stacks(builder.build())["name"].to_list() == ["aten::mm", "[other stacks]"]


def test_without_stacks_it_says_how_to_record_them():
    assert VIEW.is_missing(TraceBuilder().op("aten::mm", at=0, dur=1).build())
    assert not VIEW.is_missing(TraceBuilder().op("aten::mm", at=0, dur=1, **{"Call stack": "f.py(1): f;"}).build())
    assert "with_stack=True" in VIEW.hint


def test_stacks_as_text_are_rebuilt_where_neither_the_event_nor_one_around_it_has_any():
    trace = (
        TraceBuilder()
        .python("main.py(1): <module>", at=0, dur=100)
        .op("aten::linear", at=5, dur=50)
        .python("<built-in method mm of type object at 0x7f0c>", at=10, dur=30)
        .op("aten::mm", at=20, dur=10, **{"Call stack": ""})
        .op("aten::relu", at=60, dur=20, **{"Call stack": "f.py(3): f;main.py(1): <module>"})
        .op("aten::clamp", at=65, dur=5)
        .op("aten::add", at=200, dur=10)
        .python("other.py(2): work", at=0, dur=100, thread=2)
        .op("MmBackward0", at=20, dur=10, thread=2, **BACKWARD)
        .build()
    )
    rows = np.array([0, 1, 2, 3, -1, 4, 5], np.int32)
    assert stacks_as_text(trace, rows).to_list() == [
        "main.py(1): <module>",
        "<built-in method mm of type object>;main.py(1): <module>",
        "f.py(3): f;main.py(1): <module>",
        None,
        None,
        None,
        "other.py(2): work",
    ]


def test_stacks_as_text_are_missing_where_no_python_call_is_around():
    trace = TraceBuilder().op("aten::mm", at=0, dur=5).python("f.py(1): f", at=10, dur=5).build()
    assert stacks_as_text(trace, np.array([0, -1], np.int32)).to_list() == [None, None]


def test_stacks_as_text_without_python_calls_are_those_of_the_file():
    trace = TraceBuilder().op("aten::mm", at=0, dur=1, **{"Call stack": "f.py(1): f;"}).op("aten::mm", 5, 1).build()
    assert stacks_as_text(trace, np.array([0, 1], np.int32)).to_list() == ["f.py(1): f;", None]
