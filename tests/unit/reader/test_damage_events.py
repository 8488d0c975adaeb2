"""Damage inside the event array: what is repaired, what is tolerated, what is lost, and what is said about it."""

import json
import math

import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.diagnostics.diagnose import diagnose
from kinetoscope_tb.reader import read_blocks
from support.build import TraceBuilder

EVENT = {"ph": "X", "cat": "cpu_op", "name": "op", "pid": 1, "tid": 1, "ts": 5, "dur": 2, "args": {}}


def of(text, size=1 << 20):
    data = text if isinstance(text, bytes) else text.encode()
    return read_blocks([data[i : i + size] for i in range(0, len(data), size)], path="t.json")


def event(**keys):
    return EVENT | keys


def rules(trace):
    return {diagnostic.rule: diagnostic.count for diagnostic in trace.diagnostics}


def levels(trace):
    return {diagnostic.rule: diagnostic.level for diagnostic in trace.diagnostics}


def between(damaged, size=1 << 20):
    """A trace of three events, the middle one as given."""
    return of(
        f'{{"traceEvents": [\n{json.dumps(event(name="a", ts=1))},\n{damaged},\n{json.dumps(event(name="z", ts=99))}\n]}}',
        size,
    )


def names(trace):
    return trace.host_events["name"].to_list()


X = '"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 50, "dur": 2'


@pytest.mark.parametrize(
    ("written", "name"),
    [
        (r'a " b', 'a " b'),
        (r'"', '"'),
        (r'""', '""'),
        (r'"a"', '"a"'),
        (r'f("x", "y")', 'f("x", "y")'),
        (r'd["k"]', 'd["k"]'),
        (r'{"k": 1, "l": [2]}', '{"k": 1, "l": [2]}'),
        (r'a\n"b"\"c\"', 'a\n"b""c"'.replace("\\n", "\n")),
        (r'say "hi", ok', 'say "hi", ok'),
        (r'torch/_dynamo/<"x">.py', 'torch/_dynamo/<"x">.py'),
    ],
)
@pytest.mark.parametrize("size", [50, 1 << 20])
def test_unescaped_quotes_are_part_of_the_text(written, name, size):
    trace = between(f'{{{X}, "name": "{written}", "args": {{"External id": 7}}}}', size)
    assert names(trace) == ["a", name, "z"]
    assert trace.host_events["external_id"].to_list()[1] == 7
    assert rules(trace) == {"unescaped_quote": 1}
    assert trace.diagnostics[0].first_offset == trace.host_events["offset"][1]


def test_a_truncated_file_keeps_its_complete_events_and_says_what_is_lost():
    text = json.dumps({"traceEvents": [event(ts=10 * i) for i in range(3)]})
    cut = text[: text.rindex('"args"')]
    trace = of(cut)
    assert trace.host_events.height == 2
    (diagnostic,) = trace.diagnostics
    assert (diagnostic.rule, diagnostic.first_offset) == ("truncated", cut.rindex('{"ph"'))
    assert f"{len(cut) - diagnostic.first_offset} bytes" in diagnostic.consequence


@pytest.mark.parametrize(("end", "are_complete"), [('"args"', False), ("]", True)])
def test_no_step_of_a_truncated_file_is_complete_since_events_are_not_in_order_of_time(end, are_complete):
    builder = TraceBuilder()
    for step in range(3):
        builder.step(step, 100 * step, 90).op("aten::mm", 100 * step + 10, 50)
    text = builder.text()
    trace = of(text[: text.rindex(end)])
    assert trace.steps["is_complete"].to_list() == [are_complete] * 3
    assert "no_complete_step" not in {found.rule for found in diagnose(trace)}


def test_quotes_that_lost_their_backslash_are_part_of_the_text():
    args = '"Concrete Inputs": ["", "[/"a/", /"b/"]"], "cfg": "{/"n/": 1, /"s/": /"x/"}", "External id": 3'
    trace = between(f'{{{X}, "name": "b", "args": {{{args}}}}}')
    assert trace.host_events["external_id"].to_list() == [-1, 3, -1]
    assert rules(trace) == {"unescaped_quote": 1}


