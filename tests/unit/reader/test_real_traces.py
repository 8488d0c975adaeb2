"""Every value of every real trace, compared with a plain reading by Python's json."""

import gzip
import json
from collections import Counter
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from kinetoscope_tb.arrays.gather import NONE
from kinetoscope_tb.reader import read
from kinetoscope_tb.trace.model import COLLECTED
from support.real_traces import of_each_program

HOST = {"cpu_op": "operator", "operator": "operator", "user_annotation": "annotation"}
DEVICE = {
    "kernel": "kernel",
    "mtia_ccp_events": "kernel",
    "memcpy": "memcpy",
    "gpu_memcpy": "memcpy",
    "memset": "memset",
    "gpu_memset": "memset",
}
NEVER_OPERATORS = ("ProfilerStep#", "enumerate(DataLoader)#", "enumerate(DataPipe)#", "Optimizer.")
OF_MTIA = {"event_wait": None, "event_record": None, "dma_request": "memcpy"}


parse_list = cache(json.loads)  # most lists repeat


def document(path):
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    parsed = json.loads(data, parse_float=Decimal)
    return (data, {}, parsed) if isinstance(parsed, list) else (data, parsed, parsed["traceEvents"])


def ns(microseconds):
    return int(Decimal(microseconds) * 1000)


@cache
def frame_and_kind(phase, name, category):
    if phase == "M":
        return None, None
    if name in ("[memory]", "[OutOfMemory]"):
        return "memory", None
    if phase in "sft":
        return "flows", None
    if phase != "X":
        return "others", None
    if category in HOST:
        return "host_events", "annotation" if name.startswith(NEVER_OPERATORS) else HOST[category]
    if category == "mtia_ccp_events" and name in OF_MTIA:
        kind = OF_MTIA[name]
        return "device_events" if kind else "others", kind
    if category in DEVICE:
        return "device_events", DEVICE[category]
    if category in ("cuda_sync", "cuda_event", "xpu_sync"):
        return "syncs", None
    if category.endswith(("runtime", "driver")):
        return "launches", "driver" if category.endswith("driver") else "runtime"
    return ("python_calls" if category == "python_function" else "others"), None


def integer(args, *keys):
    for key in keys:
        if args.get(key) is not None:
            value = int(args[key])
            return value if value < 2**63 else NONE
    return NONE


def fraction(args):
    value = args.get("est. achieved occupancy %", args.get("theoretical occupancy %"))
    return None if value is None else float(value) / 100


def number(value):
    return None if value in (None, "inf") else float(value)


def expected(event, frame, kind, origin):
    args = event.get("args") or {}
    row = {"name": event["name"], "start_ns": ns(event["ts"]) - origin}
    if frame not in ("memory", "flows"):
        row["dur_ns"] = ns(event["dur"]) if "dur" in event else (NONE if frame == "others" else 0)
    if kind:
        row["kind"] = kind
    if frame in ("host_events", "launches", "device_events"):
        row["external_id"] = integer(args, "External id", "external id")
    if frame in ("launches", "device_events", "syncs"):
        row["correlation"] = integer(args, "correlation") or NONE
    if frame == "host_events":
        row["sequence"] = integer(args, "Sequence number")
        row["fwd_thread"] = integer(args, "Fwd thread id")
        row["call_stack"] = args.get("Call stack")
        row["is_finished"] = str(args.get("finished")).lower() != "false"
    if frame == "device_events":
        row["device"] = integer(args, "device") if "device" in args else int(event["pid"])
        row["stream"] = integer(args, "stream") if "stream" in args else int(str(event["tid"]).split()[-1])
        row["bytes"] = integer(args, "bytes", "size")
        row["registers_per_thread"] = integer(args, "registers per thread")
        row["shared_memory_bytes"] = integer(args, "shared memory")
        row["blocks_per_sm"] = number(args.get("blocks per SM"))
        row["occupancy_frac"] = fraction(args)
        if row["occupancy_frac"] == 0 and row["shared_memory_bytes"] > 48 << 10:
            row["occupancy_frac"] = None  # what Kineto can't estimate
        row["collective"] = args.get("Collective name")
    if frame == "memory":
        for column, key in (("device_type", "Device Type"), ("device", "Device Id"), ("address", "Addr")):
            row[column] = integer(args, key)
        for column, key in (("bytes", "Bytes"), ("total_allocated", "Total Allocated")):
            row[column] = integer(args, key)
        row["total_reserved"] = integer(args, "Total Reserved")
    if frame == "python_calls":
        row["python_id"] = integer(args, "Python id")
        row["python_parent_id"] = integer(args, "Python parent id")
        row["module_id"] = integer(args, "Python module id")
    if frame == "flows":
        del row["name"]
        row |= {"category": event["cat"], "phase": event["ph"], "id": int(event["id"])}
    if frame == "syncs":
        row |= {"category": event["cat"], "sync_kind": args.get("cuda_sync_kind"), "stream": integer(args, "stream")}
        row["stream"] = NONE if row["stream"] == 2**32 - 1 else row["stream"]
        row["wait_on_record"] = integer(args, "wait_on_cuda_event_record_corr_id")
    if frame == "others":
        row |= {"category": event.get("cat"), "phase": event["ph"]}
    return row


def assert_same_rows(frame, wanted):
    """Both in the order of the file."""
    assert frame.height == len(wanted)
    for column in wanted[0]:
        got = [None if value != value else value for value in frame[column].to_list()]
        assert got == [row[column] for row in wanted], column


