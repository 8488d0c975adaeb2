"""From when to when a step lasts, and whether all of it was recorded."""

import polars as pl

from kinetoscope_tb.trace.steps import step_in_words
from support.build import TraceBuilder, same


def test_a_step_lasts_until_its_device_work_ends():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .step(2, 100, 100)
        .launch(50, 10, 1)
        .kernel("a", 60, 80, 1)
        .launch(150, 10, 2)
        .kernel("b", 160, 90, 2)
        .build()
    )
    same(
        trace.steps,
        """
        name  host_start_ns  host_end_ns  start_ns  end_ns  is_complete  device_rows
        1     0              100          0         140     True         1
        2     100            200          140       250     True         1
        """,
    )


def test_the_first_step_begins_after_the_tail_of_the_one_before_the_recording():
    trace = TraceBuilder().step(1, 0, 100).kernel("tail", 10, 20).launch(50, 10, 1).kernel("a", 60, 20, 1).build()
    assert trace.steps["start_ns"].to_list() == [30]


def test_an_early_row_of_another_stream_does_not_pull_the_tail_into_the_first_step():
    trace = (
        TraceBuilder()
        .launch(0, 1, 1)
        .step(1, 10, 90)
        .kernel("tail", 5, 45, 1)
        .launch(12, 1, 2)
        .memcpy(15, 5, 2, stream=9)
        .launch(20, 1, 3)
        .kernel("a", 50, 20, 3)
        .build()
    )
    assert trace.steps.select("start_ns", "end_ns").rows() == [(50, 100)]


def test_work_of_a_step_that_held_up_another_stream_is_in_the_step():
    """The tail of stream 7 waits until stream 9 has run the work of both steps."""
    builder = TraceBuilder().launch(0, 1, 1).launch(2, 1, 2).step(1, 10, 20).step(2, 30, 20)
    builder.kernel("tail", 40, 20, 2, stream=9).kernel("tail", 300, 5, 1)
    for number, call, start in ((3, 12, 60), (4, 32, 160)):
        builder.launch(call, 1, number).kernel("large", start, 100, number, stream=9)
        builder.launch(call + 5, 1, number + 10).kernel("small", 305 + number, 1, number + 10)
    trace = builder.build()
    assert trace.steps.select("start_ns", "end_ns").rows() == [(60, 309), (309, 310)]


def test_a_stream_on_which_no_launch_is_recorded_says_nothing_of_the_tail():
    trace = TraceBuilder().step(1, 0, 100).kernel("k", 10, 60, stream=8).launch(5, 1, 1).kernel("a", 20, 20, 1).build()
    assert trace.steps["start_ns"].to_list() == [0]


def test_without_steps_one_covers_everything():
    trace = TraceBuilder().op("a", 10, 20).launch(15, 2, 1).kernel("k", 40, 50, 1).build()
    assert trace.steps.select("name", "start_ns", "end_ns").rows() == [("all", 0, 80)]


def test_a_recording_of_python_calls_alone_lasts_as_long_as_these():
    """vLLM records its frontend so."""
    trace = TraceBuilder().python("a.py(1): f", 100, 400).python("a.py(2): g", 150, 50).build()
    assert (trace.window, trace.steps["host_end_ns"][0] - trace.steps["host_start_ns"][0]) == ((0, 400), 400)


def test_the_device_s_copy_of_a_step_is_no_step():
    trace = TraceBuilder().step(1, 0, 100).event("gpu_user_annotation", "ProfilerStep#1", 50, 100, tid=7, pid=0).build()
    assert trace.steps["name"].to_list() == ["1"]


def test_a_step_that_runs_into_the_end_of_the_recording_is_incomplete():
    trace = TraceBuilder().window(0, 200).step(1, 0, 100).step(2, 100, 100).build()
    assert trace.steps["is_complete"].to_list() == [True, False]


def test_a_step_that_was_not_finished_is_incomplete():
    trace = TraceBuilder().window(0, 300).step(1, 0, 100).step(2, 100, 100, finished=False).build()
    assert trace.steps["is_complete"].to_list() == [True, False]


def test_last_steps_without_device_work_are_incomplete():
    trace = (
        TraceBuilder()
        .step(1, 0, 100)
        .step(2, 100, 100)
        .step(3, 200, 100)
        .launch(50, 5, 1)
        .kernel("k", 60, 5, 1)
        .build()
    )
    assert trace.steps["is_complete"].to_list() == [True, False, False]


def test_a_last_step_with_less_than_four_fifths_of_the_device_work_is_incomplete():
    builder = TraceBuilder().step(1, 0, 100).step(2, 100, 100)
    for i in range(10):
        builder.launch(10 + i, 1, 1 + i).kernel("k", 30 + i, 1, 1 + i)
    for i in range(7):
        builder.launch(110 + i, 1, 20 + i).kernel("k", 130 + i, 1, 20 + i)
    assert builder.build().steps["is_complete"].to_list() == [True, False]
    assert builder.launch(117, 1, 27).kernel("k", 137, 1, 27).build().steps["is_complete"].to_list() == [True, True]


def test_steps_without_any_device_work_anywhere_are_complete():
    assert TraceBuilder().step(1, 0, 100).step(2, 100, 100).build().steps["is_complete"].to_list() == [True, True]


def test_a_step_in_a_sentence_has_its_article_and_a_recording_without_steps_is_the_recording():
    steps = TraceBuilder().step(1, 0, 100).build().steps
    assert step_in_words(steps) == "a step"
    assert step_in_words(steps.with_columns(phase=pl.lit("decode"))) == "an iteration"
    assert step_in_words(TraceBuilder().op("aten::mm", 0, 10).build().steps) == "the recording"
