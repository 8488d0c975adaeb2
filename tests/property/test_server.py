"""Servers of any dialect, length and mix: iterations, phases and totals are exact by construction."""

import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.measures.serving.iterations import server_iterations
from kinetoscope_tb.names.kernel_families import FAMILIES
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.search.search import parse_find, search
from kinetoscope_tb.views import VIEWS
from support.examples import examples
from support.server import DIALECTS, PHASES, Server
from support.strategies import builders

few = examples(40)
CAUSES = ["host_late", "launch_latency", "dependency", "blocked_copy", "graph_launch", "not_shown", "unexplained"]


@st.composite
def servers(draw, dialects=DIALECTS):
    server = Server(
        draw(st.integers(0, 1000)),
        draw(st.sampled_from(dialects)),
        graph=draw(st.booleans()),
        layers=draw(st.integers(1, 3)),
        waits=draw(st.booleans()),
    )
    for phase in draw(st.lists(st.sampled_from(PHASES), min_size=1, max_size=12)):
        server.serve(phase, draw(st.integers(2, 32)))
    return server


def view(name, trace, **parameters):
    return VIEWS[name].run(trace, **parameters)


@given(servers(), st.sampled_from(["kernels", "kernels_by_op", "launches"]), st.data())
@few
def test_what_holds_of_a_server_that_is_annotated(server, name, data):
    trace = server.builder.build()
    assert_each_iteration_is_as_it_was_served(server, trace)
    assert_cycles_leave_no_gap_and_consist_of_busy_and_idle_time(trace)
    phase = data.draw(st.sampled_from(trace.steps["phase"].unique(maintain_order=True).to_list()))
    assert_a_row_of_a_phase_finds_the_calls_that_it_counts(trace, name, phase)


@given(servers((*DIALECTS, "")), st.sampled_from(["steady", "all"]))
@few
def test_what_holds_of_any_server(server, of):
    trace = server.builder.build()
    assert_iterations_are_the_same_whether_they_are_steps_or_not(trace)
    assert_iterations_are_the_steps(trace)
    assert_phases_add_up_to_the_recording(server, trace, of)
    assert_what_limits_a_phase_adds_up_to_it(trace, of)


def assert_each_iteration_is_as_it_was_served(server, trace):
    rows = view("iterations", trace).rows(named=True)
    end = 0
    for row, made in zip(rows, server.passes, strict=True):
        assert (row["phase"], row["batch"], row["tokens"]) == (made.phase, made.batch, made.tokens)
        assert row["host_ns"] == made.end - made.start
        assert row["device_events"] == made.kernels
        assert row["graph_launches"] == (server.graph and made.phase == "decode")
        assert row["start_ns"] + trace_begin(server) == max(made.start, end)
        end = max(made.end, made.device_end)
        assert row["start_ns"] + trace_begin(server) + row["total_ns"] - row["gap_ns"] == end


def trace_begin(server):
    """The origin of the trace: the first moment that anything was recorded."""
    return min(event["ts"].ns for event in server.builder.events)


def assert_cycles_leave_no_gap_and_consist_of_busy_and_idle_time(trace):
    table = view("iterations", trace)
    ends = (table["start_ns"] + table["total_ns"])[:-1]
    assert ends.to_list() == table["start_ns"][1:].to_list()
    parts = sum((table[f"{cause}_ns"] for cause in CAUSES), table["busy_ns"])
    assert parts.to_list() == table["total_ns"].to_list()
    device = trace.device_events
    for row in table.rows(named=True):
        begin, end = row["start_ns"], row["start_ns"] + row["total_ns"]
        running = zip(device["start_ns"], device["start_ns"] + device["dur_ns"], strict=True)
        covered = {t for a, b in running for t in range(max(a, begin), min(b, end))} if end - begin < 100_000 else None
        assert covered is None or len(covered) == row["busy_ns"]


