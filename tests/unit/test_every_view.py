"""What holds of every view, so that a new one is tested the moment it is named."""

import json
from dataclasses import replace
from functools import cache
from inspect import signature
from itertools import chain

import polars as pl
import pytest

from kinetoscope_tb.engine.answers import Missing
from kinetoscope_tb.errors import BadParameter
from kinetoscope_tb.measures.recording.contents import is_trace
from kinetoscope_tb.pictures import Lines, parent_column
from kinetoscope_tb.table import COUNT, DURATION, FRACTION, INSTANT
from kinetoscope_tb.text_table import aligned_lines, text_columns
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.model import FRAMES
from kinetoscope_tb.view import catalogue
from kinetoscope_tb.views import VIEWS
from kinetoscope_tb.web import encode
from kinetoscope_tb.web.json_text import json_text
from support.build import TraceBuilder
from support.graphs import GraphRecording, Operator, joined
from support.rows import assert_events_lead_back
from support.snapshots import small_snapshot, with_snapshot


def for_each_view(rule):
    """One test of a rule: it reports every view that breaks the rule."""

    def test(subtests):
        for view in VIEWS.values():
            with subtests.test(view=view.id):
                rule(view)

    return test


def full():
    """The builder of a trace in which no part is empty."""
    return (
        TraceBuilder(
            deviceProperties=[{"id": 0, "name": "GPU", "totalGlobalMem": 1 << 30, "computeMajor": 9, "computeMinor": 0}]
        )
        .window(0, 400)
        .step(1, at=0, dur=100)
        .step(2, at=100, dur=100)
        .annotation("execute_context_0(0)_generation_1(1)", at=5, dur=90)
        .op("aten::mm", at=10, dur=30, **{"Input Dims": [[2, 2], [2, 2]], "External id": 1})
        .launch(at=15, dur=5, correlation=1)
        .kernel("ampere_sgemm", at=25, dur=50, correlation=1, **{"blocks per SM": 2.0, "est. achieved occupancy %": 40})
        .op("aten::mm", at=110, dur=30)
        .launch(at=115, dur=5, correlation=2)
        .memcpy(at=125, dur=50, correlation=2, bytes=4096)
        .launch(at=130, dur=5, correlation=3, name="cudaGraphLaunch")
        .kernel("ampere_sgemm", at=180, dur=8, correlation=3, **{"graph id": 5, "graph node id": 5 << 32 | 1})
        .marked("block")
        .memory(64, at=12)
        .python("f.py(1): f", at=5, dur=60)
        .module("Linear_0", at=8, dur=40)
        .event("", "Power (W)", 20, None, ph="C", pid="GPU 0 Counters", **{"": 250.5})
        .event("", "Power (W)", 120, None, ph="C", pid="GPU 0 Counters", **{"": 251})
    )


@cache
def rich():
    return with_snapshot(full().build(), small_snapshot())


@cache
def snapshot_alone():
    return with_snapshot(TraceBuilder().build(), small_snapshot())


@cache
def overhead_alone():
    return TraceBuilder().event("overhead", "Buffer Flush", at=0, dur=1).build()


@for_each_view
def test_the_id_is_the_name_of_module_and_function(view):
    assert VIEWS[view.id] is view
    assert view.run.__module__.startswith("kinetoscope_tb.views.")
    assert view.run.__module__.endswith(f".{view.id}")


@for_each_view
def test_next_to_totals_a_title_says_that_a_saving_is_per_step(view):
    for column in view.table.columns:
        if view.table.weight != column.name and column.doc.startswith("How much shorter a step"):
            assert column.title == "Saved per step"


@for_each_view
def test_it_needs_what_its_own_input_can_have(view):
    if view.needs is not None:
        (parameter,) = signature(view.needs).parameters.values()
        assert parameter.annotation == ("Trace" if view.scope == "recording" else "Ranks")


@for_each_view
def test_it_returns_its_table(view):
    frame = view.run(replace(rich()))  # a trace that holds nothing but its rows
    view.table.of(frame)
    assert view.id in MAY_BE_EMPTY or not frame.is_empty()


@for_each_view
def test_a_key_names_each_row_once(view):
    frame = view.run(rich())
    assert view.table.key
    assert frame.select(view.table.key).is_duplicated().sum() == 0


@for_each_view
def test_rows_known_by_their_time_or_place_are_moments_of_one_recording(view):
    kinds = {c.name: c.kind for c in view.table.columns}
    if any(kinds[name] is INSTANT or name == "first_byte" for name in view.table.key):
        assert view.within == "moments"


@for_each_view
def test_every_value_of_every_parameter_runs(view):
    others = {"number": ("0", "-1", "100000000000000000"), "text": ("", "aten::mm", "\U0001f525")}
    for parameter in view.parameters:
        for value in parameter.choices or others[parameter.kind]:
            view.table.of(view.run(rich(), **view.arguments({parameter.name: value})))


@for_each_view
def test_an_unknown_parameter_is_refused(view):
    with pytest.raises(BadParameter, match="no parameter 'nonsense'"):
        view.arguments({"nonsense": "1"})


