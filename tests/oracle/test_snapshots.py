"""Real memory snapshots: what must add up, and memory_viz's arithmetic by its documented rules."""

import gzip
import pickle
from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from kinetoscope_tb.api import open_profile
from kinetoscope_tb.measures.memory.snapshots import device_snapshots
from kinetoscope_tb.reader import read
from kinetoscope_tb.views import VIEWS
from support.real_traces import FOLDER

OF_OTHERS = sorted((FOLDER.parent / "snapshots").glob("*.pickle"))
OURS = sorted((Path(__file__).parents[2] / "samples" / "h100_snapshots").glob("*.pickle.gz"))
for_each_snapshot = pytest.mark.parametrize("path", [*OF_OTHERS, *OURS], ids=lambda path: path.name.split(".")[0])
ADDS = {"allocated": ("alloc",), "active": ("alloc",), "reserved": ("segment_alloc", "segment_map")}
REMOVES = {
    "allocated": ("free_requested",),
    "active": ("free_completed",),
    "reserved": ("segment_free", "segment_unmap"),
}


def unpickled(path):
    """What torch wrote into a file that we know."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return pickle.load(file)


def test_there_are_snapshots():
    assert len(OF_OTHERS) == 3
    assert len(OURS) == 10


@for_each_snapshot
def test_blocks_add_up_to_their_segments(path):
    trace = read(path)
    state, size = pl.col("state"), pl.col("size")
    is_allocated = state == "active_allocated"
    sums = trace.snapshot_blocks.group_by("segment").agg(
        total_size=size.sum(),
        allocated_size=size.filter(is_allocated).sum(),
        active_size=size.filter(state != "inactive").sum(),
        requested_size=pl.col("requested_size").filter(is_allocated).sum(),
    )
    segments = trace.snapshot_segments.with_row_index("segment")
    joined = segments.join(sums.with_columns(pl.col("segment").cast(pl.UInt32)), "segment", suffix="_of_blocks")
    assert joined.height == segments.height
    for name in ("total_size", "allocated_size", "active_size", "requested_size"):
        assert joined[name].equals(joined[f"{name}_of_blocks"]), name
    in_use = trace.snapshot_blocks.filter(state != "inactive")  # others keep the size of their last request
    assert (in_use["requested_size"] <= in_use["size"]).all()


@for_each_snapshot
def test_the_replay_ends_with_the_blocks_and_begins_at_a_level_that_is_possible(path):
    (snapshot,) = device_snapshots(read(path))
    assert min(snapshot.before) >= 0
    assert min(snapshot.allocated_bytes.min(), (snapshot.active_bytes - snapshot.allocated_bytes).min()) >= 0
    assert (snapshot.reserved_bytes >= snapshot.active_bytes).all()
    last = snapshot.events.height - 1
    alive = snapshot.alive(last)
    assert alive["size"].sum() == snapshot.active_bytes[-1]
    blocks = [block for segment in unpickled(path)["segments"] for block in segment["blocks"]]
    active = {block["address"]: block["requested_size"] for block in blocks if block["state"] != "inactive"}
    assert dict(alive.select("address", "size").rows()) == active
    for event in {0, last // 3, last // 2, snapshot.peak, last}:
        assert snapshot.alive(event)["size"].sum() == snapshot.active_bytes[event]


@for_each_snapshot
def test_levels_and_holders_equal_a_replay_event_by_event(path):
    """The rules of memory_viz: alloc adds a block, free_completed removes it; at the end are the snapshot's blocks."""
    written = unpickled(path)
    blocks = [block for segment in written["segments"] for block in segment["blocks"]]
    ends = {
        "allocated": sum(block["requested_size"] for block in blocks if block["state"] == "active_allocated"),
        "active": sum(block["requested_size"] for block in blocks if block["state"] != "inactive"),
        "reserved": sum(segment["total_size"] for segment in written["segments"]),
    }
    trace = read(path)
    (snapshot,) = device_snapshots(trace)
    levels = {}
    for number, (name, level) in enumerate(ends.items()):
        levels[name] = []
        for event in reversed(written["device_traces"][0]):
            levels[name].append(level)
            level += event["size"] * ((event["action"] in REMOVES[name]) - (event["action"] in ADDS[name]))
        levels[name].reverse()
        assert getattr(snapshot, f"{name}_bytes").tolist() == levels[name]
        assert snapshot.before[number] == level
    begun, peak = {}, snapshot.peak
    for event in written["device_traces"][0][: peak + 1]:
        if event["action"] == "alloc":
            begun[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            begun.pop(event["addr"], None)
    rows = VIEWS["snapshot_alive"].run(trace)
    known = rows.filter(pl.col("place") != "[allocated before the history]")
    assert known["alive_bytes"].sum() == sum(begun.values())
    assert rows["alive_bytes"].sum() == levels["active"][peak]
    assert rows["blocks"].sum() >= len(begun)


@for_each_snapshot
def test_every_view_of_a_snapshot_answers(path):
    trace = read(path)
    actions = Counter(trace.snapshot_events["action"].to_list())
    assert "unknown" not in actions
    for name, view in VIEWS.items():
        frame = view.frame(trace, {})
        if name.startswith("snapshot_") and name != "snapshot_failure":
            assert not frame.is_empty() or name in ("snapshot_growth", "snapshot_ranges"), name
    assert VIEWS["snapshot_segments"].run(trace)["reserved_bytes"].sum() == trace.snapshot_segments["total_size"].sum()


@for_each_snapshot
def test_the_summary_says_what_was_alive_at_the_peak(path):
    summary = open_profile(str(path), None, None, None).summary()
    largest = VIEWS["snapshot_alive"].run(read(path))["place"][0]
    assert "Peak of device 0" in summary
    assert largest in summary