def assert_iterations_are_the_steps(trace):
    each, steps = view("iterations", trace), view("steps", trace)
    for column in ("phase", "part", "start_ns", "total_ns"):
        assert each[column].to_list() == steps[column].to_list()
    assert steps["step"].to_list() == [str(number) for number in each["iteration"]]
    categories = [f"{name}_ns" for name in ("kernel", "memcpy", "memset", "communication", "runtime", "other")]
    others = steps.select(*categories, "dataloader_ns", "cpu_exec_ns").sum_horizontal()
    assert others.to_list() == steps["total_ns"].to_list()
    launched = trace.device_events.filter(trace.device_events["launch"] >= 0)["step"]
    assert launched.value_counts().sort("step")["count"].to_list() == [n for n in each["device_events"] if n]


def assert_phases_add_up_to_the_recording(server, trace, of):
    each, table, made = view("iterations", trace), view("phases", trace, of=of), server_iterations(trace)
    assert table["total_ns"].sum() == made.bounds[1] - made.bounds[0]
    assert table["total_frac"].sum() == pytest.approx(1)
    assert table["iterations"].sum() == each.height == len(server.passes)
    gaps = [name for name in table.columns if name.startswith("gap_") and name != "gap_ns"]
    named = table.filter(~pl.col("phase").is_in(["not steady", "outside"]))
    assert (named.select(gaps).sum_horizontal() == named["gap_ns"]).all()
    idle = named.select([f"{cause}_ns" for cause in CAUSES]).sum_horizontal()
    assert (named["busy_ns"] + idle == named["total_ns"]).all()
    if of == "all":
        assert table["tokens"].sum() == each["tokens"].sum()
        families = table.select([f"{family}_ns" for family in FAMILIES]).sum_horizontal().sum()
        assert families == trace.device_events["dur_ns"].sum()
        for name in ("busy_ns", "gap_ns"):
            assert table[name].sum() == each[name].sum()


def assert_what_limits_a_phase_adds_up_to_it(trace, of):
    parts, table = view("limits", trace, of=of), view("phases", trace, of=of)
    whole = dict(table.select("phase", "total_ns").rows())
    for (phase,), rows in parts.group_by("phase"):
        assert rows["time_ns"].sum() == whole[phase]
        assert rows["share_frac"].sum() == pytest.approx(1)
        kernels = rows.filter(pl.col("kernels_ns").is_not_null())
        busy = table.row(by_predicate=pl.col("phase") == phase, named=True)
        assert kernels["time_ns"].sum() == busy["busy_ns"]
        assert {row["part"]: row["kernels_ns"] for row in kernels.iter_rows(named=True)} == {
            family: busy[f"{family}_ns"] for family in FAMILIES if busy[f"{family}_ns"]
        }
    assert set(parts["phase"]) == set(whole) - {"not steady", "outside"}


@given(servers(("",)))
@few
def test_a_server_without_annotations_is_told_apart_by_its_structure(server):
    frame = server_iterations(server.builder.build()).frame
    assert frame["source"].unique().to_list() == ["structure"]
    assert frame["device_rows"].to_list() == [made.kernels for made in server.passes]


@given(builders(), st.integers(0, 40), st.integers(0, 30))
@few
def test_any_recording_around_an_iteration_has_phases_that_add_up(builder, at, dur):
    trace = builder.annotation("step[DECODE bs=2]", at, dur).annotation("step[IDLE bs=0]", at + dur, 5).build()
    table, made = view("phases", trace, of="all"), server_iterations(trace)
    assert table["total_ns"].fill_null(0).sum() == made.bounds[1] - made.bounds[0]
    assert (view("iterations", trace)["gap_ns"] >= 0).all()


def assert_a_row_of_a_phase_finds_the_calls_that_it_counts(trace, name, phase):
    shown = timeline(trace)
    for row in VIEWS[name].frame(trace, {"phase": phase}).rows(named=True):
        key = {column: row[column] for column in VIEWS[name].table.key}
        find = parse_find(json.dumps({"view": name, "phase": phase, **key}), VIEWS)
        assert search(trace, shown, find, VIEWS).numbers.size == row["calls"]


def assert_iterations_are_the_same_whether_they_are_steps_or_not(trace):
    again = server_iterations(replace(trace))  # nothing is known of a copy
    assert again.frame.equals(server_iterations(trace).frame)
    assert (again.device == server_iterations(trace).device).all()
    assert again.bounds == server_iterations(trace).bounds