@for_each_view
def test_a_trace_without_what_it_needs_is_missing_with_a_hint(view):
    trace = snapshot_alone() if view.needs is is_trace else overhead_alone()
    if view.needs:
        assert view.is_missing(trace)
        assert view.hint.endswith(".")
    else:
        view.table.of(view.run(trace))


@for_each_view
def test_the_row_around_another_exists_and_leads_to_a_root(view):
    frame = view.run(rich())
    if parent := parent_column(view.table.picture):
        above = dict(enumerate(frame[parent]))
        for row in above:
            seen = set()
            while row is not None:
                assert 0 <= row < frame.height
                assert row not in seen
                seen.add(row)
                row = above[row]


@for_each_view
@pytest.mark.slow  # each view
def test_a_row_stands_for_events_that_the_timeline_has(view):
    trace = rich()
    made = timeline(trace)
    if view.slices:
        for row in view.run(trace).iter_rows(named=True):
            events = view.events_of_row(trace, row)
            assert set(events) <= set(FRAMES)
            for frame, rows in events.items():
                assert (made.slices_of(frame, rows) >= 0)[rows >= 0].all()


@for_each_view
def test_the_events_behind_a_row_lead_back_to_it_or_the_view_says_why_not(view):
    if view.slices and isinstance(view.slices.row_of, str):
        assert view.slices.row_of.endswith(".")
    elif view.slices:
        assert_events_lead_back(view, rich())


@for_each_view
def test_a_curve_goes_forward_in_time(view):
    frame = view.run(rich())
    if isinstance(view.table.picture, Lines):
        when = next(c.name for c in view.table.columns if c.kind is INSTANT)
        series = view.table.picture.series
        groups = frame.partition_by(series) if series else [frame]
        assert all(group[when].is_sorted() for group in groups)


@for_each_view
def test_numbers_are_real_or_missing(view):
    floats = view.run(rich()).select(pl.col(pl.Float64))
    assert all(not column.is_nan().any() for column in floats)


def test_the_catalogue_is_json():
    described = json.loads(json.dumps(catalogue(VIEWS.values())))
    assert [entry["id"] for entry in described] == list(VIEWS)
    assert all(column["doc"] for entry in described for column in entry["columns"])


@cache
def finished():
    """The same, whose graph replays an operator of a capture."""
    work = (Operator("aten::addmm", (4, 4), 0, ("ampere_sgemm",)),)
    trace = joined(rich(), GraphRecording("rocm", has_text=True).captured(work).builder.build())
    assert trace.all_host_events["name"][int(trace.device_events["op"][-1])] == "aten::addmm"
    return trace


@for_each_view
def test_what_captures_change_says_so(view):
    """So that it waits for them, and nothing else does."""
    if not view.reads_captures:
        assert view.run(finished()).equals(view.run(finished().recording))


# ---- traces that lack something or are strange

NAMES = {
    "HTML": "<img src=x onerror=alert(1)>&amp;",
    "a formula": '=HYPERLINK("http://x","y")',
    "control characters": "\x00\x1b[31mred\r\n\t\u202e\u2028",
    "no text": "",
    "100 kB": "void kernel<" + "int, " * 20_000 + ">",
    "half a character": "\ud800",
    "a brace": '{"traceEvents":[',
}
MAY_BE_EMPTY = {"health", "health_summary"}  # nothing to say is their best answer


def without(*categories, name=""):
    """A full trace without some categories, or without the rows of a name."""
    builder = full()
    builder.events = [e for e in builder.events if e["cat"] not in categories and not (name and name in e["name"])]
    return builder


def only(*categories):
    builder = full()
    builder.events = [e for e in builder.events if e["cat"] in categories]
    return builder


def one(category, name, **args):
    return TraceBuilder().event(category, name, 10, 5, **args)


def named(name):
    """A full trace in which everything is called like this."""
    builder = full()
    for event in builder.events:
        if event["name"] != "[memory]" and "ProfilerStep" not in event["name"]:
            event["name"] = name
    return builder


def moved(change):
    """A full trace in which each event was changed."""
    builder = full()
    for event in builder.events:
        change(event)
    return builder


def at_once(event):
    event["ts"] = type(event["ts"])(0)
    if "dur" in event:
        event["dur"] = type(event["dur"])(0)


def earlier(event):
    event["ts"] = type(event["ts"])(event["ts"].ns - 10**12)


def devices(count):
    builder = full()
    for device in range(count):
        for i in range(3):
            correlation = 100 + 10 * device + i
            builder.launch(20 + i, 1, correlation).kernel(
                "k", 30 + device + 20 * i, 10, correlation, device=device, stream=7 + i
            )
    return builder


def overlapping():
    """Ranges that begin inside others and outlast them, on every axis."""
    builder = full()
    for i in range(5):
        at = 10 * i
        builder.op(f"o{i}", at, 15).annotation(f"a{i}", at + 5, 15).python(f"p{i}", at + 3, 15, **{"Python id": i})
        builder.launch(at + 2, 12, 50 + i).kernel("k", at + 4, 25, 50 + i).memcpy(at + 6, 25, stream=7)
    return builder


