import polars as pl
import pytest

from kinetoscope_tb.names.calls import allocates, synchronizes
from kinetoscope_tb.views.device.exposed_time import exposed_time
from kinetoscope_tb.views.device.gaps import gaps
from kinetoscope_tb.views.device.idle import idle
from kinetoscope_tb.views.device.queue_length import queue_length
from kinetoscope_tb.views.device.queue_length_summary import queue_length_summary
from support.build import TraceBuilder, same

CAUSES = "busy_ns  host_late_ns  launch_latency_ns  dependency_ns  blocked_copy_ns  graph_launch_ns  not_shown_ns  unexplained_ns"


def causes(builder, **where):
    table = idle(builder.build())
    for name, value in where.items():
        table = table.filter(table[name] == value)
    return table.select(CAUSES.split()).row(0)


def queued(at, *, launched, dur=10_000, number=1, **place):
    """A kernel and the call that launched it."""

    def add(builder):
        return builder.launch(launched, 1_000, number).kernel("k", at, dur, number, **place)

    return add


def built(*parts, window=200_000):
    builder = TraceBuilder().step(1, 0, window)
    for part in parts:
        part(builder)
    return builder


def test_the_host_is_late_until_something_is_queued_and_latency_follows():
    trace = built(queued(20_000, launched=5_000), queued(80_000, launched=65_000, number=2))
    # idle 0–20 (launched at 5), 30–80 (launched at 65) and 90–200 (nothing more was launched)
    assert causes(trace, scope="device") == (20_000, 5_000 + 35_000 + 110_000, 15_000 + 15_000, 0, 0, 0, 0, 0)


def test_a_gap_is_never_charged_to_the_host_as_a_whole_when_work_was_launched_just_after_it_began():
    trace = built(queued(0, launched=0), queued(160_000, launched=10_001, number=2), window=170_000)
    assert causes(trace, scope="device") == (20_000, 1, 21_000, 0, 0, 0, 0, 128_999)


def test_a_short_gap_before_a_queued_row_is_launch_latency():
    trace = built(queued(0, launched=0), queued(30_000, launched=9_999, number=2), window=40_000)
    assert causes(trace, scope="device") == (20_000, 0, 20_000, 0, 0, 0, 0, 0)


def test_a_call_that_has_not_returned_has_submitted_nothing():
    slow = TraceBuilder().step(1, 0, 100_000).launch(0, 1_000, 1).kernel("k", 5_000, 5_000, 1)
    slow.launch(9_000, 50_000, 2).kernel("k", 65_000, 35_000, 2)
    assert causes(slow, scope="device") == (40_000, 0, 60_000, 0, 0, 0, 0, 0)


def test_while_a_cpu_callback_of_a_graph_holds_up_the_device_the_row_depends_on_it():
    trace = built(queued(0, launched=0), queued(60_000, launched=9_999, number=2), window=70_000)
    assert causes(trace, scope="device") == (20_000, 0, 20_999, 0, 0, 0, 0, 29_001)
    trace.event("graph_host_node", "HostNode: f", 35_000, 20_000, pid=0, tid=7)
    assert causes(trace, scope="device") == (20_000, 0, 20_999, 20_000, 0, 0, 0, 9_001)


def test_a_callback_on_another_device_is_no_cause():
    trace = built(queued(0, launched=0), queued(60_000, launched=9_999, number=2), window=70_000)
    trace.event("graph_host_node", "HostNode: f", 35_000, 20_000, pid=1, tid=7)
    assert causes(trace, scope="device") == (20_000, 0, 20_999, 0, 0, 0, 0, 29_001)


def test_a_longer_gap_before_a_queued_row_is_unexplained_beyond_the_latency():
    trace = built(queued(0, launched=0), queued(40_000, launched=9_999, number=2), window=50_000)
    assert causes(trace, scope="device") == (20_000, 0, 20_999, 0, 0, 0, 0, 9_001)


