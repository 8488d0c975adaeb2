"""Perfetto's protobuf gives the same frames as JSON of the same recording."""

import gzip
import os
import zlib
from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb.errors import NotATrace, TraceError
from kinetoscope_tb.export.repair import repair
from kinetoscope_tb.reader import read, read_blocks
from kinetoscope_tb.reader.event import EventTexts
from kinetoscope_tb.reader.perfetto.state import State
from kinetoscope_tb.trace.model import COLLECTED
from support.perfetto import BOOTTIME, REALTIME, annotation, clock, field, foreign, message, packet, training
from support.real_traces import FOLDER

CUSPY = Path(os.environ.get("KINETOSCOPE_TORCH_2_15", FOLDER.parent / "torch-2.15")) / "cuspy"
FILES = sorted(CUSPY.glob("*.pftrace*")) if CUSPY.is_dir() else []
FRAMES = (*COLLECTED, "collectives", "counters")

# What torch's protobuf can't hold (torch-2.15.md, section 5): static shared memory; the writer's own rows about the
# window, which have no track; arrows from launches without work and from forward to backward operators; directions of
# copies; sums that the JSON's writer has truncated.
LACKING = {"shared_memory_bytes"}
ROUNDED_NS = {"start_ns": 1, "dur_ns": 1}
"""Torch's writer converts the times of CPU rows through floats, in one of the two forms."""
ANNOTATION_NS = 2


def read_text(*parts, path="x.pftrace"):
    return read_blocks([b"".join(parts)], path=path)


def plain(frame):
    """The frame with texts as texts, without what depends on the form of the file."""
    return frame.drop("offset", "length", strict=False).with_columns(pl.col(pl.Enum, pl.Categorical).cast(pl.String))


def with_places(frame, trace):
    """The frame with its threads by pid and tid, because the JSON has more of them."""
    if "thread" not in frame.columns:
        return frame
    threads = trace.threads.select("pid", "tid").with_row_index("thread").cast({"thread": frame.schema["thread"]})
    return frame.join(threads, "thread", maintain_order="left").drop("thread")


def comparable(name, trace):
    frame = with_places(plain(getattr(trace, name)), trace)
    if name == "others":
        is_window = (pl.col("category") == "Trace") | pl.col("name").is_in(
            ["Iteration Start: PyTorch Profiler", "Record Window End"]
        )
        frame = frame.filter(~is_window.fill_null(value=False)).sort(pl.all(), maintain_order=True)
    if name == "device_events":  # protobuf has no directions of copies
        frame = frame.with_columns(pl.col("name").str.replace(r"^Memcpy .*", "Memcpy"))
    if name == "flows":
        frame = frame.filter(pl.col("category") != "fwdbwd")
        ends = frame.filter(pl.col("phase") == "f").drop("phase")
        begins = frame.filter(pl.col("phase") == "s").drop("phase")
        arrows = begins.join(ends, ["category", "id"], suffix="_to")  # edges of graphs are numbered in any order
        frame = arrows.with_columns(pl.col("id").clip(upper_bound=2**40)).unique().sort(pl.all())
    return frame


def assert_equal(name, ours, theirs, file):
    assert ours.columns == theirs.columns
    assert ours.height == theirs.height, name
    for column in set(ours.columns) - LACKING:
        one, other = ours[column], theirs[column]
        if one.equals(other):
            continue
        if column in ROUNDED_NS and file.startswith("cuspy_steps") and name in ("host_events", "launches"):
            assert (one - other).abs().max() <= ROUNDED_NS[column]
        elif name == "others" and column in ROUNDED_NS:
            is_annotation = ours["category"] == "gpu_user_annotation"
            assert is_annotation.filter(one != other).all()
            assert (one - other).abs().max() <= ANNOTATION_NS
        elif name == "device_events" and column == "dur_ns":  # cut where the next work of the lane begins
            start = ours.filter(one != other).select(end=pl.col("start_ns") + pl.col("dur_ns"))["end"]
            assert (one <= other).all()
            assert start.is_in(ours["start_ns"].implode()).all()
        elif name == "counters" and column == "value":
            is_derived = ours["name"] == "Cycles (Current Kernel)"
            assert is_derived.filter(one.fill_nan(None).ne_missing(other.fill_nan(None))).all()
        else:
            differs = one.ne_missing(other)
            raise AssertionError((file, name, column, one.filter(differs)[:3], other.filter(differs)[:3]))


