"""For any trace: the exported file holds each slice of the range once, exactly, where a viewer can draw it."""

import gzip
import json
from collections import Counter, defaultdict
from decimal import Decimal
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinetoscope_tb.export.chrome_json.writer import EXTRAS, Source, Window, export_pieces, size, slices_in
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.timeline.core.build import timeline
from kinetoscope_tb.timeline.core.model import CATEGORIES
from support.build import TraceBuilder
from support.examples import examples
from support.read_once import read_once
from support.real_traces import FOLDER, of_each_program
from support.strategies import builders

TRACES = of_each_program("runs", "single")
WINDOWS = st.builds(Window, st.none() | st.integers(-5, 90), st.none() | st.integers(-5, 90))
CHOSEN = st.sets(st.sampled_from(EXTRAS))


def written(sources, window=Window(), extras=()):  # noqa: B008  # frozen
    """The file's events and its base, with times as integer ns."""
    text = gzip.decompress(b"".join(export_pieces(sources, window, extras)))
    whole = json.loads(text, parse_float=Decimal)
    for event in whole["traceEvents"]:
        for key in event.keys() & {"ts", "dur"}:
            assert event[key] == event[key].quantize(Decimal("0.001"))
            event[key] = int(event[key] * 1000)
    return text, whole["traceEvents"], whole["baseTimeNanoseconds"]


def drawn(trace, made, window=Window(), shift=0):  # noqa: B008
    """Name, start in Unix time, duration of each slice that lies in the window in part."""
    slices = []
    for number in range(made.size):
        if made.tracks[made.track_of(number)].part == "projected":
            continue  # not in the file
        start, dur = int(made.start_ns[number]), int(made.dur_ns[number])
        is_late = window.to_ns is not None and start + shift >= window.to_ns
        is_early = window.from_ns is not None and start + shift < window.from_ns >= start + dur + shift
        if not is_late and not is_early:
            slices.append((made.labels.texts[made.label[number]], start + trace.origin_ns, dur))
    return slices


def nests(spans):
    """Whether of every two spans one lies in the other, or they don't overlap."""
    return all(
        b[0] >= a[1] or a[0] >= b[1] or (a[0] <= b[0] and b[1] <= a[1]) or (b[0] <= a[0] and a[1] <= b[1])
        for a, b in combinations(spans, 2)
    )