def test_a_stream_depends_on_another_when_it_begins_as_a_row_of_that_ends():
    trace = built(
        queued(0, launched=0),
        queued(0, launched=1, number=2, dur=60_000, stream=8),
        queued(61_000, launched=2, number=3, dur=9_000),
        window=70_000,
    )
    assert causes(trace, scope="stream", stream=7) == (19_000, 0, 11_002, 39_998, 0, 0, 0, 0)
    assert causes(trace, scope="device") == (69_000, 0, 1_000, 0, 0, 0, 0, 0)


def test_a_stream_that_waits_for_an_event_depends_on_what_it_waits_for():
    trace = built(queued(0, launched=0), queued(60_000, launched=5_000, number=2), window=70_000)
    wait = {"device": 0, "stream": 7, "cuda_sync_kind": "Stream Wait Event"}
    trace.event("cuda_sync", "Stream Wait Event", 3_000, 0, pid=0, tid=7, **wait)
    assert causes(trace, scope="device") == (20_000, 0, 16_000, 34_000, 0, 0, 0, 0)


def test_a_copy_that_holds_host_and_device_up_is_named():
    trace = (
        TraceBuilder().step(1, 0, 100_000).launch(10_000, 60_000, 1, name="cudaMemcpyAsync").memcpy(65_000, 35_000, 1)
    )
    assert causes(trace, scope="device") == (35_000, 10_000, 20_000, 0, 35_000, 0, 0, 0)


def test_a_row_without_a_recorded_launch_may_have_been_queued_all_along():
    trace = TraceBuilder().step(1, 0, 100).kernel("k", 20, 30)
    assert causes(trace, scope="device") == (30, 0, 0, 0, 0, 0, 70, 0)


def test_a_first_row_that_begins_late_was_behind_work_that_is_not_recorded():
    trace = built(queued(150_000, launched=2_000, dur=50_000))
    assert causes(trace, scope="device") == (50_000, 0, 0, 0, 0, 0, 150_000, 0)


def test_while_the_host_waits_for_the_device_longer_than_a_call_takes_to_return_the_device_may_be_busy():
    trace = built(
        queued(1_000, launched=0, dur=9_000), queued(95_000, launched=90_000, number=2, dur=5_000), window=100_000
    )
    trace.launch(5_000, 55_000, 9, name="cudaStreamSynchronize")
    # 0–1 queued; 10–30 a call takes that long anyway; 30–60 it waits for something; 60–90 the host is late
    assert causes(trace, scope="device") == (14_000, 50_000, 6_000, 0, 0, 0, 30_000, 0)


def test_rows_of_one_graph_launch_were_all_queued():
    trace = TraceBuilder().step(1, 0, 200_000).launch(0, 40_000, 1, name="cudaGraphLaunch")
    trace.kernel("k", 35_000, 10_000, 1).kernel("k", 50_000, 5_000, 1).kernel("k", 105_000, 20_000, 1)
    # 0–20 latency, 20–35 the call hasn't returned; 45–50 queued; 55–105 queued, but why so long?; 125–200 nothing more
    assert causes(trace, scope="device") == (35_000, 75_000, 25_000, 0, 0, 15_000, 0, 50_000)


def test_what_the_host_did_while_it_was_late():
    trace = (
        TraceBuilder()
        .step(1, 0, 100_000)
        .annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 10_000)
        .python("train.py(1): loop", 0, 60_000)
        .annotation("mine", 12_000, 8_000)
        .op("aten::item", 20_000, 10_000)
        .launch(22_000, 5_000, 9, name="cudaStreamSynchronize")
        .launch(50_000, 1_000, 1)
        .op("elsewhere", 55_000, 40_000, thread=3)
        .kernel("k", 70_000, 10_000, 1)
    )
    same(
        idle(trace.build()).filter(scope="device"),
        """
        late_data_loading_ns  late_synchronizing_ns  late_runtime_ns  late_operator_ns  late_python_ns  late_annotation_ns  late_unrecorded_ns
        10000  5000  0  5000  30000  0  20000
        """,
    )