@pytest.mark.skipif(not FILES, reason=f"the files of torch 2.15 aren't at {CUSPY}")
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_of_torch_have_the_frames_of_their_json(path):
    trace, twin = read(path), read(CUSPY / f"{path.name.split('.')[0]}.json.gz")
    assert trace.origin_ns == twin.origin_ns
    assert [d.rule for d in trace.diagnostics if d.level != "note"] == []
    for name in FRAMES:
        assert_equal(name, comparable(name, trace), comparable(name, twin), path.name)


def test_a_recording_has_the_frames_of_its_json():
    recorded = training(3, 20)
    trace, twin = read_text(recorded.pftrace()), read_text(recorded.chrome(), path="x.json")
    for name in FRAMES:
        ours, theirs = plain(getattr(trace, name)), plain(getattr(twin, name))
        if name in ("flows", "others"):
            ours, theirs = ours.sort(pl.all()), theirs.sort(pl.all())
        assert ours.drop(LACKING, strict=False).equals(theirs.drop(LACKING, strict=False)), name


def test_blocks_of_any_size_give_the_same():
    data = training(2, 20).pftrace()
    whole = read_text(data)
    parts = read_blocks((data[i : i + 37] for i in range(0, len(data), 37)), path="x.pftrace")
    assert all(getattr(whole, name).equals(getattr(parts, name)) for name in FRAMES)


def test_gzip_is_recognized_by_content(tmp_path):
    path = tmp_path / "x.pftrace"
    path.write_bytes(gzip.compress(training(1, 5).pftrace()))
    assert read(path).device_events.height == 5


def test_a_trace_of_the_sdk_opens_as_a_timeline():
    trace = read_text(foreign())
    slices = trace.others.filter(pl.col("phase") == "X")
    frames = slices.filter(pl.col("name").cast(pl.String).str.starts_with("frame"))
    assert trace.threads.filter(pl.col("name").is_not_null())["name"].to_list() == ["worker 71", "worker 72"]
    assert frames["start_ns"].unique().sort().to_list() == [0, 35_000, 70_000]  # incremental clocks in µs
    assert frames["dur_ns"].to_list() == [20_000] * 6
    assert slices.filter(pl.col("name") == "draw")["dur_ns"].to_list() == [5_000] * 6
    assert trace.counters["value"].to_list() == [0, 0, 1, 1, 2, 2]
    assert trace.flows["phase"].to_list() == ["s", "f"] * 3
    assert trace.origin_ns == 10**18 + 6_010_000 - 5_000_000
    assert [d.rule for d in trace.diagnostics] == ["other_packets", "unknown_category"]


def slices(*events):
    track = packet({60: message({1: 5, 4: message({1: 7, 2: 8})})})
    return [clock(10**18), track, *(packet({8: 10**18 + at, 11: message({11: 5, **event})}) for at, event in events)]


def test_back_to_back_slices_of_torch_stay_apart():
    """By time and depth, one would last 10 and the other nothing."""
    begins = [packet({8: 10**18 + at, 13: 2, 11: message({9: 1, 11: 5, 23: "a"})}) for at in (0, 5)]
    ends = [packet({8: 10**18 + at, 11: message({9: 2, 11: 5})}) for at in (5, 10)]
    trace = read_text(*slices(), *begins, *ends)
    assert trace.others["dur_ns"].to_list() == [5, 5]


def test_nested_slices_close_the_innermost_first():
    events = [(0, {9: 1, 23: "outer"}), (2, {9: 1, 23: "inner"}), (4, {9: 2}), (9, {9: 2})]
    assert read_text(*slices(*events)).others["dur_ns"].to_list() == [9, 2]


