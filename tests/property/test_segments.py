"""What a recording is reduced to between its sync points, against its graph and a slow search of all ways."""

from functools import cache

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.critical_path.graph import Graph
from kinetoscope_tb.critical_path.path import critical_path
from kinetoscope_tb.critical_path.segments import MOST_ENDS, segments
from support.examples import examples
from support.graph_delays import lags, own_delays
from support.strategies import builders

few = examples(30)
NOBODY = np.empty(0, np.int64)


def slow_ways(graph, target, begin, ends):
    """From each end that a node can be reached from, the latest instant by which it is, looking at all edges."""
    nodes, lag, own = graph.nodes, lags(graph), own_delays(graph)

    @cache
    def ways(node):
        if node in ends and node != target:
            return {ends[node]: int(nodes.time[node])}
        edges = range(graph.first[node], graph.first[node + 1])
        found = {} if edges else {NONE: int(nodes.time[node])}
        for e in edges:
            u, took = int(graph.predecessor[e]), lag[e] + own[node]
            before = ways(u) if nodes.time[u] > begin else {NONE: int(nodes.time[u])}
            for end, at in before.items():
                if at + took > begin:
                    found[end] = max(found.get(end, 0), at + took)
        return found

    return ways(target)


@few
@given(builders())
def test_without_meetings_the_leg_of_a_step_is_its_critical_path(builder):
    trace = builder.build()
    graph = Graph.of(trace)
    path = critical_path(trace, graph)
    for step, since, early, spent in segments(trace, graph, NOBODY, NOBODY).drop("sync_point").rows():
        own = path.filter(pl.col("step") == step)
        assert (since, early) == (NONE, 0)
        for part, length in enumerate(spent):
            assert (
                length == own.filter(pl.col("class") == part).select(pl.col("end_ns") - pl.col("start_ns")).sum().item()
            )


@few
@given(builders(), st.data())
def test_legs_are_the_longest_ways_between_meetings(builder, data):
    trace = builder.build()
    graph = Graph.of(trace)
    nodes, rows = graph.nodes, trace.device_events.height
    meets = data.draw(st.lists(st.integers(0, rows - 1), unique=True, max_size=6)) if rows else []
    start = np.array([nodes.starts.start + row for row in meets], np.int64)
    end = np.array([nodes.ends.start + row for row in meets], np.int64)
    pieces = segments(trace, graph, start, end)
    begins, stops = (trace.steps[side].to_numpy() for side in ("start_ns", "end_ns"))
    ends = {int(node): sync_point for sync_point, node in enumerate(end)}
    targets = {(step, NONE): nodes.step_ends.start + step for step in range(trace.steps.height)}
    for sync_point, node in enumerate(start):
        inside = np.flatnonzero((begins < nodes.time[node]) & (nodes.time[node] <= stops))
        targets |= {(int(step), sync_point): int(node) for step in inside}
    seen = 0
    for (step, sync_point), node in targets.items():
        if begins[step] == stops[step]:
            continue
        own = pieces.filter((pl.col("step") == step) & (pl.col("sync_point") == sync_point))
        ways = slow_ways(graph, node, begins[step], ends)
        assert own["slack_ns"][0] == 0
        assert own["slack_ns"].is_sorted()
        earliest = {since: int(nodes.time[node]) - early for since, early in own.select("since", "slack_ns").rows()}
        assert sorted(earliest.values()) == sorted(ways.values())[-MOST_ENDS:]
        assert all(ways[since] == at for since, at in earliest.items())
        for since, early, spent in own.select("since", "slack_ns", "spent_ns").rows():
            source = int(begins[step]) if since == NONE else int(nodes.time[end[since]])
            assert sum(spent) == nodes.time[node] - early - source
        seen += own.height
    assert seen == pieces.height
