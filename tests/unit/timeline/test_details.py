"""What is said of one slice."""

import numpy as np
import pytest

from kinetoscope_tb.reader import read
from kinetoscope_tb.table import TEXT, Column, Table
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.details.details import details
from kinetoscope_tb.timeline.details.duration_stats import nearest_rank
from kinetoscope_tb.timeline.details.row_links import filter_of
from kinetoscope_tb.view import Slices, View
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder
from support.graphs import GraphRecording, Operator, joined


def details_of(built, name, nth=0):
    """The details of the nth slice of that name, in order of time."""
    trace = joined(built.build())
    made = timeline(trace)
    numbers = [number for number in range(made.size) if made.labels.texts[made.label[number]] == name]
    number = sorted(numbers, key=lambda number: made.start_ns[number])[nth]
    return details(trace, made, number, [view for view in VIEWS.values() if not view.is_missing(trace)])


def names(briefs):
    return [brief["name"] for brief in briefs]


def a_step():
    """A step with a product that launches two kernels, one of them in an operator inside."""
    built = TraceBuilder().step(1, 0, 1000).python("train.py(3): step", 0, 900).module("Linear_0", 50, 450)
    built.op("aten::linear", 100, 300).op("aten::mm", 150, 200).launch(160, 20, 7).launch(200, 20, 8)
    return built.kernel("gemm", 400, 200, 7).kernel("reduce", 500, 300, 8, stream=9)


def test_an_operator_knows_all_work_below_it_and_its_time_once():
    facts = details_of(a_step(), "aten::linear")
    assert (facts["start_ns"], facts["dur_ns"], facts["self_ns"]) == (100, 300, 100)
    assert {key: facts["launched"][key] for key in ("count", "device_ns", "total_ns")} == {
        "count": 2,
        "device_ns": 400,  # 400 to 800
        "total_ns": 500,
    }
    assert names(facts["launched"]["slices"]) == ["gemm", "reduce"]
    assert [(a["kind"], a["from"]["start_ns"], a["to"]["name"]) for a in facts["arrows"]] == [
        ("launch", 160, "gemm"),
        ("launch", 200, "reduce"),
    ]
    assert facts["launched_by"] is None
    assert facts["step"] == "1"


def test_a_step_a_python_call_a_module_and_a_call_know_their_work():
    assert details_of(a_step(), "ProfilerStep#1")["launched"]["count"] == 2
    assert details_of(a_step(), "train.py(3): step")["launched"]["count"] == 2
    assert details_of(a_step(), "nn.Module: Linear_0")["launched"]["device_ns"] == 400
    assert names(details_of(a_step(), "cudaLaunchKernel", nth=1)["launched"]["slices"]) == ["reduce"]


def test_work_knows_its_call_operator_module_python_calls_and_annotations():
    facts = details_of(a_step(), "gemm")
    by = facts["launched_by"]
    assert (by["call"]["name"], by["op"]["name"], by["module"]["name"]) == (
        "cudaLaunchKernel",
        "aten::mm",
        "nn.Module: Linear_0",
    )
    assert names(by["python"]) == ["nn.Module: Linear_0", "train.py(3): step"]
    assert names(by["annotations"]) == ["ProfilerStep#1"]
    assert by["stack"] is None
    assert (facts["launched"], facts["called_from"]) == (None, None)
    assert [(a["kind"], a["from"]["name"]) for a in facts["arrows"]] == [("launch", "cudaLaunchKernel")]


def test_a_slice_of_the_host_knows_where_it_is_called_from():
    facts = details_of(a_step(), "aten::mm")
    assert names(facts["ancestors"]) == ["aten::linear"]
    assert facts["called_from"]["op"]["name"] == "aten::linear"
    assert names(facts["called_from"]["python"]) == ["nn.Module: Linear_0", "train.py(3): step"]
    module = details_of(a_step(), "nn.Module: Linear_0")["called_from"]
    assert names(module["python"]) == ["train.py(3): step"]
    assert (module["module"], module["op"]) == (None, None)


def test_the_recorded_stack_is_that_of_the_nearest_operator_that_has_one():
    built = TraceBuilder().op("aten::linear", 0, 100, **{"Call stack": "b.py(2): g;a.py(1): f;"}).op("aten::mm", 10, 50)
    built.launch(20, 5, 3).kernel("k", 40, 5, 3)
    assert details_of(built, "k")["launched_by"]["stack"] == ["b.py(2): g", "a.py(1): f"]


def forward_and_backward():
    """aten::linear holds aten::mm, whose node runs on another thread, with a call of the same number inside."""
    built = TraceBuilder().python("a.py(1): f", 0, 90).module("Linear_0", 1, 80)
    built.op("aten::linear", 5, 50).op("aten::mm", 10, 40, **{"Sequence number": 4, "Fwd thread id": 0})
    back = {"Sequence number": 4, "Fwd thread id": 1}
    built.op("autograd::engine::evaluate_function: MmBackward0", 100, 40, thread=2, **back)
    built.op("MmBackward0", 110, 20, thread=2, **back)
    return built.launch(112, 5, 3, thread=2).kernel("dgrad", 120, 10, 3)


