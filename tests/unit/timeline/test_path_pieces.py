"""The critical path on the timeline: each segment with the slice that it runs in."""

import json

import pytest

from kinetoscope_tb.timeline.core.build import timeline as timeline_of
from kinetoscope_tb.timeline.critical_path.path_pieces import PathPieces
from kinetoscope_tb.timeline.search.search import parse_find, search
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder


@pytest.fixture(scope="module")
def built():
    builder = TraceBuilder().step(1, 0, 100).op("aten::mm", 10, 40).launch(20, 10, 1).kernel("gemm", 35, 200, 1)
    trace = builder.build()
    return trace, timeline_of(trace)


@pytest.fixture(scope="module")
def drawn(built):
    return PathPieces.of(*built), built[1]


def pieces_of(drawn, *window, buckets=1000):
    path, timeline = drawn
    pieces = path.within(timeline, *window, buckets)
    return [(s["part"], s["from_ns"], s["to_ns"], s["slice"] and s["slice"]["name"], s["count"]) for s in pieces]


def test_segments_come_in_order_with_their_slices_and_waits_without(drawn):
    assert pieces_of(drawn, 0, 300) == [
        ("between operators", 0, 10, "ProfilerStep#1", 1),
        ("operator", 10, 20, "aten::mm", 1),
        ("runtime call", 20, 30, "cudaLaunchKernel", 1),
        ("launch latency", 30, 35, None, 1),
        ("computation", 35, 235, "gemm", 1),
    ]


def test_only_segments_that_reach_into_the_range_are_listed(drawn):
    assert [part for part, *_ in pieces_of(drawn, 10, 21)] == ["operator", "runtime call"]
    assert pieces_of(drawn, 300, 400) == []


def test_short_ones_of_a_thread_are_told_as_the_longest_of_them(drawn):
    assert pieces_of(drawn, 0, 300, buckets=3) == [
        ("between operators", 0, 30, "ProfilerStep#1", 3),
        ("launch latency", 30, 35, None, 1),
        ("computation", 35, 235, "gemm", 1),
    ]


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"view": "critical_path", "step": "all", "part": "kernel"}, ["gemm"]),
        ({"view": "critical_path", "step": "1", "part": "launch"}, ["cudaLaunchKernel", "gemm"]),
        ({"view": "critical_path", "step": "2", "part": "kernel"}, []),
        ({"view": "critical_path_names", "name": "cudaLaunchKernel", "part": "launch"}, ["cudaLaunchKernel"]),
        ({"view": "critical_path_names", "name": "cudaLaunchKernel", "part": "host_operator"}, []),
        (
            {"view": "critical_path_names", "name": "aten::mm", "part": "all"},
            ["aten::mm", "cudaLaunchKernel", "gemm"],
        ),
        ({"view": "critical_path_segments", "step": "1", "start_ns": 10}, ["aten::mm"]),
    ],
)
def test_rows_of_the_path_s_views_lead_to_what_they_run_in(built, row, names):
    trace, timeline = built
    numbers = search(trace, timeline, parse_find(json.dumps(row), VIEWS), VIEWS).numbers
    texts = timeline.labels.texts
    assert sorted(texts[label] for label in timeline.label[numbers]) == names
