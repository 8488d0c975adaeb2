"""The graph of waits against the recorded times, against programs whose truth is known, and against a slow search."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import polars as pl
from hypothesis import example, given
from hypothesis import strategies as st

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.critical_path.classes import CLASSES
from kinetoscope_tb.critical_path.explanation import critical_paths, critical_stretches, path_explanation
from kinetoscope_tb.critical_path.graph import Graph
from kinetoscope_tb.critical_path.names import EventRows, Names
from kinetoscope_tb.critical_path.path import LONG_NS, LONG_SEGMENTS, critical_path
from kinetoscope_tb.critical_path.what_if import WhatIf
from kinetoscope_tb.measures.recording.usual_step import UsualStep
from kinetoscope_tb.trace.results import bytes_of
from kinetoscope_tb.views import VIEWS
from support import programs
from support.examples import examples
from support.graph_delays import class_of_lag, lags, own_delays
from support.programs import Launch, Op, Sync, Wait
from support.strategies import builders

few = examples(40)
streams = st.integers(7, 9)
lengths = st.integers(1, 400)
parts = st.one_of(
    st.builds(Op, st.sampled_from(["aten::a", "aten::b"]), lengths),
    st.builds(Launch, st.sampled_from(["gemm", "norm"]), streams, lengths),
    st.builds(Wait, streams, streams),
    st.builds(Sync, st.one_of(st.none(), streams)),
)
program_lists = st.lists(parts, min_size=1, max_size=25)


def slow_times(graph, own, lag, since):
    """When each node happens with these delays and lags: those that happened by `since` stay, predecessors come first."""
    times = graph.nodes.time.tolist()
    for node in graph.nodes.order.tolist():
        edges = range(graph.first[node], graph.first[node + 1])
        if edges and graph.nodes.time[node] > since:
            times[node] = max(times[graph.predecessor[e]] + lag[e] for e in edges) + own[node]
    return times


@few
@given(builders(), st.sampled_from([10, 50, 100]), st.integers(1, 5))
def test_what_holds_of_the_graph_and_the_path_of_any_recording(builder, percent, together):
    trace = builder.build()
    explained = path_explanation(trace)
    graph, path = explained.graph, critical_paths(trace)
    assert_unchanged_delays_give_the_recorded_times(graph)
    assert_variants_save_what_a_slow_simulation_of_each_saves(trace, explained, percent, together)
    assert_segments_follow_each_other_through_the_whole_step(trace, path)
    assert_stretches_are_segments_of_one_class_row_and_thread_together(critical_stretches(trace), path)
    assert_the_path_turns_where_a_slow_search_turns(trace, graph, path)
    assert_an_explanation_is_made_once_and_says_what_its_parts_say(trace, explained)
    assert_parts_and_names_of_the_path_add_up_to_the_steps(trace)
    assert_no_step_gets_longer_and_less_never_saves_more(trace)


def assert_unchanged_delays_give_the_recorded_times(graph):
    again = slow_times(graph, own_delays(graph), lags(graph), graph.nodes.time.min() - 1)
    assert again == graph.nodes.time.tolist()
    assert min(own_delays(graph)) >= 0


def assert_stretches_are_segments_of_one_class_row_and_thread_together(stretches, path):
    length = pl.col("end_ns") - pl.col("start_ns")
    assert stretches.long_segments.equals(path.filter(length >= LONG_NS).select(*LONG_SEGMENTS))
    same = ["step", "class", "device_event", "thread"]
    run = path.select(pl.struct(same).rle_id().alias("run"))
    times = pl.first("start_ns"), pl.last("end_ns"), pl.first(*same[1:])
    merged = path.hstack(run).group_by("run", maintain_order=True).agg(*times).select(*LONG_SEGMENTS)
    with patch("kinetoscope_tb.critical_path.path._AT_ONCE", 3):
        parts = [*stretches.parts()]
    columns = [np.concatenate([np.empty(0, np.int64), *column]) for column in zip(*parts, strict=True)] or [[]] * 5
    assert [*zip(*map(list, columns), strict=True)] == merged.rows()
    of_classes = dict(merged.group_by("class").agg(length.sum()).rows())
    assert stretches.lengths(lambda part: part.end - part.start).tolist() == [
        of_classes.get(number, 0) for number in range(len(CLASSES))
    ]


def assert_variants_save_what_a_slow_simulation_of_each_saves(trace, explained, percent, together):
    graph = explained.graph
    idle = UsualStep(0, 1, 1, 1, 1, is_steady=True, most_cost_ns=1)  # nothing bounds the host
    what_if = replace(explained.what_if, pace=replace(explained.what_if.pace, usual=idle))
    small = patch.multiple("kinetoscope_tb.critical_path.what_if", _MOST_VALUES=16 * together, _REACH=4)
    with small:  # so that some nodes wait for far ones
        saved = what_if.saved_by_variant(what_if.part, len(CLASSES), percent)
        changes = np.where(what_if.part == np.arange(len(CLASSES))[:, None], np.uint8(percent), np.uint8(0))
        assert what_if.saved_by_change(changes).tolist() == saved.tolist()
    starts, ends, (first, after) = trace.steps["start_ns"].to_list(), graph.nodes.step_ends, what_if.counted_range
    edges = [
        (node, e) for node in range(graph.nodes.time.size) for e in range(graph.first[node], graph.first[node + 1])
    ]
    for part, own_saved in enumerate(saved.tolist()):
        own = [
            ns - (ns * percent // 100 if of == part else 0)
            for ns, of in zip(own_delays(graph), what_if.part.tolist(), strict=True)
        ]
        lag = [
            ns - (ns * percent // 100 if what_if.part[node] == class_of_lag(what_if, node, e) == part else 0)
            for (node, e), ns in zip(edges, lags(graph), strict=True)
        ]
        for begin, stop in ((0, first), (first, len(starts))):
            new = slow_times(graph, own, lag, starts[begin])[ends][begin:stop]
            expected = slow_savings(graph.nodes.time[ends].tolist()[begin:stop], new, after - begin)
            lengths = what_if.recorded.tolist()[begin:stop]
            assert own_saved[begin:stop] == [min(pair) for pair in zip(expected, lengths, strict=True)]


def slow_savings(recorded, new, counted):
    """What each step saves for good: the last of the `counted` steps decides for them, the last of all for the others."""
    earlier = [end - max(new[: step + 1]) for step, end in enumerate(recorded)]
    lasting = [min(earlier[step : counted if step < counted else None]) for step in range(len(earlier))]
    lasting[counted:] = [max(lasting[counted - 1], ns) for ns in lasting[counted:]]
    return [ns - before for ns, before in zip(lasting, [0, *lasting], strict=False)]


def assert_segments_follow_each_other_through_the_whole_step(trace, path):
    for number, step in enumerate(trace.steps.rows(named=True)):
        own = path.filter(pl.col("step") == number)
        assert [*own["start_ns"], step["end_ns"]][1:] == own["end_ns"].to_list()
        assert own["start_ns"].to_list()[:1] == [step["start_ns"]][: own.height]
        assert (own["end_ns"] - own["start_ns"]).sum() == step["end_ns"] - step["start_ns"]


def assert_parts_and_names_of_the_path_add_up_to_the_steps(trace):
    lengths = dict(zip(trace.steps["name"], trace.steps["end_ns"] - trace.steps["start_ns"], strict=True))
    each = VIEWS["critical_path"].run(trace, per="step")
    assert dict(each.group_by("step").agg(pl.col("path_ns").sum()).rows()) == {k: v for k, v in lengths.items() if v}
    whole = VIEWS["critical_path"].run(trace)["path_ns"].sum()
    for by in ("name", "operator"):
        assert VIEWS["critical_path_names"].run(trace, by=by)["path_ns"].sum() == whole


def slow_path(graph, node, start):
    """The times at which the path to a node turns from one node to the next, found by looking at all edges."""
    turns, lag = [], lags(graph)
    while node != NONE and graph.nodes.time[node] > start:
        turns.append(int(graph.nodes.time[node]))
        edges = range(graph.first[node], graph.first[node + 1])
        times = graph.nodes.time
        before = [(int(times[graph.predecessor[e]] + lag[e]), int(times[graph.predecessor[e]]), -e) for e in edges]
        node = graph.predecessor[-max(before)[2]] if before else NONE
    return sorted({start, *turns})


def assert_the_path_turns_where_a_slow_search_turns(trace, graph, path):
    for number, step in enumerate(trace.steps.rows(named=True)):
        turns = slow_path(graph, graph.nodes.step_ends.start + number, step["start_ns"])
        own = path.filter(pl.col("step") == number)
        assert {*own["start_ns"], *own["end_ns"]} <= set(turns)  # segments of the same are one


def is_named(trace, events, name):
    """Whether the events have the name."""
    names = Names.of(trace)
    return (names.text(names.event_names(events)) == name).fill_null(value=False)


def nodes_named(trace, graph, name):
    return is_named(trace, EventRows.of_nodes(trace, graph), name).to_numpy()


@examples(80)
@given(program_lists, st.sampled_from(["aten::a", "gemm", "norm"]), st.sampled_from([10, 50, 100]))
@example([Launch("gemm", 7, 100), Wait(8, 7), Launch("norm", 8, 50), Sync(8), Op("aten::a", 10)], "gemm", 50)
def test_what_would_be_saved_is_what_the_faster_program_takes_less(program, name, percent):
    builder, length = programs.run(program)
    trace = builder.build()
    graph = Graph.of(trace)
    what_if = WhatIf.of(trace, graph)
    assert what_if.recorded.tolist() == [length]
    _, shorter = programs.run(programs.faster(program, name, percent))
    assert what_if.savings_of(nodes_named(trace, graph, name), percent).tolist() == [length - shorter]


@few
@given(program_lists)
def test_a_whole_part_saves_what_the_faster_program_takes_less_and_only_what_is_on_the_path_saves_anything(program):
    builder, length = programs.run(program)
    trace = builder.build()
    table = VIEWS["critical_path"].run(trace, percent="50")
    for part, names in (("host_operator", ("aten::a", "aten::b")), ("kernel", ("gemm", "norm"))):
        faster = program
        for name in names:
            faster = programs.faster(faster, name, 50)
        _, shorter = programs.run(faster)
        assert table.filter(pl.col("part") == part)["saved_ns"].sum() == length - shorter
    graph = Graph.of(trace)
    path, what_if = critical_path(trace, graph), WhatIf.of(trace, graph)
    for name in ("aten::a", "aten::b", "gemm", "norm"):
        saved = what_if.savings_of(nodes_named(trace, graph, name), 100)
        own = path.filter(is_named(trace, EventRows.of_path(path), name))
        on_path = own.select(pl.col("end_ns") - pl.col("start_ns")).to_series().sum()
        assert saved[0] <= on_path


def assert_an_explanation_is_made_once_and_says_what_its_parts_say(trace, explained):
    assert path_explanation(trace) is explained
    assert critical_paths(trace).equals(critical_path(trace, Graph.of(trace)))
    assert explained.what_if.part.tolist() == WhatIf.of(trace, Graph.of(trace)).part.tolist()
    assert bytes_of([explained]) > 0


def assert_no_step_gets_longer_and_less_never_saves_more(trace):
    length = (trace.steps["end_ns"].max() - trace.steps["start_ns"].min()) if trace.steps.height else 0
    fewer: dict[str, dict[object, int]] = {"critical_path": {}, "critical_path_names": {}}
    for percent in ("10", "50", "100"):
        steps = VIEWS["critical_path"].run(trace, per="step", percent=percent)
        assert (steps["saved_ns"] >= 0).all()
        for view, before in fewer.items():
            rows = VIEWS[view].run(trace, percent=percent)
            saved = dict(zip(rows.select(VIEWS[view].table.key).rows(), rows["saved_ns"].to_list(), strict=True))
            estimated = {key: ns for key, ns in saved.items() if ns is not None}
            assert all(before.get(key, 0) <= ns <= length for key, ns in estimated.items())
            fewer[view] = estimated
        names = VIEWS["critical_path_names"].run(trace, percent=percent)
        assert (names["path_ns"] <= names["whole_ns"]).all()
