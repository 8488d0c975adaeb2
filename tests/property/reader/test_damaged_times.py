"""One damaged time costs one event, whichever format it is in: the same tables and findings as from complete events."""

import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinetoscope_tb.reader import read, read_blocks
from support.build import Microseconds, TraceBuilder, dumps
from support.nsight import Export
from support.perfetto import Torch, clock, message, packet
from support.questions import ask, view_questions

BASE_NS = 1_700_000_000_000_000_000
DAY_NS = 24 * 3600 * 10**9
FAR_NS = [sign * days * DAY_NS for days in (2, 40, 10_000) for sign in (1, -1)]
GATE = {"impossible_duration", "negative_duration", "far_from_others", "unpaired", "untimed", "zero_time"}


@dataclass(frozen=True)
class Range:
    """An operator with its begin, its end and, if it is damaged, how long it really lasted."""

    name: str
    thread: int
    begin: int
    end: int
    lasts: int | None = None


@st.composite
def recordings(draw):
    """Ranges of several threads, of which one that lies in no other has a begin or an end of another time."""
    ranges, roots = [], []
    for thread in range(1, draw(st.integers(1, 3)) + 1):
        at = draw(st.integers(0, 50))
        for _ in range(draw(st.integers(3, 6))):
            length = draw(st.integers(10, 90))
            roots.append(len(ranges))
            ranges.append(Range(f"aten::op{len(ranges)}", thread, at, at + length))
            if draw(st.booleans()):
                ranges.append(Range(f"aten::op{len(ranges)}", thread, at + 2, at + length - 2))
            at += length + draw(st.integers(1, 20))
    row, far = draw(st.sampled_from(roots)), draw(st.sampled_from(FAR_NS))
    one = ranges[row]
    damaged = replace(one, end=far) if draw(st.booleans()) else replace(one, begin=far, lasts=one.end - one.begin)
    return [*ranges[:row], damaged, *ranges[row + 1 :]]


def complete(ranges, _folder):
    builder = TraceBuilder(BASE_NS)
    for one in ranges:
        lasts = one.end - one.begin if one.lasts is None else one.lasts
        builder.op(one.name, one.begin, lasts, thread=one.thread)
    return builder.build()


def begin_end(ranges, _folder):
    place = {"pid": 1000, "cat": "cpu_op"}
    pairs = [
        ({"ph": "B", "name": one.name, "ts": Microseconds(one.begin)}, {"ph": "E", "ts": Microseconds(one.end)})
        for one in ranges
    ]
    events = [event | place | {"tid": one.thread} for one, pair in zip(ranges, pairs, strict=True) for event in pair]
    return read_blocks([dumps({"baseTimeNanoseconds": BASE_NS, "traceEvents": events}).encode()], path="t.json")


def torch_slices(ranges, _folder):
    torch = Torch(BASE_NS)
    for one in ranges:
        torch.slice("cpu_op", one.name, one.begin, one.end - one.begin, {}, tid=one.thread)
    return read_blocks([torch.pftrace()], path="t.pftrace")


def slices(ranges, _folder):
    """As other writers than torch write them: each slice's end follows its begin."""
    thread = message({1: 1000, 2: 1})
    packets = [clock(BASE_NS), packet({60: message({1: 7, 3: message({1: 1000, 6: "python"})})})]
    for number in {one.thread for one in ranges}:
        thread = message({1: 1000, 2: number, 5: f"thread {number}"})
        packets.append(packet({60: message({1: 10 + number, 5: 7, 4: thread})}))
    for one in ranges:
        begin = message({9: 1, 11: 10 + one.thread, 22: "cpu_op", 23: one.name})
        packets.append(packet({8: BASE_NS + one.begin, 11: begin}))
        packets.append(packet({8: BASE_NS + one.end, 11: message({9: 2, 11: 10 + one.thread})}))
    return read_blocks([b"".join(packets)], path="t.pftrace")


def nsight(ranges, folder):
    path = folder / "t.sqlite"
    path.unlink(missing_ok=True)
    export = Export(str(path), BASE_NS)
    for one in ranges:
        export.range(f"{one.name}, seq = 1", one.begin, one.end, tid=one.thread)
    return read(export.close())


def tables(trace):
    """What the gate decides: the rows, the extents, and the findings."""
    parent = [trace.host_events["name"][row] if row >= 0 else None for row in trace.host_events["parent"].to_list()]
    rows = trace.host_events.select("name", "start_ns", "dur_ns", "self_ns").with_columns(parent=parent).rows()
    steps = trace.steps.select("start_ns", "end_ns", "is_complete").rows()
    findings = sorted((one.rule, one.count) for one in trace.diagnostics if one.rule in GATE)
    return sorted(rows), trace.window, steps, findings


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("nsight")


@pytest.mark.parametrize("written", [begin_end, torch_slices, slices, nsight])
@given(ranges=recordings())
@settings(max_examples=10)
def test_all_formats_agree_with_complete_events(written, ranges, folder):
    assert tables(written(ranges, folder)) == tables(complete(ranges, None))


@given(ranges=recordings())
@settings(max_examples=2)
def test_no_view_of_them_has_anything_negative(ranges):
    assert ask(view_questions(slices(ranges, None), random.Random(0))) == {}
