"""Call trees in the formats of flame graph viewers."""

import gzip
import json

import pytest

from kinetoscope_tb.export.stacks import Frame, Stack, folded_lines, pprof_profile, speedscope_json, stacks_of
from kinetoscope_tb.views import VIEWS
from support.build import TraceBuilder

COLUMNS = ("host_self_ns", "device_self_ns")


@pytest.fixture(scope="module")
def stacks():
    builder = TraceBuilder().python("train.py(9): main", 0, 500_000).python("a;b.py(3): load\n", 10_000, 100_000)
    builder.op("aten::mm", 200_000, 50_000).launch(210_000, 5_000, 1).kernel("gemm", 300_000, 60_000, 1)
    view = VIEWS["python_calls"]
    rows = view.frame(builder.build(), {})
    found = stacks_of(view.table, rows, COLUMNS)
    roots = rows.filter(rows["parent_row"].is_null())
    for nth, name in enumerate(("host_total_ns", "device_total_ns")):
        assert sum(stack.values[nth] for stack in found) == roots[name].sum() > 0
    return found


def test_the_times_of_stacks_add_up_to_those_of_the_view(stacks):
    assert [frame.name for frame in stacks[0].frames][-1] == "main"
    assert Frame("main", "train.py", 9) in stacks[0].frames


def test_folded_lines_have_the_first_value_and_a_semicolon_between_frames_alone(stacks):
    lines = b"".join(folded_lines(stacks, COLUMNS, "")).decode().splitlines()
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == sum(stack.values[0] for stack in stacks)
    assert next(line for line in lines if "load" in line).partition(" (")[0].count(";") <= 3
    assert "load (a:b.py:3)" in "".join(lines)


def test_speedscope_has_a_profile_for_each_root_and_value(stacks):
    value = json.loads(b"".join(speedscope_json(stacks, COLUMNS, "job")))
    names = [profile["name"].rpartition(" · ")[2] for profile in value["profiles"]]
    assert names == [*COLUMNS]
    for nth, profile in enumerate(value["profiles"]):
        assert profile["endValue"] == sum(profile["weights"]) == sum(stack.values[nth] for stack in stacks)
        leaf = value["shared"]["frames"][profile["samples"][0][-1]]
        assert leaf["name"] in {stack.frames[-1].name for stack in stacks}


def messages(data):
    """The fields of a message of protocol buffers: (number, value), where a value is a number or bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            yield key >> 3, number()
        else:
            size = number()
            yield key >> 3, data[at : at + size]
            at += size


def packed(data):
    return [value for _, value in messages(b"".join(b"\x08" + part for part in split_numbers(data)))]


def split_numbers(data):
    begin = 0
    for at, byte in enumerate(data):
        if byte < 0x80:
            yield data[begin : at + 1]
            begin = at + 1


def test_pprof_has_each_stack_from_its_leaf_with_all_values():
    stacks = [
        Stack((Frame("root"), Frame("f", "a.py", 300)), (5, 1 << 40)),
        Stack((Frame("root"),), (7, 0)),
    ]
    fields = list(messages(gzip.decompress(b"".join(pprof_profile(stacks, ("host", "device"), "")))))
    texts = [value.decode() for number, value in fields if number == 6]
    functions = {f[1]: (texts[f[2]], texts[f[4]]) for number, v in fields if number == 5 for f in [dict(messages(v))]}
    lines = {}
    for location in (dict(messages(value)) for number, value in fields if number == 4):
        line = dict(messages(location[4]))
        lines[location[1]] = (*functions[line[1]], line[2])
    samples = [dict(messages(value)) for number, value in fields if number == 2]
    assert [([lines[at] for at in packed(s[1])], packed(s[2])) for s in samples] == [
        ([("f", "a.py", 300), ("root", "", 0)], [5, 1 << 40]),
        ([("root", "", 0)], [7, 0]),
    ]
    units = [tuple(texts[value] for _, value in messages(v)) for number, v in fields if number == 1]
    assert units == [("host", "nanoseconds"), ("device", "nanoseconds")]