def test_a_path_that_ends_in_a_backslash_ends_there():
    trace = between(f'{{"name": "C:\\dir\\", {X}, "args": {{"x": "D:\\"}}}}')
    assert names(trace) == ["a", "C:\\dir\\", "z"]
    assert rules(trace) == {"unescaped_backslash": 1, "bad_escape": 1}


@pytest.mark.parametrize("cat", ["Memcpy", "gpu_memcpy"])
def test_bare_words_are_missing_values_and_counted(cat):
    args = '"blocks per SM": inf, "memory bandwidth (GB/s)": N/A, "bytes": nan, "Collective name": N/A, "a": null'
    trace = between(f'{{"ph": "X", "cat": "{cat}", "name": "k", "ts": 50, "args": {{{args}}}}}')
    row = trace.device_events.row(0, named=True)
    assert math.isnan(row["blocks_per_sm"])
    assert (row["bytes"], row["collective"]) == (NONE, None)
    assert rules(trace) == {"bare_word": 4}


def test_bare_hexadecimal_numbers_are_read_and_counted():
    trace = between('{"ph": "X", "cat": "Memcpy", "name": "k", "ts": 50, "args": {"src": 0x7f00, "stream": 0X1F}}')
    assert trace.device_events["stream"].to_list() == [31]
    assert rules(trace) == {"bare_hex": 2}


def test_what_belongs_to_json_is_no_damage():
    args = '"a": 0, "b": 0.5, "c": null, "d": true, "e": -1e-5, "f": {}, "g": [], "h": [{"i": 0}, {}], "j" : "" '
    assert rules(between(f'{{{X}, "name": "b", "args": {{{args}}}}}')) == {}


@pytest.mark.parametrize(
    "args",
    ['"x": ["a "b", 1], "y": [', '"x": {"p": "q"r"}, "y": [', '"x": {"p": {"q": 1}, "y": [', '"x": "a", "y": [{, '],
)
def test_one_wrong_quote_or_bracket_costs_one_event_and_little_time(args):
    rows = ",\n".join(json.dumps(event(name=f"op {i % 100}", ts=100 + 10 * i)) for i in range(100_000))
    trace = of(f'{{"traceEvents": [{{{X}, "name": "bad", "args": {{{args}1]}}}},\n{rows}]}}', 1 << 19)
    assert trace.meta.events >= 100_000
    assert len(trace.diagnostics) == sum(diagnostic.count for diagnostic in trace.diagnostics) <= 2
    assert trace.diagnostics[0].rule in ("unescaped_quote", "wrong_brackets", "damaged_events")


def test_a_very_long_event_is_read_whole_and_so_is_a_damaged_one():
    stack = ";".join(f"train.py({i}): step" for i in range(250_000))
    more = [{"name": "x", "n": i} for i in range(50_000)]
    long = json.dumps(event(name="long", ts=50, args={"Call stack": stack, "list": more}))
    for damaged in (long, long.replace('"long"', '"lo"ng"')):
        trace = between(damaged, 1 << 18)
        assert len(trace.host_events["call_stack"][1]) == len(stack) > 5_000_000
        assert rules(trace) == ({} if damaged is long else {"unescaped_quote": 1})


@pytest.mark.parametrize(
    ("good", "bad", "rule"),
    [
        ('"name": "b"', '"name": "b" c"', "unescaped_quote"),
        ('"name": "b"', '"name": "b', "damaged_events"),
        ('"name": "b"', '"name" "b"', "damaged_events"),
        ('"name": "b"', '"name": 1 2', "damaged_events"),
        ('"name": "b"', 'name: "b"', "damaged_events"),
        ('"list": [1, [2]]', '"list": [1, [2}', "wrong_brackets"),
        ('"list": [1, [2]]', '"list": [1, [2}}', "wrong_brackets"),
        ('"list": [1, [2]]', '"list": [1, [2]', "wrong_brackets"),
        ('{"list"', '"list"', "damaged_events"),
        ("}, {", "}] {", "wrong_brackets"),
        ("}, {", "} {", None),
        ("}, {", "}, ", "wrong_brackets"),
        ("}, {", "} garbage, {", "damaged_events"),
    ],
)
def test_one_damaged_place_costs_one_event_at_most(good, bad, rule):
    text = json.dumps(
        {"traceEvents": [event(name=n, ts=10 * i, args={"list": [1, [2]]}) for i, n in enumerate("abcd")]}
    )
    at = text.index(good, text.index('"b"') - 10)
    trace = of(text[:at] + bad + text[at + len(good) :])
    assert set(trace.host_events["name"].to_list()) >= {"a", "d"}
    assert trace.host_events.height >= 3
    assert rules(trace) == ({rule: 1} if rule else {})