def test_an_annotation_around_a_whole_iteration_hides_no_python_function():
    trace = (
        TraceBuilder()
        .annotation("diffusion iteration", 0, 100_000)
        .python("hooks.py(248): reset_stateful_hooks", 10_000, 30_000)
        .op("aten::mm", 60_000, 30_000)
        .launch(70_000, 1_000, 1)
        .kernel("k", 90_000, 10_000, 1)
    )
    same(
        idle(trace.build()).filter(scope="device"),
        """
        host_late_ns  late_operator_ns  late_python_ns  late_annotation_ns
        70000  10000  30000  30000
        """,
    )


def test_idle_time_per_step_and_for_each_stream():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .launch(5, 1, 1)
        .kernel("k", 10, 20, 1)
        .step(2, 100, 100)
        .launch(105, 1, 2)
        .kernel("k", 110, 50, 2, stream=8)
        .build()
    )
    same(
        idle(trace, per="step"),
        """
        scope   device  stream  step  window_ns  busy_ns  idle_ns  idle_frac  gaps  longest_ns
        device  0       -       1     100        20       80       0.8        2     70
        device  0       -       2     100        50       50       0.5        2     40
        stream  0       7       1     100        20       80       0.8        2     70
        stream  0       7       2     100        0        100      1.0        1     100
        stream  0       8       1     100        0        100      1.0        1     100
        stream  0       8       2     100        50       50       0.5        2     40
        """,
    )


def test_the_longest_gaps_first_with_what_ended_them():
    trace = (
        TraceBuilder()
        .step(1, 0, 200)
        .op("aten::mm", 30, 40)
        .launch(5, 1, 1)
        .kernel("first", 10, 20, 1)
        .launch(60, 1, 2)
        .kernel("second", 80, 120, 2, stream=8)
        .build()
    )
    same(
        gaps(trace),
        """
        device  start_ns  dur_ns  step  cause      cause_ns  host_late_ns  host              host_ns  late_ns  preceded_by  ended_by  op
        0       30        50      1     host late  30        30            operator          39       30       first   second  aten::mm
        0       0         10      1     host late  5         5             nothing recorded  9        5        -       first   -
        """,
    )
    assert gaps(trace, from_ns=20)["start_ns"].to_list() == [30]
    assert gaps(trace, to_ns=30)["start_ns"].to_list() == [0]
    assert gaps(trace, device=1).is_empty()


def test_what_was_launched_before_a_gap_is_queued_and_not_late():
    builder = TraceBuilder().step(1, 0, 300).launch(0, 5, 1).launch(10, 5, 2)
    trace = builder.kernel("first", 10, 20, 1).kernel("second", 80, 120, 2).build()
    rows = gaps(trace).filter(pl.col("ended_by") == "second")
    assert rows.select("start_ns", "late_ns", "queued_before_ns").rows() == [(30, None, 20)]


def test_exposed_time_counts_each_instant_once():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .launch(0, 1, 1)
        .kernel("gemm", 0, 40, 1)
        .kernel("ncclDevKernel_AllReduce", 30, 30, 1, stream=8)
        .memcpy(50, 20, 1, stream=9)
        .memset(80, 5, 1, stream=9)
        .build()
    )
    same(
        exposed_time(trace),
        """
        device  step  window_ns  computation_ns  exposed_communication_ns  exposed_copies_ns  idle_ns  communication_ns  overlap_ns
        0       all   100        40              20                        15                 25       30                10
        """,
    )


def test_busy_time_of_devices_says_how_much_of_it_only_communicates():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .kernel("gemm", 0, 40)
        .kernel("ncclDevKernel_AllReduce", 30, 30, stream=8)
        .kernel("gemm", 0, 10, device=1)
        .build()
    )
    same(
        idle(trace).select("scope", "device", "stream", "busy_ns", "exposed_communication_ns"),
        """
        scope   device  stream  busy_ns  exposed_communication_ns
        device  0       -       60       20
        stream  0       7       40       -
        stream  0       8       30       -
        device  1       -       10       0
        stream  1       7       10       -
        """,
    )


