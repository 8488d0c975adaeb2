"""What is looked for, and which slices are found."""

import json
from pathlib import Path

import numpy as np
import pytest

from kinetoscope_tb.errors import BadParameter
from kinetoscope_tb.text_query import texts_with
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.search.search import parse_find, search
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.views.host.python_calls import python_calls
from support.build import TraceBuilder


def step_with_work():
    built = TraceBuilder().step(5, 0, 400).op("aten::mm", 10, 50, **{"Input Dims": [[2, 3]]}).launch(20, 5, 1)
    built.op("aten::mm", 70, 20, **{"Input Dims": [[4]]}).launch(75, 5, 2).op("aten::add", 500, 30, thread=2)
    return built.kernel("gemm", 100, 50, 1).kernel("gemm", 200, 60, 2, stream=9).kernel("lost", 300, 10)


def hits(built, **find):
    """(name, start) of what is found, in order of time."""
    trace = built.build()
    made = timeline(trace)
    numbers = search(trace, made, parse_find(json.dumps(find), VIEWS), VIEWS).by_start[1]
    return [(made.labels.texts[made.label[i]], int(made.start_ns[i])) for i in numbers.tolist()]


@pytest.mark.parametrize(
    ("find", "starts"),
    [
        ({"text": "MM"}, [10, 70, 100, 200]),
        ({"text": "aten -mm"}, [500]),
        ({"text": "re:^(gemm|lost)$"}, [100, 200, 300]),
        ({"text": "aten re:d$"}, [500]),
        ({"name": "aten::mm", "input_shapes": "[[4]]"}, [70]),
        ({"input_shapes": None}, [500]),
        ({"name": "mm"}, []),
        ({"category": "Kernel"}, [100, 200, 300]),
        ({"op": "aten::mm"}, [20, 75, 100, 200]),
        ({"op": None}, [300]),
        ({"op": "aten::mul"}, []),
        ({"device": 0, "stream": 9, "category": "Kernel"}, [200]),
        ({"text": "ProfilerStep"}, [0, 100, 200]),
        ({"text": "ProfilerStep", "side": "host"}, [0]),
        ({"text": "ProfilerStep", "side": "device"}, [100, 200]),
        ({"text": "ProfilerStep", "step": "5"}, [0]),
        ({"name": "ProfilerStep#5", "category": "Annotation", "device": 0, "stream": 9}, [200]),
        ({"thread": "2"}, [500]),
        ({"step": "5", "category": "Kernel"}, [100, 200]),
        ({"step": None, "category": "Operator"}, [500]),
        ({"from_ns": 60, "to_ns": 100}, [0, 70, 75]),
        ({"from_ns": 100, "category": "Kernel", "least_ns": 50, "below_ns": 60}, [100]),
        ({"view": "operators", "name": "aten::mm"}, [10, 70]),
        ({"view": "operators", "name": "[unattributed]"}, [300]),
        ({"view": "operators_by_shape", "name": "aten::mm", "input_shapes": "[[2, 3]]"}, [10]),
        ({"view": "operators_by_shape", "name": "aten::add", "input_shapes": None}, [500]),
        ({"view": "kernels", "name": "gemm", "text": "-gemm"}, []),
        ({"view": "kernels_by_op", "name": "lost", "op": None}, [300]),
        ({"view": "kernel_durations", "from_ns": 0}, [100, 200, 300]),
        ({"view": "kernel_durations", "from_ns": 7}, []),
        ({"view": "launches", "call": "cudaLaunchKernel"}, [20, 75]),
        ({"view": "launches", "call": "[unattributed]"}, [300]),
        ({"view": "steps", "step": "5"}, [0]),
        ({"view": "gpus", "device": 0}, [100, 200, 300]),
        ({"view": "idle", "scope": "stream", "device": 0, "stream": 9, "step": "5"}, [200]),
        ({"view": "gaps", "device": 0, "start_ns": 150}, [100, 200]),
        ({"view": "gaps", "device": 3, "start_ns": 150}, []),
    ],
)
def test_slices_are_found_by_words_by_values_and_by_rows_of_views(find, starts):
    assert [start for _, start in hits(step_with_work(), **find)] == starts


def test_modules_stacks_graphs_products_and_copies_are_found_by_their_rows():
    built = TraceBuilder().module("Net_0", 0, 300).module("Linear_0", 10, 50).module("Linear_1", 70, 50, number=1)
    stack = {"Call stack": "a.py(1): f;"}
    built.op("aten::mm", 20, 10, **stack).op("aten::mm", 200, 10)
    assert hits(built, view="modules", path="Net_0 / Linear_1") == [("nn.Module: Linear_1", 70)]
    assert [start for _, start in hits(built, view="modules_by_class", name="Linear")] == [10, 70]
    assert hits(built, view="call_stacks", name="aten::mm", stack="a.py(1): f", is_forward_stack=False) == [
        ("aten::mm", 20)
    ]
    graph = TraceBuilder().launch(0, 5, 1, name="cudaGraphLaunch").kernel("a", 10, 5, 1).kernel("b", 20, 5, 1)
    graph.memcpy(30, 5).memcpy(40, 5, device=1)
    assert [start for _, start in hits(graph, view="graphs", graph="#1", op=None, device=0)] == [10, 20]
    copy = {"name": "Memcpy HtoD (Pageable -> Device)", "from_device": None, "to_device": None}
    assert [start for _, start in hits(graph, view="copies", device=1, **copy)] == [40]


