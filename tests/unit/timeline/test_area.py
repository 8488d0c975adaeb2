"""What ran in an area of the timeline."""

import json

import polars as pl
import pytest

from kinetoscope_tb.timeline.area.flame import area_flames
from kinetoscope_tb.timeline.area.groups import groups
from kinetoscope_tb.timeline.area.pivot import area
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.search.search import parse_find, search
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder, same


def table(builder, from_ns, to_ns, *parts, by="name"):
    trace = builder.build()
    made = timeline(trace)
    tracks = [place for place, track in enumerate(made.tracks) if not parts or track.part in parts]
    return area(made, groups(trace, made, by), from_ns, to_ns, tracks)


def flames(builder, from_ns, to_ns, *, is_device=False):
    made = timeline(builder.build())
    return area_flames(made, from_ns, to_ns, range(len(made.tracks)), is_device=is_device)


def test_amounts_are_cut_to_the_area_and_durations_are_whole():
    builder = TraceBuilder().op("outer", 0, 70).op("inner", 10, 20).op("inner", 60, 30).op("later", 200, 10)
    same(
        table(builder, 20, 80),
        """
        name   category  self_ns  total_ns  calls  union_ns  mean_ns  min_ns  p50_ns  p95_ns  max_ns  is_covering
        outer  Operator  30       50        1      50        70       70      70      70      70      False
        inner  Operator  30       30        2      30        25       20      20      30      30      False
        """,
    )


def test_ancestors_that_cover_the_area_are_apart_but_not_what_alone_runs_in_it():
    builder = TraceBuilder().step(3, 0, 100).op("outer", 0, 100).op("inner", 10, 30)
    same(
        table(builder, 20, 80),
        """
        name            category  self_ns  total_ns  is_covering
        outer           Operator  40       60        True
        inner           Operator  20       20        False
        ProfilerStep#3  Step      0        60        True
        """,
    )
    same(
        table(builder, 15, 35),
        """
        name            category  self_ns  total_ns  is_covering
        inner           Operator  20       20        False
        ProfilerStep#3  Step      0        20        True
        outer           Operator  0        20        True
        """,
    )


def test_a_function_does_not_have_the_time_of_the_operators_that_it_calls():
    builder = TraceBuilder().python("f.py(1): f", 0, 100).op("aten::add", 10, 40).launch(20, 10, correlation=1)
    same(
        table(builder, 0, 200),
        """
        name              category  self_ns  total_ns
        f.py(1): f        Python    60       100
        aten::add         Operator  30       40
        cudaLaunchKernel  Runtime   10       10
        """,
    )
    assert table(builder, 0, 200, "python")["self_ns"].to_list() == [100]


def test_annotations_on_a_stream_take_no_time_from_kernels():
    builder = TraceBuilder().kernel("k", 0, 50).kernel("k", 60, 40)
    builder.event("gpu_user_annotation", "forward", 0, 100, pid=0, tid=7)
    builder.event("gpu_user_annotation", "part", 20, 80, pid=0, tid=7)
    same(
        table(builder, 0, 200),
        """
        name     category    self_ns  total_ns  is_device
        k        Kernel      90       90        True
        forward  Annotation  0        100       True
        part     Annotation  0        80        True
        """,
    )
    same(
        flames(builder, 0, 200, is_device=True),
        """
        name      kind        calls  total_ns  self_ns  parent
        stream 7  -           0      90        0        -
        forward   Annotation  1      90        0        0
        k         Kernel      1      50        50       1
        part      Annotation  1      40        0        1
        k         Kernel      1      40        40       3
        """,
    )


def test_of_kernels_that_overlap_on_a_stream_the_later_one_has_the_time():
    builder = TraceBuilder().kernel("long", 0, 100).kernel("short", 20, 30)
    same(
        table(builder, 0, 100),
        """
        name   self_ns  total_ns
        long   70       100
        short  30       30
        """,
    )


def test_what_overlaps_on_several_tracks_is_counted_once_in_the_union():
    builder = TraceBuilder().kernel("k", 0, 50).kernel("k", 20, 60, stream=9).memcpy(90, 10, name="copy")
    same(
        table(builder, 0, 100, "work"),
        """
        name  category  self_ns  total_ns  calls  union_ns
        k     Kernel    110      110       2      80
        copy  Memcpy    10       10        1      10
        """,
    )


def test_the_area_ends_before_its_end_and_instants_lie_in_it():
    builder = TraceBuilder().event("user", "mark", 50, None, ph="i").op("a", 0, 20).op("b", 50, 20)
    assert table(builder, 20, 50).height == 0
    assert sorted(table(builder, 50, 51)["name"]) == ["b", "mark"]
    assert table(builder, 10, 10).select("name", "total_ns").rows() == [("a", 0)]  # what is open then


def test_only_the_chosen_tracks_count():
    builder = TraceBuilder().op("a", 0, 20).kernel("k", 0, 20)
    trace = builder.build()
    made = timeline(trace)
    assert table(builder, 0, 100, "work")["name"].to_list() == ["k"]
    assert area(made, groups(trace, made, "name"), 0, 100, []).height == 0


def training():
    """A module in an annotation, with an operator that launches a kernel."""
    builder = TraceBuilder().annotation("forward", 0, 100).module("Net_0", 5, 90).module("Linear_0", 10, 50)
    builder.op("aten::linear", 20, 30).launch(30, 5, correlation=1).kernel("gemm", 60, 200, correlation=1)
    return builder.kernel("stray", 300, 10)