def test_each_device_has_its_own_exposed_time():
    trace = TraceBuilder().step(1, 0, 100).kernel("a", 0, 40).kernel("b", 0, 10, device=1).build()
    assert exposed_time(trace, per="step")["idle_ns"].to_list() == [60, 90]
    assert exposed_time(trace)["overlap_frac"].to_list() == [None, None]


def test_a_queue_grows_with_each_launch_and_shrinks_as_rows_begin():
    trace = (
        TraceBuilder()
        .launch(0, 2, 1)
        .launch(5, 2, 2, name="cudaGraphLaunch")
        .kernel("a", 10, 30, 1)
        .kernel("b", 40, 5, 2)
        .kernel("c", 45, 5, 2)
        .kernel("d", 40, 5, 2, stream=8)
        .kernel("from before", 1, 2, 77)
        .build()
    )
    same(
        queue_length(trace),
        """
        device  stream  at_ns  queued  mean_queued
        0       7       3      1       1.0
        0       7       5      3       3.0
        0       7       10     2       2.0
        0       7       40     1       1.0
        0       7       45     0       0.0
        0       7       50     0       0.0
        0       8       3      0       0.0
        0       8       5      1       1.0
        0       8       40     0       0.0
        0       8       50     0       0.0
        """,
    )
    same(
        queue_length(trace, from_ns=7, to_ns=45).drop("mean_queued"),
        """
        device  stream  at_ns  queued
        0       7       7      3
        0       7       10     2
        0       7       40     1
        0       7       45     0
        0       8       7      1
        0       8       40     0
        0       8       45     0
        """,
    )


def test_a_queue_is_shown_for_the_time_of_the_steps_of_which_the_sentence_speaks():
    """A mean over idle time before and after the steps would say little of them."""
    builder = TraceBuilder().op("load", 0, 100).step(1, 100, 100)
    trace = builder.launch(100, 2, 1).kernel("a", 150, 10, 1).launch(250, 2, 2).kernel("b", 900, 100, 2).build()
    same(
        queue_length(trace),
        """
        device  stream  at_ns  queued  mean_queued
        0       7       100    1       1.0
        0       7       150    0       0.0
        0       7       200    0       0.0
        """,
    )
    (sentence,) = queue_length_summary(trace).rows(named=True)
    assert sentence["title"].endswith("nothing is queued on stream 7 for 50 % of the time, 50 ns of 100 ns.")


def test_where_changes_are_left_out_the_mean_until_the_next_row_stays(monkeypatch):
    monkeypatch.setattr("kinetoscope_tb.views.device.queue_length.MOST_POINTS", 8)
    builder = TraceBuilder().step(1, 0, 1_000)
    for number in range(50):
        builder.launch(20 * number, 2, number + 1).kernel("k", 20 * number + 5, 10, number + 1)
    table = queue_length(builder.build())
    assert table.height <= 8
    held = table["at_ns"].diff().shift(-1).fill_null(0)
    assert (table["mean_queued"] * held).sum() == pytest.approx(50 * 5)
    assert table["queued"].max() == 1


def queue_sentence(*parts, window=100_000):
    return queue_length_summary(built(*parts, window=window).build()).rows(named=True)


def test_a_host_that_is_late_is_said_to_rarely_run_ahead():
    (row,) = queue_sentence(queued(20_000, launched=15_000), queued(90_000, launched=85_000, number=2))
    assert row["title"] == (
        "The host rarely runs ahead of GPU 0: nothing is queued on stream 7 for 90 % of the time, 90 µs of 100 µs."
    )
    assert row["evidence"] == (
        "Because the host is late, GPU 0 is idle for 70 µs. "
        "At most 1 of the stream's kernels, copies and fills was queued at once."
    )
    late = idle(
        built(queued(20_000, launched=15_000), queued(90_000, launched=85_000, number=2), window=100_000).build()
    )
    assert late["host_late_ns"][0] == 70_000