def test_slices_without_a_partner_are_counted():
    trace = read_text(*slices((0, {9: 2}), (1, {9: 1, 23: "open"})))
    unpaired = next(d for d in trace.diagnostics if d.rule == "unpaired")
    assert unpaired.count == 2
    assert "1 ranges have no end" in unpaired.consequence


def test_a_cut_file_keeps_what_was_written():
    data = training(1, 10).pftrace()
    trace = read_text(data[:-5])
    truncated = next(d for d in trace.diagnostics if d.rule == "truncated")
    assert truncated.level == "loss"
    assert trace.device_events.height == 10  # the last packet is a counter's


def test_a_damaged_packet_costs_itself_alone():
    data = training(1, 10).pftrace()
    at = data.rindex(b"correlation") - 3
    trace = read_text(data[:at] + b"\xff\xff" + data[at + 2 :])
    assert trace.device_events.height == 9
    assert next(d for d in trace.diagnostics if d.rule == "damaged_events").count == 1


def test_garbage_between_packets_is_skipped():
    data = training(1, 10).pftrace()
    trace = read_text(data[:100], b"", data[100:])
    assert not [d for d in trace.diagnostics if d.level == "loss"]
    first = len(clock(0))
    trace = read_text(data[:first], b"garbage \n\x05 \xff" * 9, data[first:])
    assert trace.device_events.height == 10
    assert next(d for d in trace.diagnostics if d.rule == "damaged_events").count == 1


def test_unknown_texts_are_counted():
    event = packet({8: 10**18, 11: message({9: 3, 10: 77, 11: 5})})
    trace = read_text(*slices(), event)
    assert trace.others["name"].to_list() == ["(no name)"]
    assert "unknown_texts" in [d.rule for d in trace.diagnostics]


def test_unknown_fields_are_skipped():
    event = packet({8: 10**18, 11: message({9: 3, 23: "known", 11: 5, 999: "new"}), 4000: b"new"})
    assert read_text(*slices(), field(77, "of the file"), event).others["name"].to_list() == ["known"]


def test_compressed_packets_are_read():
    recorded = training(1, 10).pftrace()
    first = len(clock(0))
    trace = read_text(recorded[:first], packet({50: zlib.compress(recorded[first:])}))
    assert trace.device_events.height == 10
    assert trace.host_events.height == 11


def test_a_compressed_bomb_is_refused():
    bomb = zlib.compress(bytes(100 << 20), 9)
    trace = read_text(*slices((0, {9: 3, 23: "a"})), packet({50: bomb}))
    assert trace.others.height == 1
    assert "compressed_packets" in [d.rule for d in trace.diagnostics]


def test_deep_nesting_is_bounded():
    value = field(4, 1)
    for _ in range(3000):
        value = field(12, value)
    event = packet(
        {8: 10**18, 11: message({9: 1, 23: "deep", 11: 5, 22: "cpu_op", 4: field(10, "Input Dims") + value})}
    )
    trace = read_text(*slices(), event)
    assert trace.host_events["name"].to_list() == ["deep"]


def test_nested_arguments_become_json():
    args = annotation("Input Dims", [[4, 1024], [], [-1, 2.5, True, 'a"b\n']])
    event = packet({8: 10**18, 11: message({9: 1, 23: "op", 11: 5, 22: "cpu_op", 4: args})})
    shapes = read_text(*slices(), event).host_events["input_shapes"].to_list()
    assert shapes == ['[[4, 1024], [], [-1, 2.5, true, "a\\"b\\n"]]']


def test_the_clock_may_start_at_boot():
    clocks = message({1: [message({1: BOOTTIME, 2: 500}), message({1: REALTIME, 2: 10**18})]})
    event = packet({8: 800, 11: message({9: 3, 23: "a"})})
    assert read_text(packet({6: clocks, 8: 500}), event).origin_ns == 10**18 + 300


def test_an_event_is_shown_with_its_arguments(tmp_path):
    path = tmp_path / "rank0.pftrace.gz"
    path.write_bytes(gzip.compress(training(1, 5).pftrace()))
    trace = read(path)
    host = trace.host_events.row(1, named=True)
    event = EventTexts().event(str(path), None, host["offset"], host["length"])
    assert (event.value["name"], event.value["args"]["Input Dims"]) == ("aten::op0", [[4, 1024], [1024, 256]])
    work = trace.device_events.row(0, named=True)
    event = EventTexts().event(str(path), None, work["offset"], work["length"])
    assert event.value["args"]["grid"] == [8, 2, 1]
    assert event.length == work["length"]