def test_host_and_device_work_is_grouped_by_what_launched_it():
    same(
        table(training(), 0, 400, by="module"),
        """
        name              self_ns  calls  is_device
        Net_0 / Linear_0  200      1      True
        Net_0 / Linear_0  50       3      False
        Net_0             40       1      False
        [outside modules]  10       1      False
        [unattributed]    10       1      True
        """,
    )


def test_groups_by_operator_annotation_category_and_thread():
    def amounts(by):
        rows = table(training(), 0, 400, by=by).select("name", "is_device", "self_ns").rows()
        return {(name, is_device): own for name, is_device, own in rows}

    assert amounts("operator") == {
        ("aten::linear", True): 200,
        ("[no operator]", True): 10,
        ("aten::linear", False): 30,
        ("[no operator]", False): 70,
    }
    assert amounts("annotation") == {
        ("forward", True): 200,
        ("[outside annotations]", True): 10,
        ("forward", False): 100,
    }
    assert amounts("category") == {
        ("Kernel", True): 210,
        ("Annotation", True): 0,
        ("Module", False): 60,
        ("Annotation", False): 10,
        ("Operator", False): 25,
        ("Runtime", False): 5,
    }
    by_thread = table(training(), 0, 400, by="thread")
    assert by_thread["self_ns"].to_list() == [210, 100]
    assert by_thread["process"].null_count() == 0


@pytest.mark.parametrize("by", ["operator", "module", "annotation"])
def test_waits_of_streams_are_not_counted_as_unknown_work(by):
    builder = TraceBuilder().op("aten::mm", 0, 30).launch(10, 5, 1).kernel("gemm", 60, 20, 1)
    builder.event("cuda_sync", "Stream Wait Event", 80, 30, device=0, stream=7, cuda_sync_kind="Stream Wait Event")
    on_device = table(builder, 0, 400, by=by).filter("is_device")
    assert {
        name: total for name, total in on_device.select("name", "total_ns").rows() if name == "[no device work]"
    } == {"[no device work]": 30}
    assert on_device["total_ns"].sum() == 50


def test_a_timeline_without_tracks_has_no_groups():
    assert table(TraceBuilder().memory(64, 10), 0, 400, by="operator").is_empty()


def test_work_launched_outside_modules_and_operators_is_unattributed_as_in_the_view_of_modules():
    builder = training().launch(110, 5, 2).kernel("late", 320, 10, 2)
    on_device = table(builder, 0, 400, by="module").filter("is_device")
    assert dict(on_device.select("name", "total_ns").rows()) == {"Net_0 / Linear_0": 200, "[unattributed]": 20}
    view = VIEWS["modules"].run(builder.build())
    assert dict(view.filter(pl.col("device_self_ns") > 0).select("path", "device_self_ns").rows()) == {
        "Net_0 / Linear_0": 200,
        "[unattributed]": 20,
    }


@pytest.mark.parametrize("is_recorded", [False, True])
def test_the_span_of_an_annotation_on_a_stream_encloses_work_and_counts_no_time_twice(is_recorded):
    builder = TraceBuilder().annotation("forward", 0, 100).launch(10, 5, 1).launch(20, 5, 2)
    builder.kernel("gemm", 60, 20, 1).kernel("relu", 100, 10, 2).kernel("stray", 300, 10)
    if is_recorded:
        builder.event("gpu_user_annotation", "forward", 60, 50, pid=0, tid=7)
    by_name = table(builder, 0, 400).filter(pl.col("is_device") & (pl.col("name") == "forward"))
    assert by_name.select("self_ns", "total_ns", "calls", "union_ns").rows() == [(0, 50, 1, 50)]
    for by, group, busy, kernels in [("thread", "stream 7", 40, 3), ("annotation", "forward", 30, 2)]:
        row = table(builder, 0, 400, by=by).filter(pl.col("is_device") & (pl.col("name") == group))
        assert row.select("self_ns", "total_ns", "calls", "union_ns").rows() == [(busy, busy, kernels, busy)]
    same(
        flames(builder, 0, 400, is_device=True).filter(pl.col("total_ns") > 0),
        """
        name      kind        calls  total_ns  self_ns  parent
        stream 7  -           0      40        0        -
        forward   Annotation  1      30        0        0
        gemm      Kernel      1      20        20       1
        relu      Kernel      1      10        10       1
        stray     Kernel      1      10        10       0
        """,
    )


@pytest.mark.parametrize("by", ["thread", "operator", "module", "annotation"])
def test_the_slices_of_a_row_are_found_by_its_group(by):
    trace = training().build()
    made = timeline(trace)
    begin, end = made.window
    rows = area(made, groups(trace, made, by), begin, end + 1, range(len(made.tracks))).rows(named=True)
    assert len(rows) > 1
    sides = {(row["name"], row["process"], row["is_device"]): 0 for row in rows}
    for row in rows:  # what covers the area is a row of its own
        sides[row["name"], row["process"], row["is_device"]] += row["calls"]
    for (name, process, is_device), calls in sides.items():
        group = {"in_process": process} if by == "thread" else {"side": "device" if is_device else "host"}
        find = parse_find(json.dumps({f"in_{by}": name, **group}), VIEWS)
        assert search(trace, made, find, VIEWS).numbers.size == calls


def test_flames_have_what_covers_the_area_as_time_of_the_thread():
    builder = TraceBuilder().op("outer", 0, 100).op("a", 10, 30).op("b", 20, 10).op("a", 50, 20).op("b", 55, 5)
    same(
        flames(builder, 15, 95),
        """
        name      kind      calls  total_ns  self_ns  parent
        thread 1  -         0      80        35       -
        a         Operator  2      45        30       0
        b         Operator  2      15        15       1
        """,
    )
    assert flames(builder, 15, 95, is_device=True).height == 0
