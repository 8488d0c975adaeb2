"""Views of memory snapshots."""

import pickle
from random import Random

import pytest

from kinetoscope_tb.answer.recording import recording_answer
from kinetoscope_tb.compare.comparison import compare
from kinetoscope_tb.distributed.run import Member, Ranks
from kinetoscope_tb.distributed.summary import summary as summary_of
from kinetoscope_tb.engine.answers import cached_frames
from kinetoscope_tb.measures.memory.snapshots import device_snapshots
from kinetoscope_tb.reader import read_blocks
from kinetoscope_tb.views import EVERY_VIEW, RUN_VIEWS, VIEWS
from support.snapshots import GIB, MIB, START_US, Allocator, failing, frames_of, small_snapshot, trained


def read_snapshot(allocator):
    return read_blocks([allocator.dumped()], path="snapshot.pickle")


def first(view, trace, **arguments):
    return VIEWS[view].frame(trace, arguments).row(0, named=True)


def test_a_snapshot_is_summed_up_by_its_failure():
    summary = first("snapshot_summary", trace := read_snapshot(small_snapshot()))
    failure = first("snapshot_failure", trace)
    assert (summary["rule"], summary["title"]) == (failure["cause"], failure["finding"])
    assert (summary["evidence"], summary["action"]) == (failure["evidence"], failure["action"])


def test_without_a_failure_it_is_summed_up_by_its_peak():
    allocator = Allocator(2 * GIB)
    trained(allocator, 1, activation=64 * MIB, layers=2)
    summary = first("snapshot_summary", read_snapshot(allocator))
    assert summary["rule"] == "peak"
    assert summary["title"] == "Memory peaks at 144 MiB; 64 MiB of it was allocated in `forward (job/model.py:20)`."
    assert summary["evidence"].startswith("The next holders: `forward (job/model.py:21)` 64 MiB, `")


def cut_in_events(allocator, events):
    """The snapshot without its end: all segments, and this many events."""
    whole = allocator.snapshot()
    data = pickle.dumps({"segments": whole["segments"], "device_traces": [whole["device_traces"][0][:events]]}, 4)
    return read_blocks([data.removesuffix(b".")], path="snapshot.pickle")


def test_of_a_snapshot_that_is_cut_the_peak_is_a_lower_bound():
    allocator = Allocator(4 * GIB)
    held = allocator.allocate(256 * MIB)
    allocator.free(allocator.allocate(512 * MIB))
    count = len(allocator.events)
    allocator.allocate(1024 * MIB)
    whole, cut = read_snapshot(allocator), cut_in_events(allocator, count)
    assert device_snapshots(whole)[0].least_peak_bytes == 1280 * MIB
    assert device_snapshots(cut)[0].least_peak_bytes == 1280 * MIB  # its levels are shifted up by 1 GiB
    summary = first("snapshot_summary", cut)
    assert summary["title"] == "This snapshot is cut: memory peaks at 1.25 GiB at least."
    assert summary["evidence"].startswith("What is left peaks at 1.75 GiB, which may be too high or too low; ")
    assert (summary["confidence"], summary["action"].partition(";")[0]) == ("low", "Record the snapshot again")
    claim = recording_answer(cut, EVERY_VIEW, cached_frames).verdict
    assert (claim.confidence, claim.measurement) == ("low", "low")
    allocator.free(held)
    assert device_snapshots(cut_in_events(allocator, count))[0].least_peak_bytes == 1024 * MIB


def test_the_failure_in_a_snapshot_that_is_cut_is_less_certain():
    whole = small_snapshot()
    summary = first("snapshot_summary", cut_in_events(whole, len(whole.events)))
    assert summary["rule"] == first("snapshot_summary", read_snapshot(whole))["rule"] != "peak"
    assert summary["confidence"] == "low"
    assert " This snapshot is cut: " in summary["evidence"]


def test_a_segment_that_says_neither_device_nor_size_is_no_device_and_has_no_size():
    segments = [{"address": -5, "total_size": "x", "blocks": []}]
    data = pickle.dumps({"segments": segments, "device_traces": []}, 4).removesuffix(b".") + b"cos\nsystem\n."
    trace = read_blocks([data], path="snapshot.pickle")
    assert device_snapshots(trace) == ()
    assert VIEWS["snapshot_segments"].frame(trace, {}).is_empty()
    summary = first("snapshot_summary", trace)
    title = "Only a part of this snapshot could be read, and what is left holds no memory."
    assert (summary["title"], summary["confidence"]) == (title, "low")
    sizes = [{"address": 0, "device": 0, "total_size": "x", "blocks": [{"size": -1, "state": "active_allocated"}]}]
    data = pickle.dumps({"segments": sizes, "device_traces": []}, 4)
    (snapshot,) = device_snapshots(read_blocks([data], path="snapshot.pickle"))
    assert snapshot.levels(-1) == (0, 0, 0)


