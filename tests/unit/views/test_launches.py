"""Launches, their delays, and how long they take; by operator and by function of the runtime."""

from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.host.launch_durations import launch_durations
from kinetoscope_tb.views.host.launches import launches
from kinetoscope_tb.views.host.launches_summary import launches_summary
from kinetoscope_tb.views.host.operators import operators
from support.build import TraceBuilder, same


def queue():
    """Three launches on one stream: into an empty queue, behind a kernel that still runs, and just after it ended."""
    return (
        TraceBuilder()
        .op("a", 0, 100)
        .launch(10, 10, 1)
        .kernel("k", 25, 55, 1)
        .launch(30, 10, 2)
        .kernel("k", 80, 5, 2)
        .op("b", 100, 100)
        .launch(110, 10, 3)
        .kernel("k", 130, 60, 3)
    )


def test_a_launch_delay_runs_from_the_end_of_the_call_to_the_start_of_its_work():
    same(
        launches(queue().build()),
        """
        call              calls  launching_calls  device_events  device_total_ns  mean_delay_ns  empty_queue_calls  mean_empty_queue_delay_ns
        cudaLaunchKernel  3      3                3            120              18             2                  8
        """,
    )


def test_calls_that_launch_nothing_are_no_launches():
    asked = TraceBuilder().op("a", 0, 100).launch(10, 10, 1, name="cudaGetDeviceProperties")
    assert VIEWS["launches"].is_missing(asked.build())
    assert not VIEWS["launches"].is_missing(asked.launch(30, 10, 2).build())


def test_an_operator_s_launch_delay_leaves_out_what_waited_in_the_queue():
    same(
        operators(queue().build()),
        """
        name  launches  mean_empty_queue_delay_ns
        b     1         10
        a     2         5
        """,
    )


def test_work_that_begins_before_its_call_returns_is_not_late():
    trace = TraceBuilder().op("a", 0, 100).launch(10, 30, 1).kernel("k", 20, 5, 1).build()
    assert launches(trace)["mean_delay_ns"].to_list() == [0]
    assert operators(trace)["mean_empty_queue_delay_ns"].to_list() == [0]


def test_other_streams_do_not_fill_the_queue():
    builder = TraceBuilder().launch(0, 10, 1).kernel("k", 10, 500, 1).launch(20, 10, 2).kernel("k", 37, 5, 2, stream=8)
    same(
        launches(builder.build()),
        """
        call              empty_queue_calls  mean_empty_queue_delay_ns
        cudaLaunchKernel  2                  4
        """,
    )


def test_one_call_that_launches_many_rows_counts_once():
    builder = TraceBuilder().op("a", 0, 100).launch(0, 20, 1, name="cudaGraphLaunch")
    trace = builder.kernel("k", 30, 10, 1).kernel("l", 40, 10, 1).memset(50, 2, 1).build()
    same(
        launches(trace),
        """
        call             calls  launching_calls  device_events  device_total_ns  mean_delay_ns  empty_queue_calls
        cudaGraphLaunch  1      1                3            22               10             1
        """,
    )
    assert operators(trace).select("launches", "mean_empty_queue_delay_ns").rows() == [(1, 10)]


def test_calls_that_launch_nothing_and_work_without_a_call_are_rows_too():
    trace = TraceBuilder().launch(0, 7, 1, name="cudaMalloc").launch(10, 9, 2).kernel("k", 30, 5, 2).kernel("x", 50, 4)
    same(
        launches(trace.build()),
        """
        call              calls  total_ns  mean_ns  max_ns  launching_calls  device_events  device_total_ns  short_work_calls
        cudaLaunchKernel  1      9         9        9       1                1            5                1
        cudaMalloc        1      7         7        7       0                0            0                0
        [unattributed]    -      -         -        -       -                1            4                -
        """,
    )


def test_slow_calls_and_late_work_are_counted_beyond_their_thresholds():
    builder = TraceBuilder().launch(0, 50_000, 1).kernel("k", 150_000, 1, 1)
    builder.launch(200_000, 50_001, 2).kernel("k", 350_002, 1, 2)
    same(
        launches(builder.build()),
        """
        call              slow_calls  late_calls
        cudaLaunchKernel  1           1
        """,
    )


def test_calls_delays_and_work_share_one_scale():
    trace = TraceBuilder().launch(0, 150, 1).kernel("k", 160, 300, 1).launch(170, 99, 2).kernel("k", 800, 100, 2)
    same(
        launch_durations(trace.launch(900, 500, 3).build()),
        """
        from_ns  to_ns  launching_calls  launch_delays  empty_queue_delays  device_times
        0        100    1                1              1                   0
        100      200    1                0              0                   1
        200      500    0                0              0                   1
        500      1000   0                1              0                   0
        """,
    )


def test_calls_that_launch_nothing_have_no_histogram():
    assert launch_durations(TraceBuilder().launch(0, 5, 1).build()).is_empty()


def test_a_sentence_says_how_long_launching_keeps_a_device_idle_and_which_work_is_shorter():
    (row,) = launches_summary(queue().build()).rows(named=True)
    assert row["title"] == "Launch latency keeps GPU 0 idle for 17.5 % of the time: 35 ns of 200 ns."
    assert row["evidence"] == (
        "Of the calls that launch work, `cudaLaunchKernel` takes the host longest: 30 ns in 3 calls. "
        "33.3 % of 3 launching calls took longer than their work. Launched work in all: 120 ns."
    )


def test_calls_that_graphs_captured_are_said_to_launch_nothing():
    begin = queue().launch(120, 1, 8, name="hipStreamBeginCapture")
    capture = begin.launch(130, 5, 9).launch(140, 5, 10).launch(150, 1, 11, name="hipStreamEndCapture")
    (row,) = launches_summary(capture.build()).rows(named=True)
    assert ". Graphs captured 2 launching calls: nothing ran then. 33.3 % of 3 launching calls" in row["evidence"]


def test_launching_that_no_device_waits_for_is_said_to_keep_none_idle():
    busy = TraceBuilder().op("a", 0, 100).launch(0, 10, 1).kernel("k", 0, 100, 1)
    (row,) = launches_summary(busy.build()).rows(named=True)
    assert row["title"] == "Launch latency keeps no device idle."


def test_graph_launches_are_named_where_there_are_any():
    replay = TraceBuilder().op("a", 0, 100).launch(10, 10, 1, name="hipGraphLaunch").kernel("k", 30, 60, 1)
    (row,) = launches_summary(replay.build()).rows(named=True)
    assert row["title"].startswith("Launch latency and graph launches keep GPU 0 idle for ")


def test_a_device_of_an_unknown_vendor_is_called_a_device():
    own = TraceBuilder().op("a", 0, 100).launch(10, 10, 1, name="runFunction").kernel("k", 30, 60, 1)
    (row,) = launches_summary(own.build()).rows(named=True)
    assert row["title"].startswith("Launch latency keeps device 0 idle for ")


def test_where_launches_are_missing_nothing_is_said_of_them():
    assert launches_summary(queue().kernel("lone", 195, 5).build()).is_empty()


def test_without_launched_work_nothing_is_said_of_launches():
    assert launches_summary(TraceBuilder().op("a", 0, 100).launch(10, 10, 1).build()).is_empty()
