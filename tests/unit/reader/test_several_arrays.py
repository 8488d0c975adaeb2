"""Which event arrays of a file are read: all at the top level, in order, however the file is cut into blocks."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.reader import read, read_blocks
from kinetoscope_tb.reader.input.document import MOST_ARRAYS, array_start
from support.fuzzing import assert_same_outcome, outcome

SIZES = (1, 7, 40, 300)


def event(name="op", ts=5):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": 2, "args": {}}


def array(*names, key="traceEvents"):
    rows = [event(name, 10 * i) for i, name in enumerate(names)]
    return f'"{key}": {json.dumps(rows)}'


def names(text):
    """The operators of a document, the same for blocks of any size."""
    data = text.encode()
    for size in SIZES:
        assert_same_outcome(data, "t.json", outcome(data, 1 << 20, "t.json"), size)
    trace = read_blocks([data], path="t.json")
    return trace.ops.sort("offset")["name"].to_list(), {one.rule for one in trace.diagnostics}


def test_all_arrays_at_the_top_level_are_read_in_order():
    assert names(f"{{{array('a', 'b')}, {array('c')}, {array('d')}}}") == (["a", "b", "c", "d"], {"several_arrays"})


def test_metadata_between_and_after_arrays_is_read():
    text = f'{{"a": 1, {array("x")}, "b": [2], {array("y")}, "c": {{}}}}'
    assert names(text)[0] == ["x", "y"]
    assert read_blocks([text.encode()], path="t.json").meta.top == {"a": 1, "b": [2], "c": {}}


def test_the_last_value_of_a_repeated_key_counts():
    text = f'{{"a": 1, "baseTimeNanoseconds": 5, "a": 2, {array("x")}, "a": 3, "baseTimeNanoseconds": 7000, "a": 4}}'
    assert names(text)[0] == ["x"]
    trace = read_blocks([text.encode()], path="t.json")
    assert (trace.meta.top["a"], trace.origin_ns) == (4, 7000)


def test_an_array_inside_another_value_is_no_part_of_the_trace():
    inner = f"{{{array('inner')}}}"
    assert names(f'{{"a": {inner}, {array("x")}, "b": [{inner}], {array("y")}}}') == (["x", "y"], {"several_arrays"})


def test_an_array_inside_another_value_is_read_if_there_is_no_other():
    assert names(f'{{"wrapped": {{{array("x")}}}}}')[0] == ["x"]


def test_a_value_that_is_no_array_is_passed_over():
    text = f'{{"traceEvents": null, "traceEvents": {{"traceEvents": [1]}}, {array("x")}, "traceEvents": 3}}'
    assert names(text) == (["x"], set())
    assert read_blocks([text.encode()], path="t.json").meta.top == {}


def test_damage_before_the_array_costs_no_event():
    for damage in (
        '"a": {"b": 1, ',
        '"a": [[1], ',
        '"a": {"b": [1, 2}, ',
        '"a": "b, ',
        '"a" "b", ',
        '"a": b"c", ',
        "x, ",
    ):
        assert names(f"{{{damage}{array('x', 'y')}}}")[0] == ["x", "y"], damage


def test_a_bracket_that_is_missing_before_a_long_array_is_known_from_the_text_near_it():
    text = f'{{"a": {{"b": 1, {array("x")[:-1]}, '.encode()
    start = text.index(b"[") + 1
    longer = text + json.dumps(event()).encode() * (1 << 16)
    assert [array_start(part, is_whole=False) for part in (text, longer[: len(longer) // 8])] == [None, None]
    assert array_start(longer, is_whole=False) == array_start(longer[:-1000], is_whole=True) == start


def test_text_after_the_events_that_is_no_json_is_reported():
    assert names(f'{{{array("x")}, "a": b"c", "d": 1}}') == (["x"], {"damaged_end"})
    lost = read_blocks([f'{{{array("x")}, "a": 1 x {{"ph": "X"}}]}}'.encode()], path="t.json").diagnostics
    assert [(one.rule, one.level) for one in lost] == [("damaged_end", "loss")]
    assert names(f'{{{array("x")}, "a": 1}}{{{array("y")}}}') == (["x"], {"second_document"})


def test_only_so_many_arrays_are_read():
    empty = ", ".join(['"traceEvents": []'] * (MOST_ARRAYS - 1))
    assert names(f"{{{empty}, {array('x')}, {array('y')}}}") == (["x"], {"several_arrays", "second_document"})


@pytest.mark.parametrize("threads", [1, 4])
def test_compression_and_threads_change_nothing(threads, tmp_path):
    many = [array(*(f"{name}{i}" for i in range(200))) for name in "abc"]
    data = f'{{"a": {{{many[0]}}}, {many[1]}, "b": 1, {many[2]}}}'.encode()
    (tmp_path / "t.json").write_bytes(data)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(data))
    whole = read(tmp_path / "t.json")
    assert whole.ops.height == 400
    for path in tmp_path.iterdir():
        for block in (100, 5000):
            trace = read(path, threads=threads, block_bytes=block)
            assert trace.ops.equals(whole.ops)
            assert (trace.meta, trace.diagnostics) == (whole.meta, whole.diagnostics)


WHOLE = (array("x"), array("y", "z"), array(), '"a": 1', '"a": "2"', f'"b": {{{array("in")}}}', '"traceEvents": 5')
DAMAGED = ('"c": [[', '"d": {"e": }', '"f": "g', '"h": n"o"', "]", "}", "{", '"traceEvents": [', '"i": {"j": [}')
MEMBERS = st.sampled_from((*WHOLE, *DAMAGED))


@given(st.lists(MEMBERS, min_size=1, max_size=9), st.integers(1, 60))
def test_any_members_give_the_same_trace_for_blocks_of_any_size(members, size):
    data = f"{{{', '.join(members)}}}".encode()
    assert_same_outcome(data, "t.json", outcome(data, 1 << 20, "t.json"), size)