@pytest.mark.parametrize("view", ["run_advice", "stragglers"])
def test_nothing_is_said_of_the_speed_of_ranks_by_their_snapshots(view):
    members = [Member(f"rank{rank}", "1", 0, summary_of(read_snapshot(small_snapshot()))) for rank in range(2)]
    assert RUN_VIEWS[view].is_missing(Ranks("job/memory", tuple(members)))


def test_without_memory_it_says_so():
    allocator = Allocator(GIB)
    allocator._event("snapshot", 0, 0, 0, [])
    assert first("snapshot_summary", read_snapshot(allocator))["rule"] == "empty"


def test_annotations_and_metadata_are_ranges_with_their_peak():
    allocator = Allocator(2 * GIB)
    for number, (stage, name) in enumerate(
        [("START", "step"), ("START", "forward"), ("END", "forward"), ("START", "backward"), ("END", "step")]
    ):
        mark = {"stage": stage, "name": name, "device": 0, "time_us": START_US + 100 * number}
        allocator.annotations.append(mark)
    for offset, size, metadata in ((110, 8, "batch 0"), (150, 4, "batch 0"), (310, 2, ""), (450, 1, "batch 1")):
        allocator._now = START_US + offset - 20
        allocator.allocate(size * MIB)
        allocator.events[-1]["user_metadata"] = metadata
    ranges = VIEWS["snapshot_ranges"].frame(read_snapshot(allocator), {})
    assert ranges.select("kind", "name", "lane", "peak_bytes", "growth_bytes").rows() == [
        ("annotation", "step", 0, 14 * MIB, 14 * MIB),
        ("annotation", "forward", 1, 12 * MIB, 12 * MIB),
        ("user metadata", "batch 0", 2, 12 * MIB, 12 * MIB),
        ("annotation", "backward", 1, 15 * MIB, 3 * MIB),
        ("user metadata", "batch 1", 2, 15 * MIB, MIB),
    ]
    lengths = ranges["end_ns"] - ranges["time_ns"]
    assert lengths.to_list()[:2] == [400_000, 100_000]


CPP = [
    {"filename": "??", "line": 0, "name": name}
    for name in (
        "torch::unwind::unwind()",
        "at::detail::empty_cuda(c10::ArrayRef<long>)",
        "at::_ops::empty_strided::call(c10::ArrayRef<long>)",
        "at::_ops::div_Tensor::call(at::Tensor const&)",
        "torch::autograd::generated::DivBackward0::apply(std::vector<at::Tensor>&&)",
        "torch::autograd::Engine::thread_main()",
    )
]


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        (CPP, "DivBackward0"),
        (CPP[:4], "at::_ops::div_Tensor"),
        (CPP[:3], "at::detail::empty_cuda(c10::ArrayRef<long>)"),
        ([*CPP, *frames_of("/job/train.py:7:step")], "job/train.py(7): step"),
    ],
    ids=["a node of the backward pass", "an operator", "neither", "the program's line"],
)
def test_memory_belongs_to_the_line_that_a_person_can_act_on(frames, place):
    allocator = Allocator(2 * GIB)
    block = allocator.allocate(MIB)
    allocator.events[-1]["frames"] = block.frames = frames
    row = first("snapshot_alive", read_snapshot(allocator))
    assert row["place"] == place
    begin, *_ = row["largest_stack"].splitlines()  # below the allocator's own frames
    assert begin.endswith("at::detail::empty_cuda(c10::ArrayRef<long>)")


def test_a_stack_has_all_of_its_frames():
    allocator = Allocator(2 * GIB)
    lines = [{"filename": "/job/train.py", "line": line, "name": "f"} for line in (3, 20, 45)]
    for frames in (lines, CPP[:1]):
        block = allocator.allocate(MIB)
        allocator.events[-1]["frames"] = block.frames = frames
    rows = VIEWS["snapshot_alive"].frame(read_snapshot(allocator), {})
    assert rows["largest_stack"].to_list() == [
        "/job/train.py(3): f\n/job/train.py(20): f\n/job/train.py(45): f",
        "torch::unwind::unwind()",
    ]