GPU = ("kernel", "gpu_memcpy", "gpu_memset")
LAUNCHES = ("cuda_runtime", "cuda_driver")
ODD = {
    "a CPU alone": lambda: without(*GPU, *LAUNCHES),
    "a GPU alone": lambda: only(*GPU),
    "no launches": lambda: without(*LAUNCHES),
    "no kernels": lambda: without("kernel"),
    "no copies": lambda: without("gpu_memcpy", "gpu_memset"),
    "no steps": lambda: without(name="ProfilerStep"),
    "no annotations": lambda: without("user_annotation"),
    "no operators": lambda: without("cpu_op"),
    "no memory": lambda: without(name="[memory]"),
    "memory alone": lambda: only("cpu_instant_event"),
    "no stacks": lambda: without("python_function"),
    "stacks alone": lambda: only("python_function"),
    "steps alone": lambda: TraceBuilder().step(1, 0, 10).step(2, 10, 10),
    "nothing": TraceBuilder,
    "one operator": lambda: one("cpu_op", "aten::mm"),
    "one annotation": lambda: one("user_annotation", "forward"),
    "one call": lambda: one("cuda_runtime", "cudaLaunchKernel", correlation=1),
    "one kernel": lambda: one("kernel", "k", device=0, stream=7),
    "one copy": lambda: one("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"),
    "one Python call": lambda: one("python_function", "nn.Module: Linear_0", **{"Python id": 1, "Python module id": 0}),
    "one allocation": lambda: TraceBuilder().memory(64, 5),
    "one release": lambda: TraceBuilder().memory(-64, 5),
    "one unknown event": lambda: one("new", "x"),
    "no time at all": lambda: moved(at_once),
    "times before the origin": lambda: moved(earlier),
    "16 devices": lambda: devices(16),
    "device 4095": lambda: full().kernel("k", 5, 5, device=4095),
    "the stream 4294967295": lambda: full().kernel("k", 5, 5, stream=4294967295).memcpy(7, 5, stream=4294967295),
    "the stream -1": lambda: full().kernel("k", 5, 5, stream=-1, device=-1),
    "partial overlaps": overlapping,
    **{f"names: {what}": lambda name=name: named(name) for what, name in NAMES.items()},
}


ALWAYS = {"a CPU alone", "a GPU alone", "nothing"}  # the fast tests look at these


@pytest.fixture(
    scope="module",
    params=[pytest.param(what, marks=() if what in ALWAYS else pytest.mark.slow) for what in ODD],
)
def odd(request):
    return ODD[request.param]().build()


def test_every_view_answers_or_says_what_to_record(odd, subtests):
    for view in VIEWS.values():
        with subtests.test(view=view.id):
            assert_answers(view, odd)


@pytest.mark.slow
def test_a_parameter_of_any_value_chooses_rows(odd, subtests):
    for view in VIEWS.values():
        if view.parameters and not view.is_missing(odd):
            with subtests.test(view=view.id):
                assert_parameters_choose(view, odd)


def assert_answers(view, trace):
    if view.is_missing(trace):
        assert view.hint.endswith(".")
        json_text(encode.view_answer(view, Missing(view.hint)))
        return
    frame = view.table.of(view.run(trace))
    assert frame.height or view.id in MAY_BE_EMPTY or view.hint
    assert_sound(view, frame)


VALUES = {"number": ("0", "-1", "999999999999999999"), "text": ("", NAMES["HTML"], NAMES["control characters"])}


def assert_parameters_choose(view, trace):
    """Look at all tables but that of the defaults, the first of the choices, which `assert_answers` looks at."""
    for parameter in view.parameters:
        for value in VALUES.get(parameter.kind, parameter.choices[1:]):
            assert_sound(view, view.table.of(view.run(trace, **view.arguments({parameter.name: value}))))
    if {"from_ns", "to_ns"} <= {parameter.name for parameter in view.parameters}:
        for window in ((20, 60), (60, 20), (30, 30)):
            assert_sound(view, view.table.of(view.run(trace, from_ns=window[0], to_ns=window[1])))


def assert_sound(view, frame):
    """What every table must hold, whatever the trace."""
    assert not frame.select(view.table.key).is_duplicated().any()
    floats = pl.col(pl.Float64)
    assert True not in chain.from_iterable(frame.select((floats.is_nan() | floats.is_infinite()).any()).rows())
    positive = [c.name for c in view.table.columns if c.kind in (DURATION, COUNT, FRACTION) and "negative" not in c.doc]
    least = frame.select(pl.col(positive).min()).to_dicts()
    assert {name: value for row in least for name, value in row.items() if value is not None and value < 0} == {}
    shares = [c.name for c in view.table.columns if c.kind is FRACTION]
    most = frame.select(pl.col(shares).max()).to_dicts()
    assert {name: value for row in most for name, value in row.items() if value is not None and value > 1 + 1e-9} == {}
    json.loads(json_text(encode.view_answer(view, frame)).encode())
    lines = aligned_lines(text_columns(view.table.columns, frame)).splitlines()
    assert len(lines) == frame.height + 1
    assert all(line.replace("\u202f", "").isprintable() for line in lines)  # it groups the digits of large numbers
