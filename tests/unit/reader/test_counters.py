import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.reader import read_blocks


def counter(name, ts, args, **more):
    return {"ph": "C", "name": name, "pid": 1, "tid": 2, "ts": ts, "args": args, **more}


def read(events, block=1 << 20, indent=None, **top):
    text = json.dumps({**top, "traceEvents": events}, indent=indent).encode()
    return read_blocks([text[i : i + block] for i in range(0, len(text), block)], path="trace.json")


def rows(trace):
    """Process, name, series, time and value; None for what isn't known."""
    columns = ("process", "name", "series", "start_ns", "value")
    return [(*row[:4], None if math.isnan(row[4]) else row[4]) for row in trace.counters.select(columns).iter_rows()]


EVENTS = [
    counter("loss", 3.0, {"train": -2e3, "valid": None}),
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 1.0, "dur": 9},
    counter("loss", 2.0, {"train": 1.5, 'say "é", {x}: 1': 7}),
    counter("loss", 2.0, {"train": "8"}, pid=3),
    counter("empty", 2.0, {}),
    counter("no number", 4.0, {"v": "text"}),
]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_each_series_of_a_counter_is_read_in_order_of_time(block, indent):
    trace = read(EVENTS, block, indent)
    assert rows(trace) == [
        ("1", "loss", 'say "é", {x}: 1', 1000, 7.0),
        ("1", "loss", "train", 1000, 1.5),
        ("1", "loss", "train", 2000, -2000.0),
        ("1", "loss", "valid", 2000, None),
        ("1", "no number", "v", 3000, None),
        ("3", "loss", "train", 1000, 8.0),
    ]
    (diagnostic,) = trace.diagnostics
    assert (diagnostic.rule, diagnostic.count, diagnostic.level) == ("counter_without_value", 1, "note")


def test_a_trace_without_counters_has_none():
    trace = read(EVENTS[1:2])
    assert trace.counters.height == 0
    assert trace.diagnostics == ()


NUMBERS = st.none() | st.integers(-(10**15), 10**15) | st.floats(allow_nan=False, allow_infinity=False)
ARGS = st.dictionaries(st.text(st.characters(exclude_categories=("Cs",))), NUMBERS, min_size=1, max_size=4)


@given(st.lists(st.tuples(st.integers(0, 1000), ARGS), min_size=1, max_size=8))
def test_any_series_and_any_number_come_back(events):
    trace = read([counter("c", ts, args) for ts, args in events])
    first = min(ts for ts, _ in events)
    expected = [
        (name, (ts - first) * 1000, None if value is None else float(value))
        for ts, args in events
        for name, value in args.items()
    ]
    assert sorted(map(repr, (row[2:] for row in rows(trace)))) == sorted(map(repr, expected))


def test_damage_between_counters_costs_no_others():
    text = b'{"traceEvents": [' + b",".join(
        [
            json.dumps(EVENTS[2]).encode(),
            b'{"ph": "C", "name": "bro"ken", "ts": 5, "args": {"v": 1}}',
            json.dumps(EVENTS[0]).encode(),
        ]
    )
    trace = read_blocks([text + b"]}"], path="trace.json")
    assert [row[1:] for row in rows(trace) if row[2] == "train"] == [
        ("loss", "train", 0, 1.5),
        ("loss", "train", 1000, -2000.0),
    ]


def test_markers_have_the_names_that_the_program_gave_them():
    markers = {"e'": {"label": 'é"', "categories": []}, "plain": {"label": "plain"}, "odd": 3, "odder": {"label": 4}}
    events = [
        {"ph": "X", "cat": "user_annotation", "name": name, "pid": 1, "tid": 2, "ts": at, "dur": 1}
        for at, name in enumerate(["e'", "plain", "odd", "odder"])
    ]
    assert read(events, kinetoscope={"markers": markers}).host_events["name"].to_list() == [
        'é"',
        "plain",
        "odd",
        "odder",
    ]
    assert read(events, kinetoscope={"markers": []}).host_events["name"][0] == "e'"