@examples(100)
@given(builders(), WINDOWS, CHOSEN)
def test_each_slice_of_the_range_is_written_once_and_nests_on_its_thread(builder, window, extras):
    trace = builder.build()
    made = timeline(trace)
    _, events, base = written([Source(trace, made)], window, extras)
    slices = [e for e in events if e["ph"] in "Xi"]
    expected = drawn(trace, made, window)
    assert Counter((e["name"], e["ts"] + base, e.get("dur", 0)) for e in slices) == Counter(expected)
    assert slices_in(Source(trace, made), window) == len(expected)
    threads = defaultdict(list)
    for event in slices:
        threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event.get("dur", 0)))
    assert all(nests(spans) for spans in threads.values())
    named = [(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"]
    assert sorted(named) == sorted(threads)
    assert {e["pid"] for e in events} == {e["pid"] for e in events if e["name"] == "process_name"}


@examples(100)
@given(builders(), CHOSEN)
def test_our_own_reader_finds_the_same_slices_of_the_same_categories(builder, extras):
    trace = builder.build()
    made = timeline(trace)
    again = read_blocks([written([Source(trace, made)], extras=extras)[0]], path="again.json")
    assert categorised(again, timeline(again)) == categorised(trace, made)


def categorised(trace, made):
    """How often there is a slice of each name, category, Unix start, duration and, of a device's work, stream."""
    names, codes, own = made.labels.texts, made.labels.categories, made.is_recorded
    tracks = [made.tracks[made.track_of(i)] for i in own.nonzero()[0].tolist()]
    streams = [(track.device, track.stream) if track.part == "work" else None for track in tracks]
    columns = (made.label[own].tolist(), made.start_ns[own].tolist(), made.dur_ns[own].tolist(), streams)
    return Counter(
        (names[label], CATEGORIES[codes[label]], start + trace.origin_ns, dur, stream)
        for label, start, dur, stream in zip(*columns, strict=True)
    )


@examples(100)
@given(st.lists(builders(), min_size=2, max_size=3), st.data())
def test_workers_lie_on_one_clock_in_processes_of_their_own(some, data):
    traces = [builder.build() for builder in some]
    shifts = [data.draw(st.integers(-50, 50)) for _ in traces]
    window = data.draw(WINDOWS)
    sources = [Source(t, timeline(t), s, f"rank{i}") for i, (t, s) in enumerate(zip(traces, shifts, strict=True))]
    _, events, base = written(sources, window, EXTRAS)
    zero = traces[0].origin_ns - shifts[0]  # of the common clock, in Unix time
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    for source in sources:
        slices = Counter(
            (e["name"], e["ts"] + base - zero, e.get("dur", 0))
            for e in events
            if e["ph"] in "Xi" and names[e["pid"]].startswith(source.label)
        )
        moved = source.shift_ns - source.trace.origin_ns
        expected = [
            (n, at + moved, dur) for n, at, dur in drawn(source.trace, source.timeline, window, source.shift_ns)
        ]
        assert slices == Counter(expected)
    assert all(e["ts"] >= 0 for e in events if "ts" in e)


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 200), st.integers(1, 90)), min_size=20, max_size=120))
def test_any_number_of_slices_may_overlap_in_part(spans):
    builder = TraceBuilder()
    for at, dur in spans:
        builder.annotation("a", at, dur)
    trace = builder.build()
    _, events, _ = written([Source(trace, timeline(trace))])
    threads = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            threads[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    assert sum(map(len, threads.values())) == len(spans)
    assert all(nests(spans) for spans in threads.values())


def arrow_ends(events):
    """The names of the slices that each arrow's ends begin with."""
    at = {(e["tid"], e["ts"]): e["name"] for e in events if e["ph"] == "X"}
    ends = defaultdict(dict)
    for event in events:
        if event["ph"] in "sf":
            ends[event["id"]][event["ph"]] = at[event["tid"], event["ts"]]
    return sorted((e["s"], e["f"]) for e in ends.values())


def test_arrows_lead_from_calls_to_kernels_and_from_forward_to_backward():
    builder = TraceBuilder().op("aten::mm", 0, 90, **{"Sequence number": 5}).launch(10, 5, 1, thread=1)
    builder.op("MmBackward0", 200, 50, thread=2).arrow(9, (1, 0), (2, 200)).kernel("gemm", 100, 20, 1)
    trace = builder.kernel("unlaunched", 130, 5, 8).build()
    _, events, _ = written([Source(trace, timeline(trace))], extras=["flows"])
    assert arrow_ends(events) == [("aten::mm", "MmBackward0"), ("cudaLaunchKernel", "gemm")]
    assert {e["bp"] for e in events if e["ph"] == "f"} == {"e"}
    _, events, _ = written([Source(trace, timeline(trace))], Window(0, 95), ["flows"])
    assert arrow_ends(events) == []  # of each arrow only one end is written


def test_memory_is_written_as_the_level_that_the_range_begins_with_and_all_in_it():
    gpu = {"Device Type": 1, "Device Id": 0}
    builder = TraceBuilder().op("a", 0, 100)
    for at, size_bytes, total in ((10, 5, 5), (20, 3, 8), (30, -5, 3)):
        builder.memory(size_bytes, at, **gpu, **{"Total Allocated": total, "Total Reserved": 64})
    trace = builder.build()
    sources = [Source(trace, timeline(trace))]

    def levels(window):
        _, events, _ = written(sources, window, ["memory"])
        return [(e["name"], e["ts"], e["args"]["allocated"], e["args"]["reserved"]) for e in events if e["ph"] == "C"]

    assert levels(Window(15, 30)) == [("cuda:0 memory", 15, 5, 64), ("cuda:0 memory", 20, 8, 64)]
    assert levels(Window()) == [("cuda:0 memory", at, total, 64) for at, total in ((10, 5), (20, 8), (30, 3))]


def test_arguments_are_written_as_kineto_names_them():
    builder = TraceBuilder().op("aten::mm", 0, 90, **{"External id": 3, "Input Dims": [[2, 3], []]})
    builder.kernel("ncclDevKernel", 10, 5, 4, grid=[1, 2, 3], **{"Collective name": "allreduce", "In msg nelems": 7})
    trace = builder.op("plain", 95, 1).build()
    _, events, _ = written([Source(trace, timeline(trace))], extras=["args"])
    arguments = {e["name"]: e.get("args") for e in events if e["ph"] == "X"}
    assert arguments["aten::mm"] == {"External id": 3, "Input Dims": [[2, 3], []]}
    assert arguments["plain"] is None
    assert arguments["ncclDevKernel"] == {
        "device": 0,
        "stream": 7,
        "correlation": 4,
        "grid": [1, 2, 3],
        "Collective name": "allreduce",
        "In msg nelems": 7,
    }


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        (r'{"\ud800": "\udfff"}', {"\ufffd": "\ufffd"}),
        (r'["\ud83d\ude00", "\ud800"]', ["\U0001f600", "\ufffd"]),
        ("[[2, Infinity]]", "[[2, Infinity]]"),
        ('{"a": 1e999}', '{"a": 1e999}'),
    ],
)
def test_arguments_that_strict_json_in_utf8_cannot_hold_are_replaced_or_written_as_texts(argument, expected):
    text = TraceBuilder().op("aten::mm", 0, 90, **{"Input Dims": "HERE"}).text().replace('"HERE"', argument)
    trace = read_blocks([text.encode()], path="odd.json")
    text, events, _ = written([Source(trace, timeline(trace))], extras=["args"])
    json.loads(text, parse_float=float, parse_constant=pytest.fail)
    assert [e["args"]["Input Dims"] for e in events if e["ph"] == "X"] == [expected]


