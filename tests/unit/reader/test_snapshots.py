"""Memory snapshots → frames of a trace."""

import base64
import gzip
import json
import pickle
import tracemalloc

import polars as pl
import pytest
import zstandard

from kinetoscope_tb.errors import NotATrace
from kinetoscope_tb.measures.memory.snapshots import device_snapshots
from kinetoscope_tb.reader import read, read_blocks
from support.large_snapshots import write_large_snapshot
from support.pickles import PROTOCOLS, hostile, truncated
from support.snapshots import MIB, Allocator, frames_of, small_snapshot, trained

MOST_BYTES_PER_BYTE, OF_ANY_FILE = 0.4, 24 << 20
"""2 GB for a snapshot of 5 GB; a file of any size has its block of text and its first arrays."""

PAGE = """
<!DOCTYPE html>
<html><body><script type="module">
import {add_local_files} from "https://cdn.jsdelivr.net/gh/pytorch/pytorch@main/torch/utils/viz/MemoryViz.js"
const local_files = %s
add_local_files(local_files, "Active Memory Timeline")
</script></body></html>
"""


def page_of(data):
    """What torch.cuda._memory_viz.trace_plot writes."""
    padded = data + b"\0" * (3 - len(data) % 3)
    return (PAGE % json.dumps([{"name": "snapshot.pickle", "base64": base64.b64encode(padded).decode()}])).encode()


def rows(data, name="snapshot_events"):
    return getattr(read_blocks([data], path="snapshot.pickle"), name)


def same_frames(first, second):
    for name in vars(first):
        if name.startswith("snapshot_"):
            assert getattr(first, name).equals(getattr(second, name)), name


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_every_entry_is_a_row(protocol):
    allocator = small_snapshot()
    snapshot, data = allocator.snapshot(), allocator.dumped(protocol)
    events = rows(data)
    entries = snapshot["device_traces"][0]
    assert events["action"].to_list() == [entry["action"] for entry in entries]
    assert events["size"].to_list() == [entry["size"] for entry in entries]
    assert events["address"].to_list() == [entry.get("addr", -1) for entry in entries]
    assert events["device_free"].to_list() == [entry.get("device_free", -1) for entry in entries]
    first = snapshot["external_annotations"][0]["time_us"]
    assert events["moment"].to_list() == [1000 * (entry["time_us"] - first) for entry in entries]
    segments, blocks = rows(data, "snapshot_segments"), rows(data, "snapshot_blocks")
    assert segments["total_size"].to_list() == [segment["total_size"] for segment in snapshot["segments"]]
    assert segments["pool"].to_list() == ["0, 0"] * segments.height
    written = [(n, block) for n, segment in enumerate(snapshot["segments"]) for block in segment["blocks"]]
    assert blocks.select("segment", "address", "size", "state").rows() == [
        (n, block["address"], block["size"], block["state"]) for n, block in written
    ]
    annotations = rows(data, "snapshot_annotations")
    assert annotations["is_start"].to_list() == [True, False] * 5
    assert annotations["name"][0] == "ProfilerStep#0"


def test_each_event_has_its_stack():
    allocator = small_snapshot()
    trace = read_blocks([allocator.dumped()], path="snapshot.pickle")
    frames = trace.snapshot_frames.rows()
    stacks = {}
    for stack, frame in trace.snapshot_stacks.rows():
        stacks.setdefault(stack, []).append(frames[frame])
    for entry, stack in zip(allocator.events, trace.snapshot_events["stack"], strict=True):
        assert stacks.get(stack, []) == [(f["filename"], f["line"], f["name"]) for f in entry["frames"]]


def test_forms_of_a_file_make_no_difference(tmp_path):
    data = small_snapshot().dumped()
    forms = {"a.pickle": data, "b.pkl": data, "c.pickle.gz": gzip.compress(data), "d.html": page_of(data)}
    forms |= {"e.html": page_of(data + b"12"), "f.pickle.zst": zstandard.compress(data)}
    traces = []
    for name, content in forms.items():
        path = tmp_path / name
        path.write_bytes(content)
        traces.append(read(path, block_bytes=1000))
        assert traces[-1].diagnostics == ()
    for trace in traces[1:]:
        same_frames(traces[0], trace)


def test_a_list_of_segments_as_torch_1_12_wrote_it():
    history = [{"addr": 4096, "real_size": 700, "frames": frames_of("/job/a.py:3:f")}]
    blocks = [{"size": 1024, "state": "active_allocated", "history": history}, {"size": 1024, "state": "inactive"}]
    segment = {"device": 1, "address": 4096, "total_size": 2048, "allocated_size": 1024, "active_size": 1024}
    segments = [{**segment, "stream": 0, "segment_type": "small", "blocks": blocks}]
    data = pickle.dumps(segments, 4)
    assert rows(data, "snapshot_segments").select("device", "total_size", "requested_size").rows() == [(1, 2048, -1)]
    columns = ("address", "size", "requested_size", "state")
    read_blocks_ = rows(data, "snapshot_blocks").select(columns).rows()
    assert read_blocks_ == [(4096, 1024, 700, "active_allocated"), (5120, 1024, -1, "inactive")]
    assert rows(data, "snapshot_blocks")["stack"].to_list() == [0, -1]


def test_what_a_version_lacks_is_missing_and_what_is_unknown_is_left_out():
    event = {"action": "alloc", "addr": 1 << 63, "size": 512, "stream": 0, "frames": [], "new_in_torch_3": {"a": [1]}}
    data = pickle.dumps({"segments": [], "device_traces": [[], [event, {**event, "action": "new_action"}]]}, 4)
    events = rows(data)
    assert events.select("action", "device", "size", "moment", "pool").rows() == [
        ("alloc", 1, 512, -1, None),
        ("unknown", 1, 512, -1, None),
    ]


