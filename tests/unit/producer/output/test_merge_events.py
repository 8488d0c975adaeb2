import io
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope import SaveError
from kinetoscope.events import INSTANT
from kinetoscope.output.merge_events import KEY, merge_events

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


def spliced(text, metadata=None, program_events=None):
    target = io.BytesIO()
    source = io.BytesIO(text.encode("utf-8", "surrogateescape"))
    damage = merge_events(source, target, metadata or {}, program_events)
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


@pytest.mark.parametrize("events", [0, 1, 30_000])
def test_the_program_s_events_count_from_a_base_that_follows_the_events(events):
    """As torch 2.4 to 2.11 write it."""
    text = kineto(*(event(f"op {n}") for n in range(events))).replace(f'"baseTimeNanoseconds": {BASE_NS},', "")
    text = text.replace('"traceName": "x" }', f'\n  "traceName": "x",\n  "baseTimeNanoseconds": {BASE_NS}\n}}')
    at_ns = BASE_NS + 1_234_567
    own = [INSTANT, "checkpoint", [], 2, at_ns, None, None]
    program_events = {"pid": 1, "threads": {}, "since_ns": at_ns, "until_ns": at_ns, "events": [own]}
    result, _, _ = spliced(text, program_events=program_events)
    (checkpoint,) = (event for event in result["traceEvents"] if event["name"] == "checkpoint")
    assert checkpoint["ts"] == 1234.567


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
    if "new" not in name:  # \n in a name is a line break for JSON, so it can't be recognized as text
        assert names[place] == name
        assert damage == "the profiler wrote events that aren't JSON: 1 repaired"
    assert result["traceEvents"][1]["args"] == {"External id": 1}


def test_what_can_not_be_repaired_loses_its_arguments_or_is_left_out_and_counted():
    hopeless = '"ph": "X", "name": "a", "b", "dur": x'
    arguments = event("kept", args='"External id": 1, "Call stack": "a "b"", "Ev": 2')
    result, damage, _ = spliced(kineto(event("before"), hopeless, arguments, event("after")))
    assert [e["name"] for e in result["traceEvents"]] == ["before", "kept", "after"]
    assert "args" not in result["traceEvents"][1]
    assert damage == "the profiler wrote events that aren't JSON: 1 repaired and 1 left out"
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


def own(*events, **metadata):
    return {"pid": 7, "since_ns": 0, "until_ns": 2**62, "threads": {}, "events": events, "metadata": metadata}


def test_own_events_come_first_with_exact_times():
    at = BASE_NS + 1_234_567_890_123_456
    program_events = own(
        ["instant", 'é"', ["io"], 3, at, None, {"step": 3}], ["counter", "loss", [], 3, at + 1, None, {"v": 0.5}]
    )
    result, _, text = spliced(kineto(event("op")), {"pid": 7}, program_events)
    *_, instant, counter, native = result["traceEvents"]
    assert (instant["name"], counter["name"], native["name"]) == ('é"', "loss", "op")
    exact = json.loads(text, parse_float=Decimal)["traceEvents"]
    assert [e["ts"] for e in exact[-3:-1]] == [Decimal("1234567890123.456"), Decimal("1234567890123.457")]


def test_own_events_fit_into_a_trace_without_events():
    result, _, _ = spliced('{"traceEvents": [ ] }', {}, own(["counter", "a", [], 1, 1500, None, {"v": 1}]))
    assert [(e["name"], e["ts"]) for e in result["traceEvents"]] == [("a", 1.5)]


def test_the_program_s_metadata_become_keys_at_the_top():
    result, _, _ = spliced(kineto(event("op")), {"pid": 7}, own(note='say "x"', model={"layers": 2}))
    assert (result["note"], result["model"], result["kinetoscope"]) == ('say "x"', {"layers": 2}, {"pid": 7})


@pytest.mark.parametrize("category", ["user_annotation", "gpu_user_annotation"])
def test_markers_get_their_true_names(category):
    def range_of(name, category=category):
        return (
            event(name)
            .replace('"ph": "X",', f'"ph": "X", "cat": "{category}",')
            .replace(',\n    "name"', ', "name"', 1)
        )

    labels = {"epreuve": "épreuve", "say 'x'": 'say "x"\\', "same": "same", "taken": "same", "marker": ""}
    metadata = {"markers": {name: {"label": label, "categories": []} for name, label in labels.items()}}
    text = kineto(*map(range_of, labels), range_of("ProfilerStep#3"), range_of("epreuve", "cpu_op"))
    trace, problem, _ = spliced(text, metadata)
    names = ["épreuve", 'say "x"\\', "same", "taken", "marker", "ProfilerStep#3", "epreuve"]
    assert [e["name"] for e in trace["traceEvents"]] == names
    assert list(trace[KEY]["markers"]) == names[:5]
    assert problem == ""