def test_names_may_hold_any_text():
    name = 'a "quoted" \\ name\n\t\u2028 é \x01 </script>'
    trace = TraceBuilder().op(name, 0, 90).build()
    _, events, _ = written([Source(trace, timeline(trace))])
    assert [e["name"] for e in events if e["ph"] == "X"] == [name]


@pytest.mark.parametrize("portion", [1, 2, 7])
def test_portions_leave_nothing_out(portion, monkeypatch):
    builder = TraceBuilder()
    for i in range(40):
        builder.op(f"o{i % 3}", 5 * (i // 4), 3 * i, thread=i % 2).annotation("a", 2 * i, 5).kernel("k", i, 3)
    sources = [Source(trace := builder.build(), timeline(trace))]
    whole, _, _ = written(sources)
    monkeypatch.setattr("kinetoscope_tb.export.chrome_json.writer.AT_ONCE", portion)
    assert written(sources)[0] == whole


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_real_traces_nest_and_come_back_from_the_file_as_they_were(path):
    trace = read_once(path)
    made = timeline(trace)
    text, events, _ = written([Source(trace, made)], extras=EXTRAS)
    threads = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            threads[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
    for spans in threads.values():
        ends = []
        for start, dur in sorted(spans):
            while ends and ends[-1] <= start:
                ends.pop()
            assert not ends or start - dur <= ends[-1]
            ends.append(start - dur)
    again = read_blocks([text], path="again.json")
    assert categorised(again, timeline(again)) == categorised(trace, made)


def test_the_size_of_a_long_file_is_told_by_parts_of_it(monkeypatch):
    builder = TraceBuilder()
    for i in range(4000):
        builder.op(f"aten::op{i % 17}", 1000 * i, 700).launch(1000 * i + 100, 200, i)
    trace = builder.build()
    source = Source(trace, timeline(trace), 10**9)
    monkeypatch.setattr("kinetoscope_tb.export.chrome_json.writer._SAMPLED", 1000)
    for window in (Window(), Window(10**9 + 10**6, 10**9 + 3 * 10**6)):
        estimate = size(source, window)
        written_bytes = sum(map(len, export_pieces([source], window)))
        assert (estimate.slices, estimate.is_exact) == (slices_in(source, window), False)
        assert written_bytes / 2 < estimate.bytes < 2 * written_bytes