def test_forward_and_backward_know_each_other():
    node = "autograd::engine::evaluate_function: MmBackward0"
    assert names(details_of(forward_and_backward(), "aten::mm")["backward"]) == [node]
    assert names(details_of(forward_and_backward(), "aten::linear")["backward"]) == [node]
    assert details_of(forward_and_backward(), "MmBackward0")["forward"]["name"] == "aten::mm"
    assert details_of(forward_and_backward(), "dgrad")["forward"]["name"] == "aten::mm"
    arrows = details_of(forward_and_backward(), node)["arrows"]
    assert [(a["kind"], a["from"]["name"], a["to"]["name"]) for a in arrows] == [
        ("launch", "cudaLaunchKernel", "dgrad"),
        ("fwdbwd", "aten::mm", node),
    ]


def test_backward_work_has_the_module_and_the_python_calls_of_its_forward_operator():
    by = details_of(forward_and_backward(), "dgrad")["launched_by"]
    assert by["module"]["name"] == "nn.Module: Linear_0"
    assert names(by["python"]) == ["nn.Module: Linear_0", "a.py(1): f"]
    assert by["is_forward"]


def test_the_neighbors_of_a_slice_lie_in_its_row():
    built = TraceBuilder().op("a", 0, 10).op("b", 20, 10).op("in b", 22, 2).op("c", 40, 10)
    a, b, inner, c = (details_of(built, name) for name in ("a", "b", "in b", "c"))
    assert [(s["previous"], s["next"]) for s in (a, b, inner, c)] == [
        (None, b["slice"]),
        (a["slice"], c["slice"]),
        (None, None),
        (b["slice"], None),
    ]


def test_slices_that_overlap_in_part_take_their_time_once():
    built = TraceBuilder().annotation("outer", 0, 100).annotation("a", 10, 40).annotation("b", 30, 50)
    assert details_of(built, "outer")["self_ns"] == 30


def test_statistics_are_those_of_all_slices_of_the_name_and_point_to_them():
    built = TraceBuilder()
    for at, dur in ((0, 30), (100, 10), (200, 20), (300, 40), (400, 0)):
        built.op("x", at, dur)
    same = details_of(built, "x")["same_name"]
    assert {key: same[key] for key in ("count", "total_ns", "mean_ns", "min_ns", "p50_ns", "p95_ns", "max_ns")} == {
        "count": 5,
        "total_ns": 100,
        "mean_ns": 20,
        "min_ns": 0,
        "p50_ns": 20,
        "p95_ns": 40,
        "max_ns": 40,
    }
    assert [details_of(built, "x", nth)["slice"] for nth in (4, 2, 3)] == [
        same["fastest"],
        same["median"],
        same["slowest"],
    ]
    bins = same["bins"]
    assert sum(bins["count"]) == 5
    assert (bins["from_ns"][0], bins["to_ns"][-1]) == (0, 41)
    assert bins["from_ns"][1:] == bins["to_ns"][:-1]


@pytest.mark.parametrize(
    ("count", "share", "place"), [(1, 0.5, 0), (2, 0.5, 0), (3, 0.5, 1), (20, 0.95, 18), (21, 0.95, 19)]
)
def test_a_quantile_is_one_of_the_values(count, share, place):
    assert nearest_rank(count, share) == place


def test_slices_of_one_length_have_one_bin():
    assert details_of(TraceBuilder().op("x", 0, 7).op("x", 10, 7), "x")["same_name"]["bins"] == {
        "from_ns": [7],
        "to_ns": [8],
        "count": [2],
    }
    assert details_of(TraceBuilder().op("x", 0, 0), "x")["same_name"]["bins"] == {
        "from_ns": [0],
        "to_ns": [1],
        "count": [1],
    }


def test_a_collective_says_what_its_operator_says():
    arguments = {
        "Collective name": "allreduce",
        "dtype": "Float",
        "In msg nelems": 100,
        "Group size": 8,
        "Process Group Name": "0",
    }
    built = TraceBuilder().op("c10d::allreduce_", 0, 100).op("record_param_comms", 10, 50, **arguments)
    built.launch(20, 5, 3).kernel("ncclDevKernel_AllReduce", 60, 20, 3)
    for name in ("record_param_comms", "ncclDevKernel_AllReduce"):
        facts = details_of(built, name)["collective"]
        assert (facts["name"], facts["dtype"], facts["in_elements"], facts["group_size"]) == (
            "allreduce",
            "Float",
            100,
            8,
        )
        assert facts["nth"] is None
    assert details_of(built, "c10d::allreduce_")["collective"]["name"] == "allreduce"