def assert_places(frame, events, data):
    """The bytes at an event's offset are that event; looked at for every 50th, since parsing all again takes long."""
    for offset, length, event in list(zip(frame["offset"], frame["length"], events, strict=True))[::50]:
        assert json.loads(data[offset : offset + length], parse_float=Decimal) == event


def assert_threads(trace, frame, events):
    threads = trace.threads.rows()
    for index, event in zip(frame["thread"].to_list(), events, strict=True):
        assert threads[index][:2] == (str(event["pid"]), str(event["tid"]))


def assert_lists(frame, events):
    """Lists are texts, so they are parsed before they are compared."""
    keys = {
        "input_shapes": ("Input Dims", "Input dims"),
        "input_types": ("Input type",),
        "grid": ("grid",),
        "block": ("block",),
    }
    for column in keys.keys() & set(frame.columns):
        for value, event in zip(frame[column].cast(str).to_list(), events, strict=True):
            args = event.get("args") or {}
            want = next((args[k] for k in keys[column] if k in args), None)
            assert (parse_list(value) if isinstance(want, list) else value) == want


def test_every_value_of_real_traces_is_what_plain_json_says(traces, subtests):
    for path in (path for path in of_each_program("") if path.parent.name != "derived_malformed"):
        with subtests.test(trace=path.name):
            check(path)


def check(path: Path) -> None:
    data, top, events = document(path)
    trace = read(path)
    by_frame = {name: [] for name in COLLECTED}
    for event in events:
        frame, kind = frame_and_kind(event["ph"], event.get("name"), event.get("cat", "").lower())
        if frame:
            by_frame[frame].append((event, kind))
    earliest = min(ns(e["ts"]) for group in by_frame.values() for e, _ in group)
    assert trace.origin_ns == earliest + top.get("baseTimeNanoseconds", 0)
    assert trace.meta.events == len(events)
    assert trace.meta.top.keys() == top.keys() - {"traceEvents"}
    for name, group in by_frame.items():
        frame = getattr(trace, name).sort("offset")
        assert frame.height == len(group), name
        if group:
            assert_same_rows(frame, [expected(e, name, kind, earliest) for e, kind in group])
            assert_places(frame, [e for e, _ in group], data)
            assert_lists(frame, [e for e, _ in group])
            if name not in ("device_events", "syncs"):
                assert_threads(trace, frame, [e for e, _ in group])


def test_threads_and_processes_have_the_names_that_the_trace_gives_them(traces):
    trace = read(traces / "single" / "ncompass_h100nvl_test_trace.pt.trace.json")
    _, _, events = document(traces / "single" / "ncompass_h100nvl_test_trace.pt.trace.json")
    named = {(str(e["pid"]), str(e["tid"])): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert trace.threads.height
    for pid, tid, _, name in trace.threads.rows():
        assert name == (named[pid, tid].strip() if (pid, tid) in named else None)


@pytest.mark.parametrize("block_bytes", [7, 300, 5000])
def test_the_size_of_blocks_never_changes_the_result(traces, block_bytes):
    for name in (
        "hta_event_sync_trace.json.gz",
        "tracelens_mi300_torch_compile_triton.json.gz",
        "hta_backward_thread.json",
    ):
        path = traces / "single" / name
        small, usual = read(path, block_bytes=block_bytes), read(path)
        assert small.origin_ns == usual.origin_ns
        assert small.meta == usual.meta
        for frame in (*COLLECTED, "threads"):
            assert getattr(small, frame).equals(getattr(usual, frame)), frame


def test_what_was_cut_off_is_said_and_the_rest_is_kept(traces):
    folder = traces / "derived_malformed"
    whole = read(traces / "single" / "hta_event_sync_trace.json.gz")
    for name in ("truncated_mid_event.pt.trace.json", "truncated.pt.trace.json.gz"):
        trace = read(folder / name)
        rules = Counter(diagnostic.rule for diagnostic in trace.diagnostics)
        assert rules["truncated"] == 1
        assert rules["damaged_compression"] == name.endswith(".gz")
        assert 0 < trace.meta.events < whole.meta.events
        kernels = trace.device_events.select("name", "start_ns", "dur_ns", "correlation").rows()
        assert kernels == whole.device_events.select("name", "start_ns", "dur_ns", "correlation").rows()[: len(kernels)]


def test_raw_backslashes_of_windows_paths_stay_in_the_name(traces):
    trace = read(traces / "derived_malformed" / "unescaped_windows_path.pt.trace.json")
    assert [diagnostic.rule for diagnostic in trace.diagnostics] == ["bad_escape"]
    texts = [n for frame in COLLECTED if "name" in COLLECTED[frame] for n in getattr(trace, frame)["name"].to_list()]
    assert any("\\" in (text or "") for text in texts)


def test_roctracer_s_external_ids_link_where_there_are_no_correlations(traces):
    trace = read(traces / "single/tracelens_rocm_old_gemm_01.json")
    ops = trace.host_events["name"].cast(str).gather(trace.device_events["op"].replace(-1, None))
    assert ops.to_list() == ["aten::mm"] * 20


def test_waiting_on_mtia_is_no_work(traces):
    device = read(traces / "single/hta_mtia_inference_rank_0.json.gz").device_events
    counts = Counter(device.select("kind", "name").cast(str).iter_rows())
    assert counts == {
        ("memcpy", "dma_request"): 877,
        ("kernel", "remote"): 37,
        ("kernel", "merge"): 36,
        ("kernel", "pe_exe"): 24,
    }