def test_bands_are_of_the_blocks_that_fill_the_time_shown():
    allocator = Allocator(8 * GIB)
    trained(allocator, 2, activation=64 * MIB)
    trace = read_snapshot(allocator)
    blocks = VIEWS["snapshot_blocks"].frame(trace, {})
    levels = VIEWS["snapshot_levels"].frame(trace, {})
    for time, active in levels.filter(levels["time_ns"] >= 0).select("time_ns", "active_bytes").rows():
        is_alive = (blocks["time_ns"] <= time) & ((blocks["end_ns"] > time) | blocks["lifetime_ns"].is_null())
        assert blocks.filter(is_alive)["size_bytes"].sum() == active
    narrow = {"from_ns": 100_000, "to_ns": 200_000}
    inside = VIEWS["snapshot_blocks"].frame(trace, narrow)
    assert inside.equals(blocks.filter((blocks["end_ns"] >= 100_000) & (blocks["time_ns"] <= 200_000)))
    some = VIEWS["snapshot_levels"].frame(trace, narrow)
    within = levels["time_ns"].filter(levels["time_ns"].is_between(*narrow.values()))
    assert some["time_ns"].unique().to_list() == [*within.unique()]
    assert (some["time_ns"][0], some["time_ns"][-1]) == tuple(narrow.values())


def test_the_peak_of_nested_ranges_is_the_highest_level_in_each():
    allocator, rng, open_ranges = Allocator(8 * GIB), Random(3), []
    blocks = [allocator.allocate(MIB)]
    for nth in range(400):
        is_end = bool(open_ranges) and rng.random() < 0.5
        stage, name = ("END", open_ranges.pop()) if is_end else ("START", f"range {nth}")
        open_ranges += [] if is_end else [name]
        allocator.annotations.append({"stage": stage, "name": name, "device": 0, "time_us": allocator._now + 1})
        blocks.append(allocator.allocate(rng.randrange(1, 9) * MIB))
        if rng.random() < 0.6:
            allocator.free(blocks.pop(rng.randrange(len(blocks))))
    trace = read_snapshot(allocator)
    levels = VIEWS["snapshot_levels"].frame(trace, {}).select("time_ns", "allocated_bytes").rows()
    for begin, end, peak in VIEWS["snapshot_ranges"].frame(trace, {}).select("time_ns", "end_ns", "peak_bytes").rows():
        before = [level for time, level in levels if time < begin]
        assert peak == max([*before[-1:], *(level for time, level in levels if begin <= time <= end)])


def test_a_snapshot_alone_has_neither_steps_nor_advice():
    trace = read_snapshot(small_snapshot())
    assert [VIEWS[view].is_missing(trace) for view in ("steps", "advice", "snapshot_levels")] == [True, True, False]


def test_a_block_has_the_ranges_and_the_metadata_of_its_allocation():
    allocator = Allocator(2 * GIB)
    allocator.allocate(MIB)
    for name in ("step", "forward"):
        allocator.annotations.append(
            {"stage": "START", "name": name, "device": 0, "time_us": allocator.events[-1]["time_us"] + 1}
        )
    allocator.allocate(2 * MIB, stream=7)
    allocator.events[-1] |= {"user_metadata": "kv cache", "compile_context": "3/1"}
    trace = read_snapshot(allocator)
    blocks = VIEWS["snapshot_blocks"].frame(trace, {})
    row = first("snapshot_block", trace, device=0, block=blocks["block"][0])
    assert (row["ranges"], row["stream"]) == ("step › forward", 7)
    assert (row["user_metadata"], row["compile_context"]) == ("kv cache", "3/1")
    assert first("snapshot_block", trace, block=blocks["block"][1])["ranges"] is None


def leaking(request):
    allocator = Allocator(8 * GIB)
    trained(allocator, 8, activation=256 * MIB, leak_bytes=800 * MIB)
    return read_snapshot(failing(allocator, request))


def test_a_leak_is_said_to_fill_the_device_only_as_far_as_that_is_known():
    trace = leaking(2 * GIB)
    unknown, known = (first("snapshot_failure", trace, device_memory_bytes=size) for size in (None, 8 * GIB))
    for row in (unknown, known):
        assert row["cause"] == "leak"
        assert row["finding"].startswith(
            "Memory grows with each step, until the request of 2 GiB at `request (job/train.py:77)`"
        )
        assert "a step is what has a backward pass or an optimizer between two of them" in row["evidence"]
    assert "if the device has much more, the rest is taken outside of torch" in unknown["evidence"]
    assert "the rest is taken outside" not in known["evidence"]


def test_a_request_that_had_no_room_without_the_leak_either_failed_for_another_reason():
    assert first("snapshot_failure", leaking(7 * GIB + 900 * MIB))["cause"] == "full_or_outside"