def test_a_wait_points_to_the_call_that_recorded_its_event():
    built = TraceBuilder().launch(0, 5, 3, name="cudaEventRecord").launch(10, 5, 4, name="cudaStreamWaitEvent")
    place = {"device": 0, "stream": 7, "cuda_sync_kind": "Stream Wait Event", "correlation": 4}
    built.event("cuda_sync", "Stream Wait Event", 20, 5, **place, wait_on_cuda_event_record_corr_id=3)
    facts = details_of(built, "Stream Wait Event")
    assert [(a["kind"], a["from"]["name"], a["to"]["name"]) for a in facts["arrows"]] == [
        ("event", "cudaEventRecord", "Stream Wait Event")
    ]
    assert facts["launched_by"]["call"]["name"] == "cudaStreamWaitEvent"


def test_what_the_writer_drew_between_slices_is_an_arrow():
    built = TraceBuilder().op("send", 0, 10).op("receive", 50, 10, thread=2)
    built.arrow(5, (1, 2), (2, 52), cat="mine").arrow(6, (1, 3), (2, 70), cat="mine")
    for name in ("send", "receive"):
        arrows = details_of(built, name)["arrows"]
        assert [(a["kind"], a["from"]["name"], a["to"]["name"]) for a in arrows] == [("mine", "send", "receive")]


def test_a_recorded_dependency_between_nodes_of_a_graph_is_an_arrow_and_no_launch(torch_2_15):
    trace = read(torch_2_15 / "cuspy/cuspy_lanes.json.gz")
    made = timeline(trace)
    texts = made.labels.texts
    first = next(n for n in range(made.size) if texts[made.label[n]] == "EventRecord")
    arrows = details(trace, made, first)["arrows"]
    assert {(a["kind"], a["from"]["name"].split("<")[0], a["to"]["name"].split("(")[0]) for a in arrows} == {
        ("dependency", "void cutlass::Kernel2", "EventRecord"),
        ("dependency", "EventRecord", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
    }


def test_a_slice_leads_to_the_rows_of_other_views_that_count_it():
    rows = [(row["view"], row["filter"]) for row in details_of(a_step(), "gemm")["rows"]]
    assert rows == [
        ("kernels", "gemm"),
        ("kernels_by_op", "gemm"),
        ("kernel_efficiency", "aten::mm"),
        ("launches", "cudaLaunchKernel"),
        ("operators", "aten::mm"),
        ("modules", "Linear_0"),
    ]
    of_op = [row["view"] for row in details_of(a_step().memory(64, 170), "aten::mm")["rows"]]
    assert of_op == [
        *("operators", "operator_efficiency"),  # no shapes were recorded
        *("python_calls", "memory_by_operator", "modules"),
    ]
    of_module = [(row["view"], row["filter"]) for row in details_of(a_step(), "nn.Module: Linear_0")["rows"]]
    assert of_module[:2] == [("modules", "Linear_0"), ("modules_by_class", "Linear")]
    graph = TraceBuilder().kernel("k", 0, 5, **{"graph id": 3})
    assert {"view": "graphs", "title": "Graphs", "filter": "3"} in details_of(graph, "k")["rows"]
    assert ("steps", "1") in [(row["view"], row["filter"]) for row in details_of(a_step(), "ProfilerStep#1")["rows"]]


class Threads(Table):
    """A table of a view that nobody knows."""

    key = ("thread",)

    thread = Column(TEXT, "Number of the thread.")


def threads(trace):
    raise NotImplementedError


def test_a_slice_leads_to_the_row_of_any_view_that_says_which_row_it_is():
    trace = a_step().build()
    made = timeline(trace)
    slices = Slices(lambda trace, key: {}, lambda trace, frame, row: {"thread": f"{frame} {row}"})
    view = View(threads, table=Threads, title="Threads", entry="Operators", slices=slices)
    first = int(made.slices_of("launches", np.array([0], np.int32))[0])
    rows = details(trace, made, first, [view])["rows"]
    assert rows[0] == {"view": "threads", "title": "Threads", "filter": r"re:launches 0"}
    assert len(rows) == 3  # its own, its operator's and its module's


def test_a_filter_shows_names_that_are_no_plain_words():
    assert filter_of("aten::mm") == "aten::mm"
    assert filter_of("Memcpy HtoD (Pageable -> Device)") == r"re:Memcpy HtoD \(Pageable -> Device\)"
    assert filter_of("-x") == "re:-x"


def test_every_slice_of_a_trace_with_everything_can_be_asked():
    trace = a_step().memory(64, 170).event("user", "mark", 5, None, ph="i").build()
    made = timeline(trace)
    for number in range(made.size):
        assert details(trace, made, number)["slice"] == number
    assert made.size == 12  # with the spans of the step and of the annotation on the stream


def test_a_replayed_kernel_says_what_its_capture_says():
    work = (Operator("aten::mm", (4, 4), 0, ("gemm",)), Operator("aten::add", (4,), 1, ("add",)))
    built = GraphRecording("rocm").captured(work).replayed(work, 1).builder
    facts = details_of(built, "add")["replayed"]
    assert (facts["op"], facts["input_shapes"], facts["module"]) == ("aten::add", "[[4]]", "Model_0 / Layer_1")
    assert (facts["provenance"], facts["confidence"], facts["layer"]) == ("recorded", "high", None)
    assert details_of(built, "hipGraphLaunch")["replayed"] is None
