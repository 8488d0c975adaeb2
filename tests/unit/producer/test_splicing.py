import io
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope import SaveError
from kinetoscope.metadata import KEY
from kinetoscope.splicing import splice

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text().filter(lambda key: key not in (KEY, "traceEvents")), JSON, max_size=4)

BASE_NS = 1_790_857_026_000_000_000


def kineto(*events, header=(), end='"traceName": "x" }'):
    """Text in kineto's layout; an event is the lines of its fields."""
    head = "".join(f'\n    "{key}": {value},' for key, value in header)
    rows = ",".join(f"\n  {{\n    {event}\n  }}" for event in events)
    return f' {{\n    "schemaVersion": 1,{head}\n    "baseTimeNanoseconds": {BASE_NS},\n    "traceEvents": [\n    {rows}\n  ],{end}'


def event(name, args='"External id": 1'):
    return (
        f'"ph": "X",\n    "name": "{name}",\n    "pid": 7,\n    "ts": 1.5\n    ,\n    "args": {{\n      {args}\n    }}'
    )


def spliced(text, metadata=None, rows=()):
    target = io.BytesIO()
    source = io.BytesIO(text.encode("utf-8", "surrogateescape"))
    damage = splice(source, target, metadata or {}, rows)
    return json.loads(target.getvalue(), parse_constant=pytest.fail), str(damage), target.getvalue()


@given(OBJECTS, OBJECTS, st.lists(OBJECTS, max_size=3), st.sampled_from([None, 2]), st.sampled_from(["", " \n", "\t"]))
def test_a_trace_gains_one_key_and_keeps_all_others(before, after, events, indent, blank):
    trace = {**before, "traceEvents": events, **after}
    trace.pop("baseTimeNanoseconds", None)
    result, damage, _ = spliced(blank + json.dumps(trace, indent=indent), {"run": 'é"'})
    assert result == {KEY: {"run": 'é"'}, **trace}
    assert damage == ""


def test_a_large_trace_is_copied_as_it_is():
    text = kineto(*(event(f"op {n}") for n in range(30_000)))
    _, _, result = spliced(text)
    assert len(text) > 3 << 20
    assert result.endswith(text[text.index('"baseTime') :].encode())


@pytest.mark.parametrize("text", ["", "[{}]", "not a trace", '{"nodes": []}', '{"traceEvents": 3}'])
def test_what_is_no_trace_is_refused(text):
    with pytest.raises(SaveError, match="not a trace"):
        spliced(text)


@pytest.mark.parametrize("length", [200, 3_000_000])
def test_a_trace_that_is_cut_off_is_refused(length):
    text = kineto(*(event(f"op {n}") for n in range(30_000)))
    with pytest.raises(SaveError, match="only a part"):
        spliced(text[:length])


BROKEN = {
    "a quote": (event('quo"te'), 'quo"te'),
    "quotes around": (event('"all"'), '"all"'),
    "a backslash": (event("C:\\new\\q"), "C:\\new\\q"),
    "a control character": (event("a\tb"), "a\tb"),
    "a byte that is no UTF-8": (event("a\udcffb"), "a\ufffdb"),
}


@pytest.mark.parametrize(("text", "name"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("place", [0, 1, 2], ids=["first", "middle", "last"])
def test_a_name_that_breaks_the_file_is_repaired(text, name, place):
    events = [event("before"), event("between"), event("after")]
    events[place] = text
    result, damage, _ = spliced(kineto(*events))
    names = [e["name"] for e in result["traceEvents"]]
    assert len(names) == 3
    if "new" not in name:  # \n in a name is a line break for JSON, and nobody knows that it was none
        assert names[place] == name
        assert damage == "the profiler wrote events that are no JSON: 1 repaired"
    assert result["traceEvents"][1]["args"] == {"External id": 1}


def test_what_can_not_be_repaired_loses_its_arguments_or_is_left_out_and_counted():
    hopeless = '"ph": "X", "name": "a", "b", "dur": x'
    arguments = event("kept", args='"External id": 1, "Call stack": "a "b"", "Ev": 2')
    result, damage, _ = spliced(kineto(event("before"), hopeless, arguments, event("after")))
    assert [e["name"] for e in result["traceEvents"]] == ["before", "kept", "after"]
    assert "args" not in result["traceEvents"][1]
    assert damage == "the profiler wrote events that are no JSON: 1 repaired and 1 left out"
    result, damage, _ = spliced(kineto(event("before"), hopeless))
    assert [e["name"] for e in result["traceEvents"]] == ["before", "left out"]
    assert "1 left out" in damage


def test_numbers_that_are_none_become_null():
    result, _, _ = spliced(kineto(event("nan", args='"bandwidth": nan, "b": -inf, "c": [1, Infinity]')))
    assert result["traceEvents"][0]["args"] == {"bandwidth": None, "b": None, "c": [1, None]}


def test_metadata_with_quotes_is_repaired():
    result, damage, _ = spliced(kineto(event("op"), header=[("note", '"say "x""')]))
    assert result["note"] == 'say "x"'
    assert "1 repaired" in damage


def row(kind="i", name="n", start=0, value=None, categories=(), tid=3):
    return (kind, name, list(categories), tid, BASE_NS + start, value)


def test_own_events_come_first_with_exact_times():
    rows = [
        row("X", 'é"', 1_234_567_890_123_456, 1_000_000_001, ["io", "disk"]),
        row("i", "saved", 5, {"step": 3}),
        row("C", "loss", 7, 0.5),
        row("C", "gpu", 8, {"power": 300, "nan": float("nan")}),
    ]
    result, _, text = spliced(kineto(event("op")), {"pid": 7}, rows)
    duration, instant, counter, counters, native = result["traceEvents"]
    assert native["name"] == "op"
    assert (duration["name"], duration["cat"], duration["pid"], duration["tid"]) == ('é"', "io,disk", 7, 3)
    exact = json.loads(text, parse_float=Decimal)["traceEvents"][0]
    assert (exact["ts"], exact["dur"]) == (Decimal("1234567890123.456"), Decimal("1000000.001"))
    assert (instant["ph"], instant["s"], instant["args"]) == ("i", "t", {"step": 3})
    assert counter["args"] == {"value": 0.5}
    assert counters["args"] == {"power": 300}


def test_own_events_fit_into_a_trace_without_events():
    result, _, _ = spliced('{"traceEvents": [ ] }', {}, [("i", "a", (), 1, 1500, None)])
    assert [(e["name"], e["ts"]) for e in result["traceEvents"]] == [("a", 1.5)]


def test_own_events_are_trimmed_to_the_window():
    window = {"started_ns": BASE_NS + 1000, "ended_ns": BASE_NS + 9000}
    rows = [
        row("i", "before", 999),
        row("X", "into", 500, 1500),
        row("X", "out of", 8000, 5000),
        row("X", "around", 0, 20_000),
        row("X", "earlier", 0, 999),
        row("i", "after", 9001),
        row("C", "no number", 2000, "x"),
    ]
    result, _, _ = spliced(kineto(event("op")), window, rows)
    own = [(e["name"], e["ts"], e["dur"]) for e in result["traceEvents"][:-1]]
    assert own == [("into", 1.0, 1.0), ("out of", 8.0, 1.0), ("around", 1.0, 8.0)]