def test_records_of_memory_lead_to_the_operator_that_was_open():
    built = TraceBuilder().op("aten::empty", 0, 20).memory(64, 10)
    trace = built.build()
    byte = int(trace.memory["offset"][0])
    assert hits(built, view="memory_events", device="cpu", first_byte=byte) == [("aten::empty", 0)]
    assert hits(built, offset=byte) == [("aten::empty", 0)]
    assert hits(built, view="memory_by_operator", device="cpu", name="aten::empty") == [("aten::empty", 0)]


def test_a_collective_is_found_by_its_group_and_number_with_its_work():
    built = TraceBuilder()
    for number in (0, 1):
        arguments = {"Collective name": "allreduce", "Process Group Name": "0", "Seq": number, "In msg nelems": 1}
        built.op("record_param_comms", 100 * number, 50, **arguments).launch(100 * number + 10, 5, number + 1)
        built.kernel("ncclDevKernel_AllReduce", 1000 * (number + 1), 20, number + 1)
    nth = built.build().collectives["nth"].to_list()
    assert [start for _, start in hits(built, group="0", nth=nth[1], category="Communication")] == [100, 2000]
    assert [start for _, start in hits(built, collective="allreduce")] == [0, 100, 1000, 2000]


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "[]",
        "{}",
        '{"nam": "x"}',
        '{"name": 3}',
        '{"nth": true}',
        '{"category": "kernel"}',
        '{"side": "gpu"}',
        '{"view": "health", "rule": "x"}',
        '{"view": "kernels", "op": "x"}',
        '{"view": ["kernels"]}',
        '{"view": "kernels", "name": 3}',
        '{"view": "gaps", "device": "0"}',
        '{"view": "gaps", "device": true}',
        "[" * 100_000,
    ],
)
def test_what_is_no_find_is_told(text):
    with pytest.raises(BadParameter):
        parse_find(text, VIEWS)


@pytest.mark.parametrize("text", ["data.py(3): decode", "re:: decode$", "decode (data.py:3)", "data.py:3"])
def test_functions_are_found_by_what_they_are_called_and_by_what_was_recorded(text):
    built = TraceBuilder().python("data.py(3): decode", 0, 10).python("data.py(40): encode", 20, 10)
    assert hits(built, text=text) == [("data.py(3): decode", 0)]


def test_python_calls_are_found_by_their_path_and_threads_as_a_whole():
    built = TraceBuilder().python("a.py(1): f", 0, 100).python("b.py(2): g", 10, 20).python("b.py(2): g", 40, 20)
    built.python("b.py(2): g", 200, 5).op("aten::mm", 45, 5).kernel("lost", 400, 5)
    rows = python_calls(built.build()).select("function", "path", "calls").rows()
    starts = {
        (name, calls): [start for _, start in hits(built, view="python_calls", function=name, path=path)]
        for name, path, calls in rows
    }
    assert starts == {
        ("thread 1", None): [0, 10, 40, 45, 200],
        ("f", 1): [0],
        ("g", 2): [10, 40],
        ("aten::mm", 1): [45],
        ("g", 1): [200],
        ("[elsewhere]", None): [400],
    }


def test_one_find_has_one_spelling():
    assert parse_find('{"name":"a",  "category":"Kernel"}', {}) == parse_find('{"category": "Kernel", "name": "a"}', {})


CASES = json.loads((Path(__file__).parents[3] / "frontend" / "tests" / "filters.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("words", "places"), CASES["matches"])
def test_words_find_what_the_page_s_filter_lets_through(words, places):
    assert np.flatnonzero(texts_with(words, CASES["texts"])).tolist() == places


def test_a_broken_pattern_says_so():
    with pytest.raises(BadParameter, match="isn't a pattern"):
        texts_with("re:(", [""])


def test_the_next_and_the_previous_hit_and_their_places_are_told():
    trace = step_with_work().build()
    result = search(trace, timeline(trace), parse_find('{"text": "gemm"}', VIEWS), VIEWS)
    assert [result.place_after(at) for at in (None, 99, 100, 200)] == [0, 0, 1, 2]
    assert [result.place_before(at) for at in (None, 201, 200, 100)] == [1, 1, 0, -1]
    assert result.names() == [("gemm", 2, int(result.timeline.dur_ns[result.numbers].sum()))]
    histogram = result.histogram()
    assert (sum(histogram), len(histogram)) == (2, 512)
    assert [i for i, count in enumerate(histogram) if count] == [96, 193]  # of 530 ns: 100 and 200


def test_tiles_of_what_was_found_have_these_slices_alone_with_their_own_numbers():
    trace = step_with_work().build()
    made = timeline(trace)
    result = search(trace, made, parse_find('{"view": "kernels", "name": "gemm"}', VIEWS), VIEWS)
    tile = result.pyramid().tile(0, made.pyramid.rows.first.size - 1, 0, 0)
    assert tile.slice.tolist() == result.numbers.tolist()
    assert [made.labels.texts[label] for label in tile.label] == ["gemm", "gemm"]
    assert np.diff(tile.offsets).sum() == 2