def test_a_host_that_runs_ahead_is_said_to_whatever_other_streams_wait_for():
    (row,) = queue_sentence(
        queued(20_000, launched=0, dur=40_000),
        queued(60_000, launched=2_000, dur=30_000, number=2),
        queued(98_000, launched=4_000, dur=1_000, number=3),
        queued(10_000, launched=9_000, dur=1_000, number=4, stream=20),
    )
    assert row["title"] == (
        "The host mostly runs ahead of GPU 0: nothing is queued on stream 7 for 2 % of the time, 2 µs of 100 µs."
    )
    assert row["evidence"].startswith("Because the host is late, GPU 0 is ")
    assert row["evidence"].endswith("At most 3 of the stream's kernels, copies and fills were queued at once.")


def test_the_stream_that_computes_most_speaks_not_that_of_long_collectives():
    """Its few kernels wait for other ranks, and are longer than all computation."""
    (row,) = queue_sentence(
        queued(20_000, launched=0, dur=5_000),
        queued(50_000, launched=2_000, dur=5_000, number=2),
        lambda builder: builder.launch(60_000, 1_000, 3).kernel(
            "ncclDevKernel_AllReduce", 62_000, 30_000, 3, stream=20
        ),
    )
    assert "nothing is queued on stream 7 for 50 % of the time" in row["title"]


def test_the_stream_with_the_most_work_speaks_where_only_communication_was_launched():
    (row,) = queue_sentence(
        lambda builder: builder.launch(0, 1_000, 1).kernel("ncclDevKernel_AllReduce", 10_000, 5_000, 1, stream=20),
        lambda builder: builder.launch(0, 1_000, 2).kernel("ncclDevKernel_AllGather", 50_000, 9_000, 2, stream=21),
    )
    assert "nothing is queued on stream 21 for 50 % of the time" in row["title"]


def test_a_host_that_keeps_up_is_never_late():
    (row,) = queue_sentence(queued(0, launched=-5_000, dur=100_000))
    assert row["evidence"].startswith("The host is never late for GPU 0. ")
    (row,) = queue_sentence(queued(60_000, launched=2_000, dur=40_000))
    assert row["evidence"].startswith("The host is never late for GPU 0 in what was recorded. ")
    assert row["confidence"] == "low"


def test_what_the_host_captures_does_not_make_it_late_alone():
    def capture(builder):
        builder.launch(30_000, 1_000, 8, name="hipStreamBeginCapture")
        builder.launch(80_000, 1_000, 9, name="hipStreamEndCapture")

    (row,) = queue_sentence(queued(20_000, launched=15_000), queued(90_000, launched=85_000, number=2), capture)
    assert row["evidence"].startswith("Because the host is late or captures graphs, GPU 0 is idle for ")


def test_without_the_calls_that_launch_nothing_is_said_of_queues():
    assert queue_length_summary(built(lambda builder: builder.kernel("lone", 10, 5)).build()).is_empty()


def test_what_the_name_of_a_call_tells():
    waiting = "cudaStreamSynchronize cudaDeviceSynchronize cuEventSynchronize hipDeviceSynchronize cudaMemcpy"
    waiting += " hipMemcpyWithStream cuMemcpyDtoH_v2 urQueueFinish aclrtSynchronizeStream"
    queueing = (
        "cudaMemcpyAsync cudaStreamWaitEvent cudaLaunchKernel hipMemcpyAsync cuMemcpyDtoHAsync_v2 cudaMemsetAsync"
    )
    assert all(map(synchronizes, waiting.split()))
    assert not any(map(synchronizes, queueing.split()))
    assert all(map(allocates, ["cudaMalloc", "cudaFree", "hipMalloc", "cuMemCreate", "cuMemAlloc_v2", "hipFree"]))
    assert not any(map(allocates, ["cudaHostAlloc", "cudaMemcpy", "cudaFreeHost", "cuMemcpyDtoH_v2"]))


def test_what_the_host_did_is_what_its_main_thread_did_where_no_launch_is_recorded_else_unknown():
    alone = TraceBuilder().kernel("a", 0, 10).kernel("b", 40, 10)
    assert gaps(alone.build()).select("host", "host_ns").rows() == [(None, None)]
    assert gaps(alone.op("aten::sort", 5, 30).build()).select("host", "host_ns").rows() == [("operator", 25)]