def test_damage_in_the_last_event_does_not_hide_the_end_of_the_array():
    trace = of(
        '{"traceEvents": [' + json.dumps(event(ts=1)) + ', {"ph": "X", "name" "b"}], "baseTimeNanoseconds": 7000}'
    )
    assert (trace.origin_ns, rules(trace)) == (8000, {"damaged_events": 1})


def test_stray_commas_and_a_missing_value_are_tolerated():
    trace = of('[,{"ph":"X","cat":"cpu_op",,"name":"a","ts":1,"args":{"x": ,"External id":4,},},]')
    assert trace.host_events["external_id"].to_list() == [4]
    assert rules(trace) == {"missing_value": 1, "wrong_commas": 3}
    assert set(levels(trace).values()) == {"note"}


def test_crafted_brackets_are_skipped_in_one_pass():
    trace = of(b'{"traceEvents": [' + json.dumps(event()).encode() + b", }]x" * 300_000)
    assert trace.host_events.height == 1
    assert "damaged_events" in rules(trace)


def test_places_behind_a_repair_are_those_of_the_file():
    quoted = '{"ph": "X", "cat": "cpu_op", "name": "a "b" c", "pid": 1, "tid": 1, "ts": 5, "dur": 2}'
    doubled = '{"ph": "X", "cat": "cpu_op", "name": "d", "pid": 1, "tid": 1, "ts": 9,, "dur": 2}'
    text = f'{{"traceEvents": [\n{quoted},\n{doubled},\n{json.dumps(event(name="z", ts=99))}\n]}}'
    offsets = {diagnostic.rule: diagnostic.first_offset for diagnostic in of(text).diagnostics}
    assert offsets == {"unescaped_quote": text.index(quoted), "wrong_commas": text.index(doubled)}


@pytest.mark.parametrize(("size", "is_noise"), [(1 << 20, False), (1 << 20, True), (999, False), (999, True)])
def test_a_damaged_part_of_the_file_undermines_as_large_a_part_of_the_time(size, is_noise):
    events = ",\n".join(json.dumps(event(name=f"op {i}", ts=10 * i)) for i in range(400)).encode()
    begin, end = len(events) // 4 + 20, len(events) // 2 + 20
    hole = bytes(33 + i % 90 for i in range(end - begin)) if is_noise else bytes(end - begin)
    trace = of(b'{"traceEvents": [' + events[:begin] + hole + events[end:] + b"]}", size)
    (fault,) = (diagnostic.fault for diagnostic in trace.diagnostics if diagnostic.rule == "damaged_events")
    assert 290 <= len(names(trace)) <= 300
    assert fault.affected_ns == pytest.approx((trace.window[1] - trace.window[0]) / 4, rel=0.02)
    assert "is damaged, and its events are missing" in fault.clause
    assert {"idle", "kernel_times", "totals"} <= fault.undermines


def test_an_event_of_many_that_is_damaged_undermines_next_to_nothing():
    events = [json.dumps(event(name=f"op {i}", ts=10 * i)) for i in range(400)]
    events[200] = events[200].replace('"name"', "name")
    (damage,) = of('{"traceEvents": [' + ",\n".join(events) + "]}").diagnostics
    assert damage.rule == "damaged_events"
    assert damage.fault.affected_ns < 20_000
