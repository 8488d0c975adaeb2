"""Which slices are drawn where: tracks, lanes, labels."""

import numpy as np
import pytest

from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.model import CATEGORIES, activity
from support.build import TraceBuilder


def lines(made):
    """Each slice in words: track part, lane, name, category, start, end."""
    slices = []
    for number in range(made.size):
        track = made.tracks[made.track_of(number)]
        lane = made.row_of(number) - track.first_row
        label = int(made.label[number])
        start = int(made.start_ns[number])
        name, category = made.labels.texts[label], CATEGORIES[made.labels.categories[label]]
        slices.append((track.name, track.part, lane, name, category, start, start + int(made.dur_ns[number])))
    return slices


def test_each_kind_of_slice_has_its_track_and_category():
    built = TraceBuilder().step(1, 0, 1000).op("aten::mm", 100, 300).launch(200, 50, 7)
    built.kernel("gemm", 400, 200, 7).memcpy(650, 10).memset(700, 10).kernel("ncclDevKernel_AllReduce", 720, 30)
    built.python("train.py(3): step", 0, 900).module("Linear_0", 50, 400)
    built.annotation("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 10, 20)
    assert lines(timeline(built.build())) == [
        ("stream 7", "work", 0, "gemm", "Kernel", 400, 600),
        ("stream 7", "work", 0, "Memcpy HtoD (Pageable -> Device)", "Memcpy", 650, 660),
        ("stream 7", "work", 0, "Memset (Device)", "Memset", 700, 710),
        ("stream 7", "work", 0, "ncclDevKernel_AllReduce", "Communication", 720, 750),
        ("stream 7", "projected", 0, "ProfilerStep#1", "Annotation", 400, 600),
        ("thread 1", "annotations", 0, "ProfilerStep#1", "Step", 0, 1000),
        (
            "thread 1",
            "annotations",
            1,
            "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
            "DataLoader",
            10,
            30,
        ),
        ("thread 1", "calls", 0, "aten::mm", "Operator", 100, 400),
        ("thread 1", "calls", 1, "cudaLaunchKernel", "Runtime", 200, 250),
        ("thread 1", "python", 0, "train.py(3): step", "Python", 0, 900),
        ("thread 1", "python", 1, "nn.Module: Linear_0", "Module", 50, 450),
    ]


def test_a_slice_that_outlasts_the_one_it_began_in_takes_a_lane_of_its_own():
    built = TraceBuilder().annotation("a", 0, 100).annotation("b", 50, 100).annotation("c", 120, 20)
    assert [(name, lane) for _, _, lane, name, *_ in lines(timeline(built.build()))] == [("a", 0), ("b", 1), ("c", 2)]


def test_a_slice_is_drawn_below_the_one_it_lies_in_even_where_a_lane_above_is_free():
    built = TraceBuilder().annotation("a", 0, 60).annotation("b", 50, 100).annotation("in b", 70, 20)
    assert [(name, lane) for _, _, lane, name, *_ in lines(timeline(built.build()))] == [
        ("a", 0),
        ("b", 1),
        ("in b", 2),
    ]


def test_annotations_of_a_stream_are_drawn_with_the_stream():
    built = TraceBuilder().kernel("k", 10, 20, stream=7)
    built.event("gpu_user_annotation", "forward", 0, 40, pid=0, tid=7)
    tracks = [(track.process, track.name, track.part) for track in timeline(built.build()).tracks]
    assert tracks == [("Device 0", "stream 7", "annotations"), ("Device 0", "stream 7", "work")]


def test_devices_come_before_hosts_and_busy_threads_before_idle_ones():
    built = TraceBuilder().op("x", 0, 5, thread=9).op("a", 0, 10, thread=4).op("b", 20, 10, thread=4)
    built.kernel("k", 5, 5, stream=20).kernel("k", 5, 5, stream=7)
    assert [track.name for track in timeline(built.build()).tracks] == ["stream 7", "stream 20", "thread 4", "thread 9"]


def test_parents_and_events_are_known_by_number():
    trace = TraceBuilder().op("outer", 0, 100).op("inner", 10, 20).launch(12, 5, 3).kernel("k", 40, 5, 3).build()
    made = timeline(trace)
    names = [made.labels.texts[label] for label in made.label.tolist()]
    assert names == ["k", "outer", "inner", "cudaLaunchKernel"]
    assert made.parent.tolist() == [-1, -1, 1, 2]
    assert [made.source_of(number) for number in range(4)] == [
        ("device_events", 0),
        ("host_events", 0),
        ("host_events", 1),
        ("launches", 0),
    ]
    assert made.slices_of("host_events", np.array([1, -1, 0])).tolist() == [2, -1, 1]


def test_instants_are_slices_of_no_length_and_counters_are_none():
    built = TraceBuilder().op("a", 0, 10).event("user", "mark", 5, None, ph="i")
    built.event("mtia_counters", "load", 5, None, ph="C", value=3)
    assert [(name, start, end) for *_, name, _, start, end in lines(timeline(built.build()))] == [
        ("a", 0, 10),
        ("mark", 5, 5),
    ]


def test_the_end_of_recording_long_after_the_last_event_adds_no_empty_time():
    built = TraceBuilder().op("a", 0, 10).event("user", "mark", 15, None, ph="i")
    built.event("", "Record Window End", 400, None, ph="i", pid="", tid="")
    made = timeline(built.build())
    assert (made.size, made.window) == (2, (0, 15))


def test_an_empty_trace_has_an_empty_timeline():
    made = timeline(TraceBuilder().build())
    assert (made.size, made.tracks, made.window) == (0, (), (0, 0))
    assert made.slices_of("launches", np.array([-1])).tolist() == [-1]


@pytest.mark.parametrize("conflicts", [1, 40, 300])
def test_any_number_of_slices_may_be_open_at_once(conflicts):
    built = TraceBuilder()
    for i in range(conflicts):
        built.annotation(f"a{i}", i, 1000)
    made = timeline(built.build())
    assert made.tracks[0].lanes == conflicts
    assert np.diff(made.pyramid.rows.first).tolist() == [1] * conflicts


def launching():
    """A range of the host whose kernels run later, on two streams."""
    trace = TraceBuilder().annotation("forward", 0, 100).launch(10, 5, 1).launch(20, 5, 2).launch(30, 5, 3)
    return trace.kernel("a", 200, 10, 1).kernel("b", 250, 50, 2).kernel("c", 220, 5, 3, stream=9).kernel("d", 400, 1, 4)


def projected(trace):
    made = timeline(trace)
    places = [place for place, track in enumerate(made.tracks) if track.part == "projected"]
    return [
        (made.tracks[place].name, made.labels.texts[made.label[i]], int(made.start_ns[i]), int(made.dur_ns[i]))
        for place in places
        for i in range(made.size)[made.slices_on(place)]
    ]


def test_an_annotation_is_projected_onto_the_streams_of_its_work():
    trace = launching().build()
    assert projected(trace) == [("stream 7", "forward", 200, 100), ("stream 9", "forward", 220, 5)]
    made = timeline(trace)
    (host,) = made.slices_of("host_events", np.array([0]))
    assert (made.start_ns[host], made.dur_ns[host]) == (0, 100)


def test_what_torch_projected_is_not_projected_again():
    trace = launching().event("gpu_user_annotation", "forward", 200, 100, pid=0, tid=7)
    assert projected(trace.annotation("backward", 5, 12).build()) == [("stream 7", "backward", 200, 10)]


def test_of_what_torch_projected_without_the_threads_of_autograd_all_is_projected_above_it():
    trace = launching().event("gpu_user_annotation", "forward", 200, 10, pid=0, tid=7).build()
    assert projected(trace) == [("stream 7", "forward", 200, 100), ("stream 9", "forward", 220, 5)]
    assert [track.part for track in timeline(trace).tracks][:3] == ["projected", "annotations", "work"]


def test_what_the_profiler_writes_under_numbers_of_no_process_is_called_by_what_it_is():
    builder = TraceBuilder().op("aten::mm", 0, 5)
    for pid in (-1, "Spans", "Traces"):
        builder.event("overhead", "Buffer Request", 10, 5, pid=pid, tid=0)
    processes = {track.process for track in timeline(builder.build()).tracks}
    assert processes >= {"overhead of the profiler", "spans of the profiler", "marks of the profiler"}


def test_the_strip_shows_when_any_thread_of_the_host_is_busy():
    built = TraceBuilder().op("aten::mm", 0, 256).op("aten::mm", 10, 100).op("AddmmBackward0", 256, 256, thread=2)
    assert activity(timeline(built.build()))["host"] == [1.0] * 512