def test_repairing_says_that_it_needs_json(tmp_path):
    path = tmp_path / "rank0.pftrace"
    path.write_bytes(training(1, 2).pftrace())
    with pytest.raises(NotATrace, match=r"Perfetto trace .* need JSON"):
        repair(str(path), str(tmp_path / "out.json"))


def test_a_file_of_damage_alone_is_refused():
    with pytest.raises(TraceError, match="none of its events can be read"):
        read_text(b"\n\x7f" + b"\x08\x01" * 20)


def begin_and_end(nth, track=7, sequence=1, **fields):
    """A slice on a track; its begin has these fields, too."""
    own = {int(number[1:]): value for number, value in fields.items()}
    event = {9: 1, 11: track, **own.pop(11, {23: f"slice {nth}"})}
    begin = packet({8: 1000 * nth, **own, 11: message(event)}, sequence)
    return begin + packet({8: 1000 * nth + 5, 11: message({9: 2, 11: track})}, sequence)


CHANGES = {
    "texts": lambda n: begin_and_end(n, _12=message({2: message({1: n + 1, 2: f"slice {n}"})}), _11={10: n + 1}),
    "sequences": lambda n: begin_and_end(n, sequence=n + 2, _13=1),
    "clears": lambda n: begin_and_end(n, _13=1),
    "tracks": lambda n: packet({60: message({1: 1000 + n, 2: f"track {n}", 5: 7})}) + begin_and_end(n, 1000 + n),
    "threads": lambda n: (
        packet({60: message({1: 1000 + n, 4: message({1: 42, 2: n, 5: f"thread {n}"})})}) + begin_and_end(n, 1000 + n)
    ),
    "clocks": lambda n: (
        packet({6: message({1: [message({1: 6, 2: 0}), message({1: 64 + n, 2: 0})]})}) + begin_and_end(n)
    ),
    "descriptors": lambda n: packet({44: message({1: 42, 2: n, 5: f"thread {n}"})}) + begin_and_end(n, 0),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_packets_that_change_what_others_refer_to_are_read_in_the_scan(change, monkeypatch):
    count, stops = 3000, []
    for name in ("read", "make_room"):
        method = getattr(State, name)
        monkeypatch.setattr(State, name, lambda *args, method=method, name=name: stops.append(name) or method(*args))
    head = packet({60: message({1: 7, 4: message({1: 42, 2: 7, 5: "main"})})})
    trace = read_text(head + b"".join(map(change, range(count))))
    rows = trace.others.sort("start_ns")
    assert rows["name"].to_list() == [f"slice {n}" for n in range(count)]
    assert rows["start_ns"].to_list() == [1000 * n for n in range(count)]
    assert "read" not in stops
    assert len(stops) < 20


def test_tracks_have_the_process_above_them():
    parts = [
        packet({60: message({1: 1, 3: message({1: 42, 6: "trainer"})})}),
        packet({60: message({1: 2, 5: 1, 2: "a queue"})}),
        packet({60: message({1: 3, 5: 2, 2: "-12"})}),
        packet({60: message({1: 4, 5: 99})}),
        packet({60: message({1: 5, 5: 5, 2: "its own parent"})}),
        packet({60: message({1: 6, 4: message({1: 42, 2: 77, 5: "worker"})})}),
        *(begin_and_end(n, n) for n in range(1, 7)),
    ]
    trace = read_text(b"".join(parts))
    assert {row[:2]: row[2:] for row in trace.threads.rows()} == {
        ("42", ""): ("trainer", None),
        ("42", "a queue"): ("trainer", None),
        ("42", "-12"): ("trainer", None),
        ("", "track 4"): (None, None),
        ("", "its own parent"): (None, None),
        ("42", "77"): ("trainer", "worker"),
    }
