"""Situations that have led other tools astray."""

import json

import pytest

from eras import Era
from eras.kineto import Kineto
from eras.recording import recording
from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder, same

HOST = ("op", "annotation", "python", "memory", "overhead")
CALLS = ("runtime",)
DEVICE = ("kernel", "memcpy", "memset", "sync", "gpu_annotation")


def only(*kinds, **left_out):
    """The recording of the eras, with these kinds of rows alone."""
    rows = [row for row in recording() if row.kind in kinds and not row.name.startswith(left_out.get("without", "\0"))]
    return Era("part", Kineto((2, 8), rows=tuple(rows))).trace


def totals(trace, view="operators"):
    frame = VIEWS[view].run(trace)
    return frame.select("name", "device_self_ns").rows()


def test_a_recording_without_steps_is_one_step_and_costs_the_same():
    whole, stepless = only(*HOST, *CALLS, *DEVICE), only(*HOST, *CALLS, *DEVICE, without="ProfilerStep#")
    assert totals(stepless) == totals(whole)
    same(
        VIEWS["steps"].run(stepless),
        """
        step  start_ns  total_ns  kernel_ns  memcpy_ns  memset_ns  communication_ns  runtime_ns
        all   110000    2985000   915000     60000      24000      480000            540000
        """,
    )


def test_a_device_alone_has_kernels_and_no_operators():
    trace = only(*DEVICE)
    assert VIEWS["operators"].is_missing(trace)
    assert "ProfilerActivity.CPU" in VIEWS["operators"].hint
    assert VIEWS["kernels"].run(trace)["total_ns"].sum() == 1_275_000
    same(
        VIEWS["steps"].run(trace),
        """
        step  total_ns  kernel_ns  communication_ns  runtime_ns
        all   2925000   915000     360000            0
        """,
    )


def test_a_host_alone_has_operators_and_no_device_time():
    trace = only(*HOST)
    assert VIEWS["kernels"].is_missing(trace)
    assert "ProfilerActivity.CUDA" in VIEWS["kernels"].hint
    operators = VIEWS["operators"].run(trace)
    assert operators["device_self_ns"].null_count() == operators["device_total_ns"].null_count() == operators.height
    assert VIEWS["steps"].run(trace)["is_complete"].to_list() == [True, True, True]


def test_two_calls_with_one_correlation_count_their_kernel_once():
    trace = (
        TraceBuilder()
        .op("a", 0, 50)
        .launch(10, 20, 1)
        .launch(12, 5, 1, name="cuLaunchKernel", cat="cuda_driver")
        .kernel("k", 60, 7, 1)
        .build()
    )
    assert totals(trace) == [("a", 7)]
    assert trace.launches["name"].gather(trace.device_events["launch"]).to_list() == ["cudaLaunchKernel"]


def test_a_kernel_may_begin_before_its_launch():
    trace = TraceBuilder().step(1, 0, 100).op("a", 0, 50).launch(20, 10, 1).kernel("k", 15, 60, 1).build()
    assert totals(trace) == [("a", 60)]
    assert trace.device_events["step"].to_list() == [0]


def test_all_nodes_of_a_graph_belong_to_its_launch_on_any_stream():
    builder = TraceBuilder().step(1, 0, 90).op("replay", 0, 50).launch(10, 5, 3, name="cudaGraphLaunch")
    for node in range(5):
        builder.kernel(f"n{node}", 20 + node, 10, 3, stream=node, **{"graph node id": node})
    trace = builder.memcpy(40, 5, 3).build()
    assert totals(trace) == [("replay", 55)]
    assert trace.steps["device_rows"].to_list() == [6]


def test_a_backward_kernel_belongs_to_the_step_although_its_thread_has_none():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .op("AddBackward0", 20, 40, thread=2, **{"Sequence number": 4, "Fwd thread id": 1})
        .launch(30, 5, 1, thread=2)
        .kernel("k", 90, 30, 1)
        .build()
    )
    assert trace.device_events["step"].to_list() == [0]
    assert trace.steps["end_ns"].to_list() == [120]


def test_sixteen_gpus_are_sixteen():
    builder = TraceBuilder().op("a", 0, 500)
    for gpu in range(16):
        builder.launch(gpu * 10, 5, gpu + 1).kernel("k", gpu * 10 + 5, 100, gpu + 1, device=gpu)
    trace = builder.build()
    assert trace.device_events["device"].to_list() == list(range(16))
    assert VIEWS["gpus"].run(trace)["device"].to_list() == list(range(16))


def test_a_process_may_have_the_number_of_a_gpu():
    trace = (
        TraceBuilder()
        .event("cpu_op", "a", 0, 50, pid=1)
        .event("cuda_runtime", "cudaLaunchKernel", 10, 5, pid=1, correlation=1)
        .kernel("k", 20, 9, 1, device=1, stream=1)
        .build()
    )
    assert totals(trace) == [("a", 9)]
    assert trace.threads.select("pid", "tid").rows() == [("1", "1")]


@pytest.mark.parametrize("stream", [4294967295, 0, 2**40])
def test_any_number_of_a_stream_is_kept(stream):
    assert TraceBuilder().kernel("k", 0, 5, stream=stream).build().device_events["stream"].to_list() == [stream]


def test_ranks_whose_bases_differ_lie_on_one_clock():
    """The base changes with the quarter of the year, so two ranks may have different ones."""
    later = 7_889_238 * 10**9
    one = TraceBuilder(base_ns=0).op("a", later + 500, 10).build()
    other = TraceBuilder(base_ns=later).op("a", 700, 10).build()
    assert other.origin_ns - one.origin_ns == 200


def test_work_of_nobody_stays_in_every_total():
    trace = (
        TraceBuilder().step(1, 0, 100).op("a", 0, 50).launch(60, 5, 1).kernel("k", 70, 9, 1).kernel("l", 80, 4).build()
    )
    assert totals(trace) == [("[unattributed]", 13), ("a", 0)]
    assert VIEWS["steps"].run(trace)["kernel_ns"].to_list() == [13]


def test_rows_without_category_of_the_old_exporter_go_by_its_processes_and_name_the_device_in_the_tid():
    rows = [{"ph": "X", "name": "a", "ts": 1, "dur": 1, "tid": 3, "pid": f"{p} functions"} for p in ("CPU", "CUDA")]
    trace = read_blocks([json.dumps(rows).encode()], path="t.json")
    assert trace.threads["tid"].to_list() == ["3"]
    assert trace.device_events.select("device", "stream").rows() == [(3, NONE)]