@pytest.mark.parametrize("data", list(truncated(small_snapshot().dumped(), 40)), ids=len)
def test_a_truncated_file_keeps_what_was_read(data):
    try:
        trace = read_blocks([data], path="snapshot.pickle")
    except NotATrace:
        assert len(data) < 700
        return
    assert [found.rule for found in trace.diagnostics if found.level == "loss"] == ["truncated"]
    whole = read_blocks([small_snapshot().dumped()], path="snapshot.pickle")
    count = trace.snapshot_events.height
    assert trace.snapshot_events["size"].equals(whole.snapshot_events["size"].head(count))
    assert trace.snapshot_blocks["address"].is_in(whole.snapshot_blocks["address"].to_list()).all()


def test_what_imports_code_ends_the_reading_with_a_finding():
    data = small_snapshot().dumped()
    trace = read_blocks([data[:-1] + b"cos\nsystem\n."], path="snapshot.pickle")
    (found,) = [found for found in trace.diagnostics if found.level == "loss"]
    assert found.rule == "refused_pickle"
    assert "GLOBAL of os.system is refused" in found.consequence
    assert trace.snapshot_events.height == len(small_snapshot().events)


HOSTILE = hostile()


def test_hostile_values_in_a_snapshot_are_refused_or_left_out():
    small = [name for name, data in HOSTILE.items() if len(data) < 10**5]
    for name in small[::7]:
        inner = HOSTILE[name][2:].removesuffix(b".")
        for data in (b"\x80\4}(\x8c\x08segments](" + inner + b"eu.", HOSTILE[name] + b"segments"):
            try:
                read_blocks([data], path="snapshot.pickle")
            except NotATrace:
                continue
            pytest.fail(f"{name} isn't a snapshot")


def test_identities_hold_in_the_simulation():
    allocator = Allocator()
    trained(allocator, 3, leak_bytes=MIB)
    pending = allocator.allocate(5 * MIB)
    allocator.request_free(pending)
    trace = read_blocks([allocator.dumped()], path="snapshot.pickle")
    sizes = trace.snapshot_blocks.group_by("segment", maintain_order=True).agg(pl.col("size").sum())["size"]
    assert sizes.to_list() == trace.snapshot_segments["total_size"].to_list()
    assert (trace.snapshot_blocks["requested_size"] <= trace.snapshot_blocks["size"]).all()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_large_snapshot_is_read_as_unpickling_would(protocol, tmp_path):
    path = tmp_path / "snapshot.pickle"
    count = write_large_snapshot(path, 3_000_000, protocol)
    trace = read(path)
    written = pickle.loads(path.read_bytes())
    events = written["device_traces"][0]
    assert trace.snapshot_events.height == len(events) == count
    of_events = trace.snapshot_events.select("action", "address", "size", "stream", "moment", "pool").rows()
    assert of_events == [
        (e["action"], e["addr"], e["size"], e["stream"], e["time_us"] * 1000 - trace.origin_ns, "0, 0") for e in events
    ]
    frames = trace.snapshot_frames.rows()
    stacks = dict(trace.snapshot_stacks.group_by("stack", maintain_order=True).agg("frame").rows())
    for event, stack in list(zip(events, trace.snapshot_events["stack"], strict=True))[::997]:
        assert [frames[row] for row in stacks[stack]] == [
            (f["filename"], f["line"], f["name"]) for f in event["frames"]
        ]
    (snapshot,) = device_snapshots(trace)
    assert snapshot.before == (0, 0, 0)
    assert snapshot.active_bytes[-1] == trace.snapshot_segments["active_size"].sum()


def test_memory_is_a_fraction_of_the_file(tmp_path):
    path = tmp_path / "snapshot.pickle"
    write_large_snapshot(path, 40_000_000)
    tracemalloc.start()
    read(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < OF_ANY_FILE + MOST_BYTES_PER_BYTE * path.stat().st_size


def test_what_our_recorder_adds_is_the_metadata_and_the_devices_as_in_a_trace():
    snapshot = {
        **small_snapshot().snapshot(),
        "deviceProperties": [{"id": 0, "name": "H100", "totalGlobalMem": 80 << 30}, {"name": "no id"}],
        "kinetoscope": {"global_rank": 3, "host": "node7", "world_size": "many", "reason": "out of memory"},
    }
    trace = read_blocks([pickle.dumps(snapshot, 4)], path="rank3.42.oom.memory.pickle")
    assert trace.meta.devices == [{"id": 0, "name": "H100", "totalGlobalMem": 80 << 30}]
    assert (trace.meta.rank, trace.meta.world_size, trace.meta.producer["host"]) == (3, None, "node7")
    assert [d.rule for d in trace.diagnostics if d.rule == "odd_metadata"] == ["odd_metadata"]
    same_frames(trace, read_blocks([pickle.dumps(small_snapshot().snapshot(), 4)], path="snapshot.pickle"))


@pytest.mark.parametrize("device", [2**40, 2**31, -5, 2**64 - 1, "cuda:0", None])
def test_an_index_that_no_device_has_is_missing(device):
    snapshot = small_snapshot().snapshot()
    snapshot["segments"][0]["device"] = snapshot["external_annotations"][0]["device"] = device
    data = pickle.dumps(snapshot, 4)
    for name in ("snapshot_segments", "snapshot_annotations"):
        assert rows(data, name)["device"].to_list()[:2] == [-1, 0]
