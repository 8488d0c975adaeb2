"""The files that torch 2.15's own writers made hold exactly what the truth beside them says."""

import numpy as np
import polars as pl
import pytest

from kinetoscope_tb.critical_path.edges import INFERRED, Kind
from kinetoscope_tb.critical_path.graph import Graph
from kinetoscope_tb.errors import NotATrace
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace.graph_edges import graph_edges
from kinetoscope_tb.views.device.copies import copies
from support.torch_2_15 import truth

WINDOWS = ("eager", "graphs", "graphs_no_edges", "lanes", "counters", "counters_nan", "two_devices")
KINDS = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}


@pytest.fixture(params=WINDOWS)
def window(torch_2_15, request):
    """(trace, columns of the truth by kind) of a window that Cuspy's writer wrote."""
    path = torch_2_15 / f"cuspy/cuspy_{request.param}.json.gz"
    return read(path), truth(path)["window"]["columns"]


def test_work_has_its_time_device_and_cuda_stream_whatever_lane_it_is_drawn_on(window):
    trace, columns = window
    names = ("start_ns", "end_ns", "device_id", "stream_id", "correlation_id")
    expected = [
        (KINDS[kind], *row)
        for kind in KINDS
        if kind in columns
        for row in zip(*(columns[kind][name] for name in names), strict=True)
    ]
    rows = trace.device_events.select(
        pl.col("kind").cast(pl.String),
        pl.col("start_ns") + trace.origin_ns,
        (pl.col("start_ns") + pl.col("dur_ns") + trace.origin_ns).alias("end_ns"),
        "device",
        "stream",
        pl.col("correlation").replace(-1, 0),
    )
    assert sorted(rows.rows()) == sorted(expected)


def test_nodes_of_graphs_have_whole_ids(window):
    trace, columns = window
    work = [columns[kind] for kind in KINDS if "graph_node_id" in columns.get(kind, {})]
    expected = [node for column in work for node in column["graph_node_id"] if node]
    assert sorted(trace.device_events.filter(pl.col("graph_id") >= 0)["graph_node_id"]) == sorted(expected)


def test_nodes_without_device_work_are_known_and_are_no_work(window):
    trace, _ = window
    assert "unknown_category" not in {diagnostic.rule for diagnostic in trace.diagnostics}
    assert set(trace.device_events["kind"].cast(pl.String)) <= set(KINDS.values())


def test_the_last_step_is_complete_where_the_window_is_drawn_from_the_rows(torch_2_15):
    traces = {path: read(path) for path in sorted(torch_2_15.glob("*/*.json.gz")) if is_trace(path)}
    incomplete = [path.name for path, trace in traces.items() if not trace.steps["is_complete"].all()]
    assert len(traces) > 20
    assert not incomplete


def is_trace(path):
    return not any(word in path.name for word in ("truth", "memory_timeline", "execution_trace", "py_stacks"))


def test_a_copy_says_its_direction_and_its_memory(torch_2_15):
    rows = copies(read(torch_2_15 / "cuspy/cuspy_eager.json.gz"))
    assert rows.sort("name").select("name", "direction", "source", "target", "is_pageable").rows() == [
        ("Memcpy DtoD (Device -> Device)", "DtoD", "Device", "Device", False),
        ("Memcpy DtoH (Device -> Pageable)", "DtoH", "Device", "Pageable", True),
        ("Memcpy HtoD (Pinned -> Device)", "HtoD", "Pinned", "Device", False),
        ("Memcpy PtoP (Device -> Device)", "PtoP", "Device", "Device", False),
        ("Memset (Device)", "fill", None, None, None),
    ]


@pytest.mark.parametrize("name", ["graphs", "lanes"])
def test_arrows_between_nodes_are_dependencies_of_one_replay(torch_2_15, name):
    """The fixture's edges: 7 per replay, but 5 in the one whose host node has no correlation."""
    path = torch_2_15 / f"cuspy/cuspy_{name}.json.gz"
    trace = read(path)
    edges = graph_edges(trace)
    deps = truth(path.with_name("cuspy_graphs.json.gz"))["window"]["graph_deps"]
    waits = {(int(later), earlier) for later, nodes in deps.items() for earlier in nodes}
    is_work = (edges.before < edges.rows) & (edges.after < edges.rows)
    before, after = (trace.device_events[side[is_work].tolist()] for side in (edges.before, edges.after))
    assert edges.before.size == 30
    assert set(zip(after["graph_node_id"], before["graph_node_id"], strict=True)) <= waits
    assert (before["correlation"] == after["correlation"]).all()


def test_dependencies_hold_across_nodes_without_device_work(torch_2_15):
    """The all-reduce waits for the event node, and that for the matmul."""
    trace = read(torch_2_15 / "cuspy/cuspy_graphs.json.gz")
    after, before = graph_edges(trace).between_rows()
    names = trace.device_events["name"].cast(pl.String).to_numpy()
    is_reduce = np.char.startswith(names[after].astype(str), "nccl")
    assert {name.split("<")[0] for name in names[before[is_reduce]]} == {
        "void cutlass::Kernel2",
        "void at::native::vectorized_elementwise_kernel",
    }


def test_without_recorded_edges_there_are_none(torch_2_15):
    assert graph_edges(read(torch_2_15 / "cuspy/cuspy_graphs_no_edges.json.gz")).before.size == 0


def test_counters_have_their_values_and_a_bare_nan_is_unknown(torch_2_15):
    trace = read(torch_2_15 / "cuspy/cuspy_counters.json.gz")
    odd = read(torch_2_15 / "cuspy/cuspy_counters_nan.json.gz")
    assert trace.counters["value"].is_finite().all()
    assert odd.counters.height == trace.counters.height
    assert odd.counters["value"].is_nan().sum() == 1
    assert set(trace.counters["process"].cast(pl.String)) == {"GPU 0 Counters"}
    assert not [diagnostic for diagnostic in odd.diagnostics if diagnostic.level != "note"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("cpu/train_all.execution_trace.json.gz", "this is an execution trace"),
        ("sidecars/kernel_py_stacks.json.gz", "the Python stacks of the nodes of CUDA graphs"),
    ],
)
def test_what_is_no_trace_is_named(torch_2_15, path, words):
    with pytest.raises(NotATrace, match=words):
        read(torch_2_15 / path)


def test_a_recorded_dependency_outranks_what_the_times_suggest(torch_2_15):
    """No node of a graph with recorded dependencies has an inferred one."""
    trace = read(torch_2_15 / "cuspy/cuspy_graphs.json.gz")
    graph, bare = (Graph.of(t) for t in (trace, read(torch_2_15 / "cuspy/cuspy_graphs_no_edges.json.gz")))
    waits = np.unique(graph_edges(trace).between_rows()[0]) + graph.nodes.starts.start
    kinds = [set(graph.kind[graph.first[node] : graph.first[node + 1]].tolist()) for node in waits.tolist()]
    assert all(Kind.GRAPH in kind and not kind & set(INFERRED) for kind in kinds)
    assert Kind.GRAPH not in bare.kind
    later = [node for node in waits.tolist() if graph.kind[graph.first[node]] == Kind.GRAPH]
    assert later