def test_snapshots_are_compared_by_line_and_by_stack():
    base, new = Allocator(2 * GIB), Allocator(2 * GIB)
    call = "/job/train.py:30:step"
    for allocator, sizes in ((base, {1: 8 * MIB, 2: 2 * MIB, 4: MIB}), (new, {1: 8 * MIB, 2: 4 * MIB, 3: 16 * MIB})):
        for line, size in sizes.items():  # the largest stack of the line is another one on each side
            allocator.allocate(size, frames_of(f"/site-packages/torch/nn/modules/linear.py:{line}:forward", call))
    base_trace, new_trace = read_snapshot(base), read_snapshot(new)
    (row,) = compare(VIEWS["snapshot_alive"], base_trace, new_trace).frame.rows(named=True)
    assert row["place"] == "job/train.py(30): step"
    assert (row["base_alive_bytes"], row["new_alive_bytes"], row["delta_alive_bytes"]) == (11 * MIB, 28 * MIB, 17 * MIB)
    by_stack = compare(VIEWS["snapshot_alive"], base_trace, new_trace, arguments={"at": "end", "by": "stack"}).frame
    columns = ("only_in", "base_alive_bytes", "new_alive_bytes", "delta_alive_bytes")
    assert by_stack.select(columns).rows() == [
        ("new", None, 16 * MIB, 16 * MIB),
        (None, 2 * MIB, 4 * MIB, 2 * MIB),
        ("base", MIB, None, -MIB),
        (None, 8 * MIB, 8 * MIB, 0),
    ]
    assert [f"linear.py({line}):" in text for line, text in zip((3, 2, 4, 1), by_stack["frames"], strict=True)] == [
        True
    ] * 4


@pytest.mark.parametrize(
    ("by", "places"),
    [
        (
            "line",
            {"job/model.py(20): forward": 64 * MIB, "job/model.py(21): forward": 64 * MIB, "AddmmBackward0": 16 * MIB},
        ),
        ("function", {"forward (job/model.py)": 128 * MIB, "AddmmBackward0": 16 * MIB}),
        ("file", {"job/model.py": 128 * MIB, "AddmmBackward0": 16 * MIB}),
    ],
)
def test_memory_at_the_peak_by_what_a_person_looks_for(by, places):
    allocator = Allocator(2 * GIB)
    blocks = [allocator.allocate(64 * MIB, f"/job/model.py:{20 + n}:forward") for n in range(2)]
    node = [{"filename": "??", "line": 0, "name": "torch::autograd::generated::AddmmBackward0::apply(int)"}]
    blocks.append(allocator.allocate(16 * MIB, node))
    for block in blocks:
        allocator.free(block)
    rows = VIEWS["snapshot_alive"].frame(read_snapshot(allocator), {"by": by})
    assert dict(rows.select("place", "alive_bytes").rows()) == places
    assert {*rows["origin"]} == {"program", "torch"}


def test_what_was_alive_at_any_time_is_the_level_then():
    allocator = Allocator(8 * GIB, most_events=60)
    trained(allocator, 4, activation=64 * MIB)
    trace = read_snapshot(allocator)
    levels = VIEWS["snapshot_levels"].frame(trace, {}).unique("time_ns", keep="last")
    for time, active in levels.select("time_ns", "active_bytes").rows():
        rows = VIEWS["snapshot_alive"].frame(trace, {"time_ns": time})
        assert rows["alive_bytes"].sum() == active


def test_parts_of_a_segment_show_its_blocks_and_holes():
    allocator = Allocator(8 * GIB)
    blocks = [allocator.allocate(15 * MIB, f"/job/a.py:{n}:f") for n in range(4)]
    whole = allocator.allocate(GIB)
    for block in [*blocks[::2], whole]:
        allocator.free(block)
    trace = read_snapshot(allocator)
    rows = VIEWS["snapshot_layout"].frame(trace, {})
    segments = VIEWS["snapshot_segments"].frame(trace, {})
    assert rows["used_bytes"].sum() == segments["allocated_bytes"].sum() == 30 * MIB
    assert rows["unused_bytes"].sum() == segments["unused_bytes"].sum()
    by_segment = [group["used_frac"].to_list() for group in rows.partition_by("segment", maintain_order=True)]
    assert [sum(parts) for parts in by_segment] == [0, 0, 60, 0, 60]
    assert rows["segment"].unique(maintain_order=True).to_list()[:2] == ["#1 1 GiB", "#2 16 MiB"]
    assert by_segment[2] == [1] * 60 + [0] * 4  # 15 MiB of 16, and a hole
